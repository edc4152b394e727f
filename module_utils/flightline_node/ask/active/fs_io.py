"""Write a file on each data file system, read it back, compare every byte.

The file has no name (O_TMPFILE), or loses it at once where the file system cannot do that: the kernel frees it when
this process ends, however it ends. It is bounded in size and time, and a file system that it would fill is refused.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..files import contents
from . import stored

FILE = "fs-io.json"
OPTION = "fs_io_mounts"
BLOCK = 4 << 20
STAMP_BYTES = 16
LEAST_BYTES = 4 * BLOCK
KEEP_FREE, MOST_OF_FREE = 0.05, 0.1
"""A file system with less than this share free is refused; of what is free this share is written at most."""
READ_SHARE = 2.0
"""Reading may take this many times the time of writing; what was not read by then is not compared."""
_INSTANCE_STORE = "Instance Storage"
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
Target = Dict[str, Any]


@dataclass(frozen=True)
class Bounds:
    """How much is written to each file system, and for how long at most."""

    size_bytes: int
    write_s: float


SHORT, LONG = Bounds(1 << 30, 10.0), Bounds(16 << 30, 60.0)


def _disks(block: str, name: str, depth: int = 4) -> Iterator[str]:
    """The disks under a block device: itself, a partition's disk, the members of a RAID or volume."""
    slaves = sorted(os.listdir(f"{block}/{name}/slaves")) if Path(f"{block}/{name}/slaves").is_dir() else []
    if slaves and depth:
        for slave in slaves:
            yield from _disks(block, slave, depth - 1)
    yield name.split("p")[0] if name.startswith("nvme") else name


def _on_instance_store(root: str, mount: str) -> bool:
    """Do all disks under a mount say that they are the instance's own?"""
    try:
        device = Path(root, mount.lstrip("/")).stat().st_dev
    except OSError:
        return False
    link = os.path.join(root, f"sys/dev/block/{os.major(device)}:{os.minor(device)}")
    block = os.path.join(root, "sys/class/block")
    disks: Set[str] = set(_disks(block, os.path.basename(os.path.realpath(link)))) if Path(link).exists() else set()
    leaves = {disk for disk in disks if disk.startswith("nvme")}
    return bool(leaves) and all(_INSTANCE_STORE in (contents(f"{block}/{disk}/device/model") or "") for disk in leaves)


def targets(root: str, named: Sequence[str]) -> List[Target]:
    """The file systems to test: Lustre, the instance store, and those that the site names."""
    found: Dict[str, Target] = {}
    for line in (contents(os.path.join(root, "proc/mounts")) or "").splitlines():
        words = line.split()
        if len(words) < 4:
            continue
        mount, fstype, options = words[1].replace("\\040", " "), words[2], words[3].split(",")
        kind = "named" if mount in named else "lustre" if fstype == "lustre" else ""
        if not kind and words[0].startswith("/dev/") and _on_instance_store(root, mount):
            kind = "instance-store"
        if kind:
            found[mount] = {"mount": mount, "fstype": fstype, "kind": kind}
            if "ro" in options:
                found[mount]["refused"] = "mounted read-only"
    absent: List[Target] = [
        {"mount": mount, "kind": "named", "error": "not mounted"} for mount in named if mount not in found
    ]
    return [*found.values(), *absent]


def room(directory: str, bounds: Bounds) -> Tuple[int, str]:
    """How much may be written here, or why nothing may."""
    state = os.statvfs(directory)
    total, free = state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize
    size = min(bounds.size_bytes, int(free * MOST_OF_FREE)) // BLOCK * BLOCK
    if free < KEEP_FREE * total or size < LEAST_BYTES:
        return 0, f"{free >> 20} of {total >> 20} MiB free: nearly full"
    return size, ""


