"""Write to and read from a shared file system at the same moment as the other nodes, as fs_io does alone."""

from __future__ import annotations

import time
from typing import Any, Dict, Set

from . import fs_io

MOST_WAIT_S = 600.0
_MOUNTS = "/proc/self/mounts"


def mounts() -> Set[str]:
    """Where something is mounted: a bind mount is one, which the numbers of devices do not show."""
    with open(_MOUNTS, encoding="utf-8", errors="replace") as stream:
        return {line.split()[1].replace("\\040", " ") for line in stream if len(line.split()) > 1}


def run(mount: str, start_at: float, seconds: float, size_mib: int) -> Dict[str, Any]:
    """Wait for the moment (seconds since 1970), then write for so long and read it back.

    {late_s, write_mb_s, read_mb_s, verified, ...}, or {error} or {refused} with the reason. late_s: how long after the
    moment it began, for a node that was asked too late measures another moment than the others.
    """
    if mount not in mounts():
        return {"error": f"{mount} is no mount on this node"}
    wait_s = start_at - time.time()
    if wait_s > MOST_WAIT_S:
        return {"error": f"asked to wait {wait_s:.0f} s, {MOST_WAIT_S:.0f} at most: look at the clocks"}
    if wait_s > 0:
        time.sleep(wait_s)
    late_s = round(max(time.time() - start_at, 0.0), 3)
    try:
        return {"late_s": late_s, **fs_io.measure(mount, fs_io.Bounds(size_mib << 20, seconds))}
    except OSError as error:
        return {"error": f"{error.strerror or error} (errno {error.errno})"}
