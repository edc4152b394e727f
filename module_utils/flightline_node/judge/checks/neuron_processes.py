"""Is a program using the Neuron devices?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Facts, Finding, Reason, Remedy
from ..context import Context
from .neuron_common import device, label, listed, neuron_check

EXPECTED_PROCESS = Reason("expected_process", "a process that belongs to the system uses a device")
PROCESS = Reason("process", "a process uses a device", Remedy.RESTART_APP)
NONE_LISTED = Reason("none_listed", "neuron-ls lists no device")

_TOOLS = ("neuron-ls", "neuron-monitor", "neuron-top")


def stray(row: Facts) -> List[Facts]:
    """Processes on a device, the tools that only look at it left out."""
    return [
        process
        for process in row.get("processes", [])
        if str(process.get("command") or "").split(" ", 1)[0].rpartition("/")[2] not in _TOOLS
    ]


def evaluate(context: Context) -> Iterator[Finding]:
    """`quick` may run beside a job, so that processes are only reported; later levels need the devices alone."""
    findings: List[Finding] = []
    for row in listed(context):
        left = stray(row)
        if not left:
            continue
        shown = [f"pid {process.get('pid')} {process.get('command')}" for process in left]
        message = f"{label(row['index'])}: {len(left)} processes ({shown[0]})"
        rest: Dict[str, Any] = {"device": device(context, row["index"]), "measured": len(left), "expected": 0}
        if context.level == "quick":
            findings.append(context.info(EXPECTED_PROCESS, message, evidence=shown, unit="processes", **rest))
        else:
            findings.append(context.fail(PROCESS, message, evidence=shown, unit="processes", **rest))
    yield from findings
    if not listed(context):
        yield context.unknown(NONE_LISTED, "neuron-ls lists no device: who uses them is not known")
    elif not findings:
        yield context.ok("no process on the Neuron devices")


CHECK = neuron_check(
    id="neuron_processes",
    order=990,
    title="Processes on the Neuron devices",
    what="Programs on each Neuron device by neuron-ls. Reported at level quick; from standard on they fail the node.",
    why="A NeuronCore belongs to one program: one left by the last job keeps the next from starting.",
    remedy="End the process.",
    out_of_service="Yes from level standard, where a program keeps the next from starting; quick only tells.",
    source="AWS Neuron: Neuron LS user guide (neuron_processes); troubleshooting page, Neuron Core is in use",
    needs=("neuron_ls",),
    wants=("neuron_sysfs",),
    tags=("neuron", "software"),
    informs=True,
    evaluate=evaluate,
)
