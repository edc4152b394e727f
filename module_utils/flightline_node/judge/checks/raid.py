"""Are the software RAID arrays whole?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Check, Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context

NOT_RUNNING = Reason("not_running", "an array does not run", Remedy.REPLACE, "array")
DEGRADED = Reason("degraded", "an array lacks disks", Remedy.REPLACE, "array")
REBUILDING = Reason("rebuilding", "an array is being rebuilt or checked", Remedy.NONE, "array")


def evaluate(context: Context) -> Iterator[Finding]:
    """An array that does not run, or lacks a member, blocks; one that rebuilds warns."""
    arrays: List[Facts] = context.facts("sysfs").get("md", [])
    findings = [finding for array in arrays for finding in _judge(context, array)]
    yield from findings
    if not arrays:
        yield context.skip(skips.NONE_HERE.because("no software RAID on this node"))
    elif not findings:
        shown = ", ".join(f"{array['name']} ({array['level'] or '?'}, {len(array['members'])})" for array in arrays)
        yield context.ok(f"whole: {shown}", measured=len(arrays))


def _judge(context: Context, array: Facts) -> Iterator[Finding]:
    name, state, failed = array["name"], array["state"], array["failed"]
    rest: Dict[str, Any] = {"device": {"name": name}, "evidence": [array["text"]]}
    if state != "active":
        yield context.fail(NOT_RUNNING, f"{name} does not run: {state}", measured=state, expected="active", **rest)
    elif failed or (array.get("wanted") or 0) > (array.get("up") or 0):
        up, wanted = array.get("up"), array.get("wanted")
        which = f": {', '.join(failed)} failed" if failed else ""
        message = f"{name} is degraded{which}" + (f", {up} of {wanted} disks" if wanted else "")
        seen = {"measured": up, "expected": wanted} if wanted else {"measured": "degraded", "expected": "whole"}
        yield context.fail(DEGRADED, message, unit="disks" if wanted else "", **seen, **rest)
    elif array.get("busy"):
        message = f"{name} is at work ({array['busy']}): slow until it ends"
        yield context.warn(REBUILDING, message, measured=array["busy"], **rest)


CHECK = Check(
    id="raid",
    order=550,
    title="Software RAID",
    what="The state of the md arrays: running, all members there, not rebuilding.",
    why="The instance store is mostly striped: without one disk the array, and what is staged on it, is gone.",
    remedy="Replace the instance, or build the array anew where only its assembly failed (mdadm --assemble --scan).",
    do="",
    out_of_service="Yes when it does not run or lacks a member; a rebuild warns.",
    source="md(4), mdadm(8); Linux drivers/md/md.c, the text of /proc/mdstat",
    needs=("sysfs",),
    tags=("host", "storage"),
    skips=(skips.NONE_HERE,),
    evaluate=evaluate,
)
