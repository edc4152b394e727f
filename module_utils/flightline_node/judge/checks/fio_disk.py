"""How fast are the local disks?"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional

from ...model import Check, Finding, Reason, Remedy, Skip, Threshold
from .. import skips
from ..context import Context
from .common import median

NO_FLOOR_SET = Reason("no_floor_set", "a rate was measured and no floor is set", device="disk")
READ_ERROR = Reason("read_error", "fio met an error", device="disk")
NO_DATA = Reason("no_data", "fio moved no data", device="disk")
BELOW_FLOOR = Reason("below_floor", "a disk is slower than its floor", Remedy.REPLACE, "disk")
SLOWER = Reason("slower", "a disk is slower than the others", Remedy.REPLACE, "disk")

GB = 1e9
TWINS = 3
"""Disks that a disk's speed is held against: of two that differ, either may be the slow one."""
_DISK = re.compile(r"nvme\d{1,4}n\d{1,4}")


def evaluate(context: Context) -> Iterator[Finding]:
    """Each fio job's bandwidth: against the site's floor if it has one, and against the node's other disks."""
    jobs = context.facts("fio")["jobs"]
    findings = [finding for job in jobs for finding in _judge(context, job, _twins(context, jobs, job))]
    yield from findings
    if findings:
        return
    speeds = [job["bw_bytes_s"] / GB for job in jobs]
    message = f"{len(jobs)} fio results, {min(speeds):.3g} to {max(speeds):.3g} GB/s"
    rest: Dict[str, Any] = {"measured": round(min(speeds), 3), "unit": "GB/s"}
    if all(_floor(context, job) for job in jobs):
        yield context.ok(message, **rest)
    else:
        yield context.info(NO_FLOOR_SET, f"{message}, no floor is set", **rest)


def _floor(context: Context, job: Dict[str, Any]) -> float:
    return context.threshold(f"min_{job['rw']}_gb_s")


def _twins(context: Context, jobs: List[Dict[str, Any]], job: Dict[str, Any]) -> List[float]:
    """GB/s of the other instance-store disks: jobs with a disk's name, as the probe gives, as many as it has."""
    alike = [other for other in jobs if other.get("rw") == job.get("rw") and _DISK.fullmatch(other.get("name") or "")]
    if job not in alike or len(alike) > (context.expected.nvme_count or 0):
        return []
    others = [other["bw_bytes_s"] / GB for other in alike if other is not job and other.get("bw_bytes_s")]
    return others if len(others) >= TWINS else []


def _judge(context: Context, job: Dict[str, Any], twins: List[float]) -> Iterator[Finding]:
    name, direction, bandwidth = job.get("name") or "job", job.get("rw"), job.get("bw_bytes_s")
    device = {"name": name}
    if job.get("error"):
        message = f"{name}: fio ended with error {job['error']}"
        yield context.fail(READ_ERROR, message, device=device, measured=job["error"], expected=0)
    elif direction is None or not bandwidth:
        yield context.unknown(NO_DATA, f"{name}: fio moved no data", device=device)
    else:
        gb_s, floor = round(bandwidth / GB, 3), _floor(context, job)
        context.measure(f"fio_{direction}_gb_s", gb_s, "GB/s", name)
        if gb_s < floor:
            message = f"{name}: {direction} at {gb_s:g} GB/s, wanted {floor:g}"
            yield context.fail(BELOW_FLOOR, message, device=device, measured=gb_s, expected=floor, unit="GB/s")
        elif twins:
            yield from _beside(context, name, gb_s, median(twins))


def _beside(context: Context, name: str, gb_s: float, usual: float) -> Iterator[Finding]:
    """A disk beside its twins."""
    slow, watch = (usual * (1 - context.threshold(f"{key}_slower_percent") / 100) for key in ("fail", "warn"))
    rest: Dict[str, Any] = {"device": {"name": name}, "measured": gb_s, "unit": "GB/s"}
    message = f"{name} at {gb_s:g} GB/s, the node's other disks {usual:.3g}"
    if gb_s < slow:
        yield context.fail(SLOWER, message, expected=round(slow, 3), **rest)
    elif gb_s < watch:
        yield context.warn(SLOWER, message, remedy=Remedy.INVESTIGATE, expected=round(watch, 3), **rest)


def _disks(context: Context) -> Optional[Skip]:
    """The probe reads instance-store disks: without any there is nothing to run, but a result given is judged."""
    if context.optional("fio") is None and not context.expected.nvme_count:
        return skips.NO_INSTANCE_STORE.because("no instance-store disk is expected")
    return None


CHECK = Check(
    id="fio_disk",
    order=560,
    title="Disk bandwidth",
    what="Bandwidth of each fio job, against the site's floor where one is set and against the node's other disks, and "
    "kept to compare the fleet.",
    why="One slow disk makes its node the last to read each batch and to finish each checkpoint.",
    remedy="Compare with the other nodes of the type; a node that stays behind is replaced.",
    out_of_service="Yes below the site's floor or far behind its twins; a little behind warns.",
    first="fio --readonly --rw=read --bs=1M --direct=1 --runtime=20 --name=read --filename=/dev/nvme1n1",
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
        Threshold(
            "warn_slower_percent",
            40,
            "%",
            "how far below the median of the node's other disks a disk warns",
            "site choice: all instance-store disks of a type are alike; blocks never written may read faster",
            0,
            100,
        ),
        Threshold(
            "fail_slower_percent",
            75,
            "%",
            "how far below the median of the node's other disks a disk fails",
            "site choice: what blocks never written gain is less than this",
            0,
            100,
        ),
    ),
    skips=(skips.NO_INSTANCE_STORE,),
    informs=True,
    evaluate=evaluate,
)