def nameless(directory: str, flags: int = 0) -> int:
    """Open a file that nobody sees and that vanishes with this process. Raises OSError."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | flags, 0o600)
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
    path = Path(directory, f".flightline-io-{os.uname().nodename}-{os.getpid()}")
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o600)
    finally:
        # Also when that failed: where O_DIRECT is not possible the kernel makes the file before it says so.
        path.unlink(missing_ok=True)


def _open(directory: str) -> Tuple[int, bool]:
    """The file, past the page cache where the file system can do that (tmpfs and some network ones cannot)."""
    try:
        return nameless(directory, os.O_DIRECT), True
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return nameless(directory), False


class _Blocks:
    """Blocks of noise, each stamped with its number so that one in the wrong place is noticed. Page-aligned."""

    def __init__(self) -> None:
        self.wanted, self.got = mmap.mmap(-1, BLOCK), mmap.mmap(-1, BLOCK)
        self.wanted[:] = os.urandom(BLOCK)
        # Comparing slices would copy 8 MiB a block and cost more than the reading.
        self._memory = [ctypes.addressof(ctypes.c_char.from_buffer(part)) for part in (self.wanted, self.got)]
        self._compare = ctypes.CDLL(None).memcmp

    def stamp(self, number: int) -> None:
        """Make `wanted` the block of this number."""
        self.wanted[:STAMP_BYTES] = number.to_bytes(STAMP_BYTES, "little")

    def differ(self) -> bool:
        """Is what was read not what was written?"""
        first, second = (ctypes.c_void_p(address) for address in self._memory)
        return bool(self._compare(first, second, ctypes.c_size_t(BLOCK)))


def _write(handle: int, bounds: Bounds, blocks: _Blocks) -> int:
    """Write whole blocks until the size or the time is reached; how many."""
    until, number = time.monotonic() + bounds.write_s, 0
    while number * BLOCK < bounds.size_bytes and (number == 0 or time.monotonic() < until):
        blocks.stamp(number)
        if os.pwrite(handle, blocks.wanted, number * BLOCK) != BLOCK:
            raise OSError(errno.EIO, "a block was written in part")
        number += 1
    os.fsync(handle)
    return number


def _read(handle: int, count: int, bounds: Bounds, blocks: _Blocks) -> Tuple[int, float, str]:
    """Read and compare: blocks read, the time that reading took, where the first difference is or ''."""
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    spent_s, wrong, until = 0.0, "", time.monotonic() + READ_SHARE * bounds.write_s
    for number in range(count):
        began = time.monotonic()
        if number and began > until:
            return number, spent_s, wrong
        if os.preadv(handle, [blocks.got], number * BLOCK) != BLOCK:
            raise OSError(errno.EIO, f"block {number} was read in part")
        spent_s += time.monotonic() - began
        blocks.stamp(number)
        if not wrong and blocks.differ():
            wrong = _difference(number, blocks)
    return count, spent_s, wrong


def _difference(number: int, blocks: _Blocks) -> str:
    first = next(at for at in range(BLOCK) if blocks.got[at] != blocks.wanted[at])
    wrote, read = blocks.wanted[first], blocks.got[first]
    return f"byte {number * BLOCK + first}: wrote 0x{wrote:02x}, read 0x{read:02x}"


def measure(directory: str, bounds: Bounds) -> Target:
    """Write and read one file. Raises OSError when the file system answers with an error."""
    size, refused = room(directory, bounds)
    if refused:
        return {"refused": refused}
    handle, direct = _open(directory)
    try:
        blocks, began = _Blocks(), time.monotonic()
        written = _write(handle, Bounds(size, bounds.write_s), blocks)
        write_s = time.monotonic() - began
        read, read_s, wrong = _read(handle, written, bounds, blocks)
    finally:
        os.close(handle)
    found = {
        "written_bytes": written * BLOCK,
        "read_bytes": read * BLOCK,
        "write_mb_s": round(written * BLOCK / 1e6 / max(write_s, 1e-9), 1),
        "read_mb_s": round(read * BLOCK / 1e6 / max(read_s, 1e-9), 1),
        "direct": direct,
        "verified": not wrong,
    }
    return {**found, "wrong": wrong} if wrong else found


def _tested(root: str, target: Target, bounds: Bounds) -> Target:
    if "refused" in target or "error" in target:
        return target
    try:
        return {**target, **measure(os.path.join(root, target["mount"].lstrip("/")), bounds)}
    except OSError as error:
        if error.errno in _NOT_ALLOWED:  # says nothing about the file system
            return {**target, "refused": f"not writable by user {os.geteuid()}: {error.strerror}"}
        return {**target, "error": f"{error.strerror or error} (errno {error.errno})"}


def run(root: str, bounds: Bounds, named: Sequence[str] = ()) -> Dict[str, Any]:
    """Test every target, one after another."""
    return {"targets": [_tested(root, target, bounds) for target in targets(root, named)]}


def _reader(root: str, bounds: Bounds, named: Optional[Sequence[str]]) -> str:
    answer = stored(root, FILE)
    return answer if answer is not None else json.dumps(run(root, bounds, named or ()), indent=1)


def short(root: str, named: Sequence[str] = ()) -> str:
    """Level standard."""
    return _reader(root, SHORT, named)


def long(root: str, named: Sequence[str] = ()) -> str:
    """Level deep: more than a disk's or a server's cache holds."""
    return _reader(root, LONG, named)
