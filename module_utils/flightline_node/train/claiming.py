"""Takes this node out of service for the hardware that ended a start, before the next one: scheduler and marker.

The marker is healing's own way to write one, the reason beside the node the one form of claim.py. What is certain is
claimed at once: the next start on this node would meet the same hardware.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Dict, List, NamedTuple

from ..act import repair
from ..act.program import ran
from ..watch import claim, kmsg, marker, slurm
from .faults import StartFault
from .plan import LaunchPlan

BY = f"flightline-{claim.BLAME}"
CHECK, REASON, LEVEL = "training", "rank.failed", "standard"
"""As `flightline blame --quarantine` names it; level quick would not have asked the GPU to work."""
CERTAIN = re.compile(
    r"uncorrectable (?:\w+ )?(?:ECC )?error|ECCUncorrectable|NVLink error|NVLink.{0,40}uncorrect|GPU is lost"
    r"|fallen off the bus|device (?:is |was )?lost",
    re.I,
)
"""Of the words of hardware those that no program causes: a launch failure may be its bug, EIO the file system's."""
SCHEDULER_S = 30.0


def is_of_this_node(fault: StartFault) -> bool:
    """Is the hardware of this very node to blame, by what one of its own ranks said?"""
    return fault.here and bool(CERTAIN.search(fault.text))


def others_can_go_on(plan: LaunchPlan) -> bool:
    """Is there anybody who can train in this node's place? A run of one node is not ended by its own claim."""
    return bool(plan.meeting.host or os.environ.get("SLURM_JOB_ID"))


class Claimed(NamedTuple):
    """left: the node leaves, so the run goes on without it. why: what was done and what could not be."""

    left: bool
    why: str


def take_out(plan: LaunchPlan, fault: StartFault, folder: str) -> Claimed:
    """Claim this node: a user may neither write the marker nor drain, and the rule may keep the node in service."""
    node, run = node_name(), str(plan.about.get("run", ""))
    finding = {
        "check": CHECK,
        "status": "FAIL",
        "message": f"a rank of {plan.job} failed: {fault.text}"[:300],
        "reason": REASON,
        "remedy": "INVESTIGATE",
        "device": {} if fault.local is None else {"index": fault.local},
        "evidence": [f"{folder or plan.logs}: {fault.text}"],
    }
    text = claim.of_finding(finding, f": {fault.text}", claim.BLAME, LEVEL, run).text
    if paused := marker.paused(Path(plan.root) / "var/lib/flightline"):
        return Claimed(False, f"{text}; {paused}")
    drain, kind = slurm.DrainResult(slurm.ABSENT, text), "none"
    if slurm.is_there(os.environ.get("PATH", os.defpath), plan.root):
        ask = slurm.asking(os.environ.get("PATH", os.defpath), SCHEDULER_S)
        drain, kind = slurm.drain(node, text, ask), "slurm"
    if drain.state == slurm.SUSPECT:  # too many are out for the same reason: it is no fault of this node alone
        return Claimed(False, f"{text}; it stays in service, a suspect: {drain.reason}")
    left = [f"Slurm: {drain.state} ({drain.reason})"] if drain.state not in (slurm.DRAINED, slurm.ABSENT) else []
    scheduler = {"kind": kind, "state": drain.state, "reason": drain.reason, "at": marker.stamp()}
    left += _marked(plan, node, finding, run, scheduler)
    do = f"do: flightline blame {plan.logs} --quarantine -i INVENTORY"
    return Claimed(True, f"{text}; not all was done: {'; '.join(left)}; {do}" if left else text)


def _marked(plan: LaunchPlan, node: str, finding: object, run: str, scheduler: Dict[str, str]) -> List[str]:
    """Write the marker; why not, or nothing."""
    try:
        about = {
            "schema": marker.SCHEMA,
            "node": node,
            "instance_id": "",
            "since": scheduler["at"],
            "by": BY,
            "run": run,
        }
        mark = {**about, "boot_id": kmsg.boot_id("/"), "findings": [finding], "latched": {}, "scheduler": scheduler}
        answer = repair.take(repair.RepairStep("mark", 0, root=plan.root, marker=mark))
        return [] if answer["outcome"] == repair.DONE else [str(answer["detail"])]
    except OSError as error:
        return [f"no marker: {error}"]


def give_job_back(job: str, without_me: bool) -> None:
    """Put the job of Slurm into its queue. without_me: it may not come back here, as this node is not drained.

    Slurm takes a list of nodes to leave out only for a job that waits (scontrol(1), ExcNodeList): after the requeue.
    """
    ran(["scontrol", "requeue", job], SCHEDULER_S)
    if without_me:
        ran(["scontrol", "update", f"JobId={job}", f"ExcNodeList={node_name()}"], SCHEDULER_S)


def node_name() -> str:
    """As the scheduler calls this node."""
    return os.environ.get("SLURMD_NODENAME") or os.environ.get("FLIGHTLINE_NODE") or socket.gethostname()
