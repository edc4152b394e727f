"""Directories of the bed are removed without walking into what is mounted below them."""

import shutil
import subprocess
from pathlib import Path

from .layout import BedError


def below(directory: Path) -> list[str]:
    """Mount points at or below a directory, the innermost first (proc_pid_mountinfo(5): octal for blanks)."""
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [row.split()[4].encode().decode("unicode_escape") for row in rows]
    inside = [point for point in points if Path(point).is_relative_to(directory.resolve())]
    return sorted(inside, key=len, reverse=True)


def release(directory: Path) -> None:
    """Unmount everything below: debootstrap leaves /proc mounted in its target when it is killed.

    Raises BedError for what stays: a recursive removal would go through it into the outer machine's own files.
    """
    for point in below(directory):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
    left = below(directory)
    if left:
        raise BedError(f"seen: {', '.join(left)} still mounted; wanted: nothing mounted there; do: umount them as root")


def remove(directory: Path) -> None:
    """Remove a directory with everything in it and nothing else."""
    release(directory)
    shutil.rmtree(directory, ignore_errors=True)
