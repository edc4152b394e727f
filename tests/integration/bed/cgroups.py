"""A control group of its own for each machine.

Without one all machines would keep their services in the same groups, and a service that starts on one fails when
another's systemd removes that group at the same moment (status 219/CGROUP).
"""

from contextlib import suppress
from pathlib import Path

HIERARCHIES = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
"""The unified hierarchy alone, or systemd's own of version 1 beside it, as the outer machine has them."""

ENTER = """\
for group in {hierarchies}; do
    if [ -e "$group/cgroup.procs" ] && mkdir -p "$group/flightline-$3"; then
        echo 0 > "$group/flightline-$3/cgroup.procs"
    fi
done
""".format(hierarchies=" ".join(HIERARCHIES))
"""Shell lines that put the shell into the group of the machine named by $3."""


def remove(name: str) -> None:
    """Remove the groups of a machine that has ended."""
    for hierarchy in HIERARCHIES:
        group = Path(hierarchy) / f"flightline-{name}"
        with suppress(OSError):  # a group that is busy is left: the next machine of that name uses it again
            for inner in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                inner.rmdir()
            group.rmdir()
