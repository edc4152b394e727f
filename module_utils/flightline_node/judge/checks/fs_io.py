"""Do the data file systems give back what is written to them, and fast enough?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context

SLOW = Reason("slow", "writing or reading is slow", device="file system")
WRONG_DATA = Reason("wrong_data", "what was read is not what was written", device="file system")
IO_ERROR = Reason("io_error", "writing or reading ended in an error", device="file system")
REFUSED = Reason("refused", "nothing may be written there", Remedy.FIX_CONFIG, "file system")
NOTHING_WRITTEN = Reason("nothing_written", "nothing was written and compared", device="file system")


def _speed(context: Context, target: Facts) -> Iterator[Finding]:
    for way in ("write", "read"):
        speed, floor = target.get(f"{way}_mb_s"), context.threshold(f"min_{way}_mb_s")
        context.measure(f"fs_{way}_mb_s", speed, "MB/s")
        if speed is not None and speed < floor:
            yield context.warn(SLOW, f"{way} at {speed:g} MB/s, wanted {floor:g}", speed, floor, "MB/s")


def _judge(context: Context, target: Facts) -> Iterator[Finding]:
    mount = target.get("mount", "?")
    context = context.of({"mount": mount}, mount)
    if target.get("wrong"):
        message = f"what was read is not what was written, at {target['wrong']}"
        remedy = Remedy.REPLACE if target.get("kind") == "instance-store" else Remedy.CONTACT_SUPPORT
        yield context.fail(WRONG_DATA, message, target["wrong"], "what was written", remedy=remedy)
    elif target.get("error"):
        message = f"writing and reading failed: {target['error']}"
        yield context.fail(IO_ERROR, message, target["error"], "what was written")
    elif target.get("refused"):
        read_only = "read-only" in target["refused"]
        message = f"not tested, {target['refused']}"
        yield context.skip(skips.READ_ONLY.because(message)) if read_only else context.unknown(REFUSED, message)
    elif not target.get("verified") or not target.get("write_mb_s") or not target.get("read_mb_s"):
        yield context.unknown(NOTHING_WRITTEN, "nothing was written and compared")
    else:
        yield from _speed(context, target)


def evaluate(context: Context) -> Iterator[Finding]:
    """Wrong content and errors fail; a slow file system warns, because its speed is the site's choice of size."""
    targets = context.facts("fs_io")["targets"]
    if not targets:
        yield context.skip(skips.NO_FILE_SYSTEM.because("no Lustre, instance-store or named file system is mounted"))
        return
    findings = [finding for target in targets for finding in _judge(context, target)]
    yield from findings
    good = [target for target in targets if target.get("verified")]
    if good and not any(finding.remedy is not Remedy.NONE for finding in findings):
        figures = ", ".join(f"{t['mount']} {t['write_mb_s']:g} and {t['read_mb_s']:g}" for t in good)
        yield context.ok(f"content right; MB/s written and read: {figures}", measured=len(good))


CHECK = Check(
    id="fs_io",
    order=570,
    title="File-system write and read",
    what="A file written to each instance-store, Lustre and named file system, read back and compared byte by byte.",
    why="A mounted file system can hang, refuse or corrupt the first checkpoint; a slow one stalls every job.",
    remedy="Wrong content or errors on the instance store: replace the node; on FSx: open a case. Too full: free "
    "space. Slow: compare with other nodes, then look at the file system's throughput capacity.",
    do=(
        "On FSx: open a case. Too full: free space. Slow: compare with other nodes, then look at the file system's "
        "throughput capacity."
    ),
    out_of_service="Yes: data that was written does not come back as it was.",
    first="df -h; dmesg | tail",
    source="open(2) O_TMPFILE and O_DIRECT; AWS FSx for Lustre user guide, performance",
    needs=("fs_io",),
    tags=("host", "storage"),
    level="standard",
    thresholds=(
        Threshold(
            "min_write_mb_s", 50, "MB/s", "least write speed of one stream; 0 sets no floor",
            "site choice: below the baseline of the smallest FSx for Lustre file system on SSD (60 MB/s)",
            0,
        ),
        Threshold(
            "min_read_mb_s", 50, "MB/s", "least read speed of one stream; 0 sets no floor",
            "site choice: below the baseline of the smallest FSx for Lustre file system on SSD (60 MB/s)",
            0,
        ),
    ),
    skips=(skips.NO_FILE_SYSTEM, skips.READ_ONLY),
    evaluate=evaluate,
)  # fmt: skip
