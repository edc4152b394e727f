"""Do collectives over the Neuron devices run to their end, with the right data?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ...model import Facts, Finding, Reason, Remedy
from ..context import Context
from .neuron_common import neuron_check

_NO_DRIVER = ("driver is not running", "no neuron device", "neuron driver version")
_NO_TOOL = ("nccom-test: not found", "nccom-test: command not found", "neuron-bench: not found")

WRONG_DATA = Reason("wrong_data", "a collective gave wrong data", Remedy.REPLACE)
NO_TOOL = Reason("no_tool", "nccom-test could not be started", Remedy.UPDATE_SOFTWARE)
FAILED = Reason("failed", "a collective failed")
FAILED_BY_DRIVER = Reason("failed_by_driver", "a collective failed for want of the driver", Remedy.UPDATE_SOFTWARE)
INCOMPLETE = Reason("incomplete", "a collective did not come to its end")


def name_of(run: Facts) -> str:
    """'all_reduce of 32 ranks'."""
    ranks = f" of {run['ranks']} ranks" if run.get("ranks") else ""
    return f"{run.get('operation') or 'a collective'}{ranks}"


def _any(words: Tuple[str, ...], said: List[str]) -> bool:
    return any(word in line.lower() for line in said for word in words)


def evaluate(context: Context) -> Iterator[Finding]:
    """Wrong data first, then what ended badly or not at all; a table without its last line is not complete."""
    for run in context.facts("nccom_test").get("runs", []):
        yield _judge(context, run)


def _judge(context: Context, run: Facts) -> Finding:
    name, said = name_of(run), run.get("said", [])
    rest: Dict[str, Any] = {"evidence": said, "expected": "completed, no error"}
    cause = f": {said[0]}" if said else ""
    if run.get("wrong"):
        rest["expected"] = "the right data"
        message = f"{name} gave wrong data: {run['wrong'][0]}"
        return context.fail(WRONG_DATA, message, measured="wrong data", **rest)
    if _any(_NO_TOOL, said):
        return context.unknown(NO_TOOL, f"{name} could not be started{cause}", evidence=said)
    if said or run.get("rc"):
        why = FAILED_BY_DRIVER if _any(_NO_DRIVER, said) else FAILED
        ended = f"exit status {run['rc']}" if run.get("rc") else "failed"
        return context.fail(why, f"{name} failed{cause or f' with {ended}'}", measured=ended, **rest)
    if not run.get("complete") or not run.get("rows"):
        return context.unknown(INCOMPLETE, f"{name} did not come to its end: {run.get('rows', 0)} rows, no average")
    checked = "data checked" if run.get("checked") else "data not checked"
    return context.ok(f"{name} completed, {run['rows']} sizes, {checked}", measured=run["rows"], unit="sizes")


CHECK = neuron_check(
    id="nccom_test",
    order=1000,
    title="Neuron collectives",
    what="Whether nccom-test over all NeuronCores ends well, and whether what it received is what was sent (--check).",
    why="A device or link that fails under load stops every job that uses it; wrong data ruins the job unseen.",
    remedy="Wrong data: replace the instance. A failure: read the log that it names, look at neuron_messages.",
    do="A failure: read the log that it names, look at neuron_messages.",
    out_of_service="Yes: wrong data, or no answer.",
    source="AWS Neuron: NCCOM-TEST user guide",
    needs=("nccom_test",),
    tags=("neuron", "nccl"),
    level="standard",
    evaluate=evaluate,
)
