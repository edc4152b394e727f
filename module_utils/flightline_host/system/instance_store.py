"""One file system over the instance-store disks of an EC2 instance.

The disks are blank after every stop and start, so the same code runs from the Ansible module and at every boot:
python3 -m flightline_host.system.instance_store SETTINGS.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import AbstractSet, Any, Dict, List, Mapping, NamedTuple, Optional

from ..host import Host, Problem
from ..outcome import Outcome

LINKS = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*"
"""The names that udev gives to instance-store disks (EC2 user guide: model 'Amazon EC2 NVMe Instance Storage')."""
LABEL = "flightline"
ARRAY = "/dev/md/flightline"
MEMBER = "linux_raid_member"
VOLUME = "LVM2_member"
IMAGE_PATH = "/opt/dlami/nvme"
"""Where the Deep Learning AMI's service mounts a volume group over the instance-store disks (its release notes)."""
NOT_FOUND = 2
_ERASE = "save what is on it, then set instance_store_erase or run wipefs --all on it"


class Content(NamedTuple):
    """What blkid sees on a device; kind is empty for a blank one."""

    kind: str = ""
    label: str = ""

    @property
    def ours(self) -> bool:
        """A member of our array carries HOST:NAME as its label (mdadm(8), --name)."""
        return self.label.rpartition(":")[2] == LABEL


class DiskState(NamedTuple):
    """The disks, the device of the file system, and what is there already."""

    disks: List[str]
    device: str
    assembled: bool
    blank: bool
    content: Content
    mounted: str
    adopted: bool = False


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Make the array, the file system and the mount, whatever is missing; an image's own store is taken as it is."""
    state = look(host, wanted)
    before = _shown(state, wanted)
    plan = _plan(host, state, wanted)
    kind = state.content.kind if state.adopted else "xfs"
    after = {**before, "device": state.device, "type": kind, "mounted": True}
    if not check:
        for argv in plan:
            host.change(argv, f"instance store on {wanted['path']}", f"journalctl -k -b; lsblk; look at {state.device}")
    return Outcome(
        bool(plan), before, after if plan else before, {**after, "disks": state.disks, "adopted": state.adopted}
    )


def disks(host: Host) -> List[str]:
    """Instance-store disks, each once: udev makes several links to one disk."""
    names = {host.link(path) for path in host.glob(LINKS) if not re.search(r"-part\d+$", path)}
    return [f"/dev/{name}" for name in sorted(names - {""})]


def look(host: Host, wanted: Mapping[str, Any]) -> DiskState:
    """What there is. Raises Problem when it is not what the inventory says, or holds somebody's data."""
    found = disks(host)
    _enough(found, wanted["disks"])
    contents = {disk: _content(host, disk) for disk in found}
    if not wanted["erase"] and all(content.kind == VOLUME for content in contents.values()):
        return _image_store(host, wanted, found)
    single = len(found) == 1
    device = found[0] if single else ARRAY
    if not wanted["erase"]:
        _nothing_foreign(contents, "xfs" if single else MEMBER)
    blank = [disk for disk, content in contents.items() if not content.ours]
    if blank and len(blank) < len(found) and not wanted["erase"]:
        raise Problem(
            f"{', '.join(blank)} without the array that the other disks have",
            f"one array of {len(found)} disks",
            _ERASE,
        )
    assembled = single or host.exists(ARRAY)
    content = contents[device] if single else _content(host, device) if assembled else Content()
    return DiskState(found, device, assembled, bool(blank), content, _mounted(host, wanted["path"]))


def _image_store(host: Host, wanted: Mapping[str, Any], found: List[str]) -> DiskState:
    """The image's service made it and again at every boot; here it is mounted a second time."""
    device = _mounted(host, IMAGE_PATH)
    if not device:
        raise Problem(
            f"{', '.join(found)} in a volume group, and nothing mounted on {IMAGE_PATH}",
            "the image's own store mounted, blank disks, or our own file system",
            f"systemctl start dlami-nvme (the image's service), then run again; or {_ERASE}",
        )
    return DiskState(found, device, True, False, Content(_kind(host, IMAGE_PATH)), _mounted(host, wanted["path"]), True)


def _kind(host: Host, path: str) -> str:
    row = _row(host, path)
    return row[2] if len(row) > 2 else ""


