"""mounts: declared ones there or not, an automount, read-only disks and read-only bind mounts."""

from functools import partial

from tests.harness import BROKEN
from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, REPLACE, UNKNOWN, WARN, judging, row, table

FSX = {"mounts": read("mounts", "proc/fsx-mounts.txt")}


def mounted(*rows):
    keys = ("source", "mount", "fstype", "options")
    return {"mounts": {"mounts": [dict(zip(keys, row, strict=True)) for row in rows]}}


ROWS = mounted(
    ("/dev/nvme0n1p1", "/", "ext4", ["rw"]),
    ("/dev/md0", "/scratch", "xfs", ["ro"]),
    ("/dev/sdb", "/boot", "ext4", ["ro"]),
)
judge = partial(judging, "mounts")

test_mounts = table(
    row("present", judge(FSX, expected={"mounts": ["/fsx/", "/scratch"]}), PASS, starts="2 declared mounts"),
    row("missing", judge(FSX, expected={"mounts": ["/fsx", "/checkpoints"]}), FAIL, device={"mount": "/checkpoints"},
        remedy=FIX_CONFIG),
    row("automount is not proven", judge(FSX, expected={"mounts": ["/efs"]}), WARN, device={"mount": "/efs"}),
    # /srv/shared data is a read-only bind mount
    row("healthy machine with nothing declared",
        [judge({"mounts": read("mounts", "proc/debian12-mounts.txt")}), judge(FSX)], PASS),
    row("read only root", judge(mounted(("/dev/nvme0n1p1", "/", "ext4", ["ro", "relatime"]))), FAIL,
        device={"mount": "/"}, remedy=REPLACE),
    row("other read only disk", judge(ROWS), WARN, device={"mount": "/scratch"}),
    row("other read only disk", judge(ROWS, expected={"mounts": ["/scratch"]}), FAIL),
    *(row("ext4 since Linux 6 15 keeps rw after an error",
        judge(mounted(("/dev/nvme0n1p1", "/", "ext4", ["rw", "relatime", option]))), FAIL, device={"mount": "/"})
        for option in ("emergency_ro", "shutdown")),
    row("ext4 since Linux 6 15 keeps rw after an error",
        judge(mounted(("/dev/nvme0n1p1", "/", "ext4", ["rw", "errors=remount-ro"]))), PASS),
    row("unknown", judge({"mounts": BROKEN}), UNKNOWN),
)  # fmt: skip
