"""Are the site's file systems mounted, and none turned read-only?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Check, Finding, Reason, Remedy
from ..context import Context

NOT_MOUNTED = Reason("not_mounted", "a file system is not mounted", Remedy.FIX_CONFIG, "file system")
NO_REPLY_IN_TIME = Reason("no_reply_in_time", "a mount does not answer", device="file system")
TURNED_READ_ONLY = Reason(
    "turned_read_only", "a file system of the host turned read-only", Remedy.REPLACE, "file system"
)
READ_ONLY_MOUNT = Reason("read_only_mount", "a file system is read-only", device="file system")

_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"})
_READ_ONLY = frozenset({"ro", "emergency_ro", "shutdown"})
"""ext4 since Linux 6.15 keeps "rw" after an error and adds the second; the third is a file system shut down."""
_NOT_OURS = ("/var/lib/kubelet/", "/snap/", "/media/", "/boot", "/run/")


def evaluate(context: Context) -> Iterator[Finding]:
    """Declared mount points, then local file systems whose every mount is read-only."""
    entries: List[Dict[str, Any]] = context.facts("mounts").get("mounts", [])
    wanted = [path.rstrip("/") or "/" for path in context.expected.mounts]
    # A later mount hides an earlier one at the same place.
    mounted = {entry["mount"]: entry for entry in entries}
    findings = [*_declared(context, wanted, mounted), *_read_only(context, wanted, entries)]
    yield from findings
    if not findings:
        yield context.ok(f"{len(wanted)} declared mounts present, no local file system is read-only")


def _declared(context: Context, wanted: List[str], mounted: Dict[str, Dict[str, Any]]) -> Iterator[Finding]:
    for path in wanted:
        entry, device = mounted.get(path), {"mount": path}
        if entry is None:
            rest = {"measured": "not mounted", "expected": "mounted"}
            yield context.fail(NOT_MOUNTED, f"{path} is not mounted", device=device, **rest)
        elif entry["fstype"] == "autofs":
            message = f"{path} is an automount that nothing has opened yet: not proven to work"
            yield context.warn(NO_REPLY_IN_TIME, message, device=device)


def _read_only(context: Context, wanted: List[str], entries: List[Dict[str, Any]]) -> Iterator[Finding]:
    writable = {entry["source"] for entry in entries if not _READ_ONLY & set(entry["options"])}
    for entry in entries:
        mount, device = entry["mount"], {"mount": entry["mount"]}
        if entry["fstype"] not in _LOCAL or entry["source"] in writable or mount.startswith(_NOT_OURS):
            continue  # written to elsewhere: a read-only bind mount
        evidence = [f"{entry['source']} {mount} {entry['fstype']} {','.join(entry['options'])}"]
        if mount == "/" or mount in wanted:
            message = f"{mount} is read-only: the kernel turns it so after an I/O error"
            rest = {"measured": "read-only", "expected": "writable"}
            yield context.fail(TURNED_READ_ONLY, message, device=device, evidence=evidence, **rest)
        else:
            yield context.warn(READ_ONLY_MOUNT, f"{mount} is read-only", device=device, evidence=evidence)


CHECK = Check(
    id="mounts",
    order=580,
    title="Mounts",
    what="The mount points that the inventory declares, and local file systems that turned read-only.",
    why="Without its mount a job writes checkpoints into the root disk; a read-only root fails everything later.",
    remedy="Mount it (see its mount unit). Read-only after an I/O error: replace the volume or the instance.",
    do="Mount it (see its mount unit).",
    out_of_service="Yes where the site declares the mount, or a file system turned read-only after an error.",
    source="the site's inventory; ext4(5) errors=remount-ro",
    needs=("mounts",),
    tags=("host", "storage"),
    evaluate=evaluate,
)
