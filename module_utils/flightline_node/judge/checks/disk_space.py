"""Is there room on the node's own disks?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...model import Check, Facts, Finding, Reason, Remedy, Status, Threshold
from ..context import Context

NO_REPLY = Reason("no_reply", "a mounted file system does not answer")
FULL = Reason("full", "a file system is nearly full", Remedy.FIX_CONFIG, "file system")
NO_INODES = Reason("no_inodes", "a file system is nearly out of inodes", Remedy.FIX_CONFIG, "file system")
NONE_LISTED = Reason("none_listed", "no local file system is listed")
NO_USAGE = Reason("no_usage", "a file system's usage is not printed", device="file system")

KIB_PER_GIB = 1 << 20
_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs"})
_IMAGES = frozenset({"squashfs", "erofs", "iso9660", "udf", "cramfs"})
# Firmware partition, snaps, media, and the volumes of pods, which are their owners' affair.
_NOT_OURS = (
    "/boot/efi",
    "/efi",
    "/snap/",
    "/run/",
    "/media/",
    "/cdrom",
    "/var/lib/kubelet/",
    "/sys/",
    "/proc/",
    "/dev/",
)
# df run without root's rights says so of file systems that nothing here wants to know about.
_HARMLESS = ("permission denied", "operation not permitted", "no such file")


def evaluate(context: Context) -> Iterator[Finding]:
    """Blocks and inodes of every writable local file system, and what df could not read."""
    facts = context.facts("df")
    for error in facts.get("errors", []):
        if not any(word in error.lower() for word in _HARMLESS):
            rest = {"measured": "no answer", "expected": "an answer", "evidence": [error]}
            yield context.fail(NO_REPLY, f"a mounted file system does not answer: {error}", **rest)
    judged = _local(context, facts)
    findings = [finding for entry in judged for finding in _judge(context, entry)]
    yield from findings
    if not judged:
        yield context.unknown(NONE_LISTED, "df lists no local file system, not even /")
    elif not findings:
        fullest = max(judged, key=lambda entry: entry["used_percent"])
        percent = fullest["used_percent"]
        message = f"fullest of {len(judged)} local file systems: {fullest['mount']} at {percent}%"
        yield context.ok(message, measured=percent, expected=context.threshold("warn_percent"), unit="%")


def _local(context: Context, facts: Facts) -> List[Dict[str, Any]]:
    mounts = {entry["mount"]: entry for entry in (context.optional("mounts") or {}).get("mounts", [])}
    kept: Dict[str, Dict[str, Any]] = {}
    for entry in sorted(facts.get("filesystems", []), key=lambda item: len(item["mount"])):
        mounted = mounts.get(entry["mount"], {})
        if entry.get("size_kib") != 0 and _is_local(entry, entry.get("type") or mounted.get("fstype"), mounted):
            # Bind mounts show one device several times: the shortest path stands for it.
            kept.setdefault(entry.get("filesystem") or entry["mount"], entry)
    return list(kept.values())


def _is_local(entry: Dict[str, Any], fstype: Optional[str], mounted: Dict[str, Any]) -> bool:
    source, mount = str(entry.get("filesystem", "")), entry["mount"]
    if fstype in _IMAGES or source.startswith("/dev/loop"):
        return False  # read-only images are full by design
    if mount == "/":
        return True
    if mount.startswith(_NOT_OURS) or "ro" in mounted.get("options", []):
        return False
    return fstype in _LOCAL if fstype else source.startswith("/dev/")


def _judge(context: Context, entry: Dict[str, Any]) -> Iterator[Finding]:
    mount, device = entry["mount"], {"mount": entry["mount"]}
    used = entry.get("used_percent")
    context.measure("disk_used_percent", used, "%", mount)
    if used is None:
        yield context.unknown(NO_USAGE, f"{mount}: no usage printed", device=device)
    for what, percent in (("full", used), ("out of inodes", entry.get("inodes_used_percent"))):
        status = _status(context, entry, percent, what == "full")
        if status is not Status.PASS:
            wanted = context.threshold("fail_percent" if status is Status.FAIL else "warn_percent")
            message = f"{mount} is {percent}% {what}, wanted under {wanted:g}%"
            rest: Dict[str, Any] = {"device": device, "measured": percent, "expected": wanted, "unit": "%"}
            yield context.because(status, FULL if what == "full" else NO_INODES, message, **rest)


def _status(context: Context, entry: Dict[str, Any], percent: Optional[int], blocks: bool) -> Status:
    if percent is None or percent < context.threshold("warn_percent"):
        return Status.PASS
    free_gib = (entry.get("available_kib") or 0) / KIB_PER_GIB
    roomy = blocks and entry["mount"] != "/" and free_gib >= context.threshold("enough_free_gib")
    return Status.FAIL if percent >= context.threshold("fail_percent") and not roomy else Status.WARN


CHECK = Check(
    id="disk_space",
    order=520,
    title="Disk space",
    what="Used blocks and inodes of the root and every other writable local file system, and what df could not read.",
    why="A full disk kills the job at its first checkpoint or log line, hours in; kubelet evicts pods well before.",
    remedy="Remove old checkpoints, images and logs (du -xh --max-depth=2), or grow the volume.",
    out_of_service="Yes when full: checkpoints and logs fail. Nearly full warns.",
    source="df(1); Kubernetes node-pressure eviction",
    needs=("df",),
    wants=("mounts",),
    tags=("host", "storage"),
    thresholds=(
        Threshold(
            "warn_percent",
            90,
            "%",
            "use that is worth a warning",
            "kubelet evicts pods at nodefs.available < 10%",
            1,
            101,
        ),
        Threshold(
            "fail_percent",
            95,
            "%",
            "use that blocks the node",
            "half of what is left at kubelet's eviction point",
            1,
            101,
        ),
        Threshold(
            "enough_free_gib",
            100,
            "GiB",
            "free space that keeps a data disk from blocking, however full",
            "5% of a 28 TB scratch array is 1.4 TB: room for a checkpoint",
            0,
        ),
    ),
    evaluate=evaluate,
)
