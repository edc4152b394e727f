"""Has every Neuron device its memory?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Finding, Reason, Remedy, Threshold
from ..context import Context
from .common import spread
from .neuron_common import device, label, listed, neuron_check

NO_SIZE = Reason("no_size", "neuron-ls gives no memory size", device="Neuron device")
TOO_LITTLE = Reason("too_little", "a device has less memory than its model", Remedy.REPLACE, "Neuron device")
TOO_MUCH = Reason("too_much", "a device has more memory than its model", Remedy.FIX_CONFIG, "Neuron device")
NONE_LISTED = Reason("none_listed", "neuron-ls lists no device")

MIB = 1 << 20


def evaluate(context: Context) -> Iterator[Finding]:
    """Within a tolerance of the type's size; without a type only that there is some."""
    findings: List[Finding] = []
    wanted, sizes = context.expected.gpu_memory_mib, []
    share = 1 - context.threshold("tolerance_percent") / 100
    for row in listed(context):
        name, size = label(row["index"]), row.get("memory_bytes")
        where: Dict[str, Any] = {"device": device(context, row["index"]), "unit": "MiB"}
        if size is None:
            findings.append(context.unknown(NO_SIZE, f"{name}: neuron-ls gives no memory size", **where))
            continue
        size_mib = size / MIB
        context.measure("neuron_memory", size_mib, "MiB", name)
        sizes.append(size_mib)
        rest = {"measured": size_mib, "expected": wanted or "some memory", **where}
        if size_mib <= 0 or (wanted and size_mib < wanted * share):
            message = f"{name} has {size_mib:g} MiB of memory, wanted {wanted or 'some'}"
            findings.append(context.fail(TOO_LITTLE, message, **rest))
        elif wanted and size_mib * share > wanted:
            message = f"{name} has {size_mib:g} MiB of memory, wanted {wanted}: another device than expected"
            findings.append(context.fail(TOO_MUCH, message, **rest))
    yield from findings
    yield from _good(context, findings, sizes)


def _good(context: Context, findings: List[Finding], sizes: List[float]) -> Iterator[Finding]:
    if not sizes and not findings:
        yield context.unknown(NONE_LISTED, "neuron-ls lists no device whose memory could be judged")
    elif not findings:
        yield context.ok(f"{spread(sizes)} MiB of memory on each of {len(sizes)} devices")


CHECK = neuron_check(
    id="neuron_memory",
    order=910,
    title="Neuron device memory",
    what="The memory of each Neuron device, against the instance type.",
    why="A device with less memory runs out first; one of another size is another instance type.",
    remedy="Too small: replace the instance. Too large: correct the inventory's instance type.",
    do="Too large: correct the inventory's instance type.",
    out_of_service="Yes: the job runs out of memory on that device; a few percent are within the tolerance.",
    source="AWS Neuron: Neuron LS user guide (memory_size), Trn1, Trn2 and Inf2 architecture (device memory)",
    needs=("neuron_ls",),
    wants=("neuron_sysfs",),
    tags=("neuron", "memory"),
    thresholds=(
        Threshold(
            "tolerance_percent", 7, "%", "how far from the type's size is accepted",
            "site choice: the guide's figure is exact (96 GiB); a part of a device lost is an eighth or more", 0, 50,
        ),
    ),
    evaluate=evaluate,
)  # fmt: skip