def _enough(found: List[str], expected: int) -> None:
    if not found or (expected and len(found) != expected):
        raise Problem(
            f"{len(found)} instance-store disks" if found else "no instance-store disks",
            f"{expected} of them" if expected else "at least one",
            "use an instance type with NVMe instance storage, correct instance_store_disks, or take the host out of "
            "the group instance_store; a lost disk means a new instance",
        )


def _nothing_foreign(contents: Mapping[str, Content], kind: str) -> None:
    for disk, content in contents.items():
        if content.kind and not (content.ours and content.kind == kind):
            raise Problem(f"{disk} holds {content.kind} {content.label}".rstrip(), "a blank disk or our own", _ERASE)


def _content(host: Host, device: str) -> Content:
    """Probe the device itself: a cached answer would outlive a wiped disk."""
    answer = host.ask(["blkid", "--probe", "--output", "export", device])
    if answer.rc not in (0, NOT_FOUND):
        raise Problem(
            f"blkid {device}: {answer.said}", "a readable disk", "journalctl -k -b; a broken disk: new instance"
        )
    pairs = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)
    return Content(pairs.get("TYPE") or pairs.get("PTTYPE", ""), pairs.get("LABEL", ""))


def _row(host: Host, path: str) -> List[str]:
    """The line of /proc/mounts that counts for a path: source, path, type, options."""
    rows = (line.split() for line in (host.read("/proc/self/mounts") or "").splitlines())
    found = [row for row in rows if len(row) > 1 and row[1] == path]
    return found[-1] if found else []


def _mounted(host: Host, path: str) -> str:
    return next(iter(_row(host, path)), "")


def _drifted(host: Host, wanted: Mapping[str, Any], adopted: bool) -> List[List[str]]:
    """What a mounted store lacks: options that somebody's remount took away, or its mode."""
    path, plan = wanted["path"], []
    have = set((_row(host, path) + [""] * 4)[3].split(","))
    if not adopted and any(not _holds(option, have) for option in wanted["options"].split(",")):
        plan.append(["mount", "-o", f"remount,{wanted['options']}", path])
    if host.mode(path) not in (None, int(wanted["mode"], 8)):
        plan.append(["chmod", wanted["mode"], path])
    return plan


def _holds(option: str, have: AbstractSet[str]) -> bool:
    """The file system shows discard and says nothing of nodiscard, its default (xfs(5))."""
    return "discard" not in have if option == "nodiscard" else option in have or option in ("", "defaults")


def _plan(host: Host, state: DiskState, wanted: Mapping[str, Any]) -> List[List[str]]:
    if state.mounted:
        return _drifted(host, wanted, state.adopted)
    path, several = wanted["path"], len(state.disks) > 1
    if state.adopted:
        bind = ["mount", "--bind", IMAGE_PATH, path]
        return [["mkdir", "--parents", path], bind, ["chmod", wanted["mode"], path]]
    fresh = state.blank or not (state.content.ours and state.content.kind == "xfs")
    plan: List[List[str]] = []
    if state.blank and wanted["erase"]:
        plan.append(["wipefs", "--all", *state.disks])
    if several and state.blank:
        count = f"--raid-devices={len(state.disks)}"
        plan.append(["mdadm", "--create", ARRAY, "--level=0", f"--name={LABEL}", count, "--run", *state.disks])
    elif several and not state.assembled:
        plan.append(["mdadm", "--assemble", ARRAY, *state.disks])
        fresh = False  # what is on an array that stood still is seen by mount
    if fresh:
        plan.append(["mkfs.xfs", "-q", "-f", "-L", LABEL, state.device])
    plan.append(["mkdir", "--parents", path])
    plan.append(["mount", "-t", "xfs", "-o", wanted["options"], state.device, path])
    plan.append(["chmod", wanted["mode"], path])
    return plan


def _shown(state: DiskState, wanted: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "path": wanted["path"],
        "device": state.mounted or (state.device if state.content.kind else ""),
        "type": state.content.kind,
        "mounted": bool(state.mounted),
    }


def main(argv: Optional[List[str]] = None) -> int:
    """At boot: by the settings that the role wrote."""
    try:
        wanted = json.loads(Path((argv or sys.argv[1:])[0]).read_text(encoding="utf-8"))
        outcome = ensure(Host(), wanted, check=False)
    except Problem as problem:
        sys.stderr.write(f"flightline-instance-store: {problem}\n")
        return 1
    sys.stdout.write(f"{json.dumps(outcome.facts, sort_keys=True)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
