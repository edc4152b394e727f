"""Do the disks say of themselves that they are failing?"""

from __future__ import annotations

from typing import Iterator, List

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context

WARNING_UNREAD = Reason("warning_unread", "the critical warning could not be read", device="disk")
CRITICAL_WARNING = Reason("critical_warning", "a disk's critical warning is set", Remedy.REPLACE, "disk")
SPARE_LOW = Reason("spare_low", "a disk's spare blocks are used up", Remedy.REPLACE, "disk")
MEDIA_ERRORS = Reason("media_errors", "a disk counts media errors", device="disk")
WORN = Reason("worn", "a disk has reached its rated endurance", Remedy.REPLACE, "disk")

_BITS = (
    (0x01, "its spare blocks are used up"),
    (0x02, "its temperature is out of range"),
    (0x04, "its reliability is degraded by media or internal errors"),
    (0x08, "it has gone read-only"),
    (0x10, "its memory backup has failed"),
    (0x20, "its persistent memory is unreliable"),
)
"""Bits of the critical warning: NVM Express base specification, SMART / Health Information log."""


def evaluate(context: Context) -> Iterator[Finding]:
    """The controller's own warning blocks; wear and media errors are worth knowing."""
    disks: List[Facts] = context.facts("nvme_smart")["disks"]
    answered = [disk for disk in disks if "error" not in disk and not _blank(disk)]
    findings = [finding for disk in answered for finding in _judge(context, disk)]
    yield from findings
    if not disks:
        yield context.skip(skips.NONE_HERE.because("no NVMe controller on this node"))
    elif not answered:
        yield context.skip(
            skips.NONE_HERE.because(f"no disk gives its SMART log: {disks[0].get('error') or 'all of it is zero'}")
        )
    elif not findings:
        most = max((disk.get("percentage_used") or 0 for disk in answered), default=0)
        yield context.ok(f"{len(answered)} of {len(disks)} disks answer, none warns, most worn {most} %", measured=most)


def _blank(disk: Facts) -> bool:
    """EBS volumes answer with a log of zeros: no wear, no spare, no temperature."""
    return not any(disk.get(name) for name in disk if name not in ("name", "model", "serial"))


def _judge(context: Context, disk: Facts) -> Iterator[Finding]:
    context = context.of({key: disk[key] for key in ("name", "serial") if key in disk}, str(disk["name"]))
    warning, used = disk.get("critical_warning"), disk.get("percentage_used")
    spare, least = disk.get("available_spare"), disk.get("spare_threshold")
    context.measure("nvme_percentage_used", used, "%")
    context.measure("nvme_media_errors", disk.get("media_errors"), "errors")
    evidence = [", ".join(f"{key} {value}" for key, value in disk.items() if key not in ("name", "serial"))]
    if warning is None:
        yield context.unknown(WARNING_UNREAD, "the critical warning could not be read", evidence=evidence)
    elif warning:
        said = "; ".join(text for bit, text in _BITS if warning & bit) or f"critical warning {warning:#x}"
        yield context.fail(CRITICAL_WARNING, said, warning, 0, evidence=evidence)
    elif spare is not None and least is not None and spare < least:
        message = f"{spare} % spare blocks left, its own limit is {least} %"
        yield context.fail(SPARE_LOW, message, spare, least, "%", evidence=evidence)
    elif (disk.get("media_errors") or 0) > context.threshold("media_errors"):
        count = disk["media_errors"]
        message = f"{count} reads or writes that it could not correct"
        yield context.warn(MEDIA_ERRORS, message, count, 0, "errors", evidence=evidence)
    elif used is not None and used >= context.threshold("wear"):
        yield context.warn(WORN, f"{used} % of its rated writes are used", used, 100, "%", evidence=evidence)


CHECK = Check(
    id="nvme_smart",
    order=540,
    title="Disk health (SMART)",
    what="The NVMe disks' own health log: critical warning, spare blocks, wear, uncorrected media errors.",
    why="A disk that has run out of spare blocks goes read-only in the middle of a checkpoint.",
    remedy="Replace the instance: its disks cannot be. Media errors alone: test the disk before trusting data to it.",
    do="Media errors alone: test the disk before trusting data to it.",
    out_of_service="Yes where the disk itself warns; wear and single media errors warn.",
    source="NVM Express base specification, log page 02h; nvme-cli and smartctl field names",
    needs=("nvme_smart",),
    tags=("host", "storage"),
    thresholds=(
        Threshold(
            "wear", 100, "%", "wear that warns", "NVMe specification: at 100 the rated endurance is used", 1, 255
        ),
        Threshold(
            "media_errors",
            0,
            "errors",
            "uncorrected errors that do not warn yet",
            "each is data that the disk lost (NVMe specification, Media and Data Integrity Errors)",
        ),
    ),
    skips=(skips.NONE_HERE,),
    evaluate=evaluate,
)
