"""How fast are the local disks?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from ..context import Context
from ..model import Check, Finding, Remedy, Threshold

GB = 1e9


def evaluate(context: Context) -> Iterator[Finding]:
    """Each fio job's bandwidth, kept for comparison over the fleet, and against the site's floor if it has one."""
    jobs = context.facts("fio")["jobs"]
    findings = [finding for job in jobs for finding in _judge(context, job)]
    yield from findings
    if findings:
        return
    speeds = [job["bw_bytes_s"] / GB for job in jobs]
    message = f"{len(jobs)} fio results, {min(speeds):.3g} to {max(speeds):.3g} GB/s"
    rest: Dict[str, Any] = {"measured": round(min(speeds), 3), "unit": "GB/s"}
    if all(_floor(context, job) for job in jobs):
        yield context.ok(message, **rest)
    else:
        yield context.info(f"{message}, no floor is set", **rest)


def _floor(context: Context, job: Dict[str, Any]) -> float:
    return context.threshold(f"min_{job['rw']}_gb_s")


def _judge(context: Context, job: Dict[str, Any]) -> Iterator[Finding]:
    name, direction, bandwidth = job.get("name") or "job", job.get("rw"), job.get("bw_bytes_s")
    device = {"name": name}
    if job.get("error"):
        message = f"{name}: fio ended with error {job['error']}"
        yield context.fail(message, Remedy.INVESTIGATE, device=device)
    elif direction is None or not bandwidth:
        yield context.unknown(f"{name}: fio moved no data", device=device)
    else:
        gb_s, floor = round(bandwidth / GB, 3), _floor(context, job)
        context.measure(f"fio_{direction}_gb_s", gb_s, "GB/s", name)
        if gb_s < floor:
            message = f"{name}: {direction} at {gb_s:g} GB/s, wanted {floor:g}"
            yield context.fail(message, Remedy.REPLACE, device=device, measured=gb_s, expected=floor, unit="GB/s")


def _disks(context: Context) -> Optional[str]:
    """The probe reads instance-store disks: without any there is nothing to run, but a result given is judged."""
    if context.optional("fio") is None and not context.expected.nvme_count:
        return "no instance-store disk is expected"
    return None


CHECK = Check(
    id="fio_disk",
    title="Disk bandwidth",
    what="Bandwidth of each fio job, against the site's floor where one is set, and kept to compare the fleet.",
    why="One slow disk makes its node the last to read each batch and to finish each checkpoint.",
    remedy="Compare with the other nodes of the type; a node that stays behind is replaced.",
    source="fio(1)",
    needs=("fio",),
    tags=("host", "storage"),
    level="deep",
    applies=_disks,
    thresholds=(
        Threshold(
            "min_read_gb_s",
            0,
            "GB/s",
            "least read bandwidth of a job; 0 sets no floor",
            "depends on the job's block size and depth: no figure holds for all",
            0,
        ),
        Threshold(
            "min_write_gb_s",
            0,
            "GB/s",
            "least write bandwidth of a job; 0 sets no floor",
            "depends on the job's block size and depth: no figure holds for all",
            0,
        ),
    ),
    evaluate=evaluate,
)
