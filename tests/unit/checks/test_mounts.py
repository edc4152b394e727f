"""mounts: declared ones there or not, an automount, read-only disks and read-only bind mounts."""

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


test_mounts = table(
    row("present", judging("mounts", FSX, expected={"mounts": ["/fsx/", "/scratch"]}), PASS,
        starts="2 declared mounts"),
    row("missing", judging("mounts", FSX, expected={"mounts": ["/fsx", "/checkpoints"]}), FAIL,
        device={"mount": "/checkpoints"}, remedy=FIX_CONFIG),
    row("automount is not proven", judging("mounts", FSX, expected={"mounts": ["/efs"]}), WARN,
        device={"mount": "/efs"}),
    # /srv/shared data is a read-only bind mount
    row("healthy machine with nothing declared",
        [judging("mounts", {"mounts": read("mounts", "proc/debian12-mounts.txt")}), judging("mounts", FSX)],
        PASS),
    row("read only root", judging("mounts", mounted(("/dev/nvme0n1p1", "/", "ext4", ["ro", "relatime"]))), FAIL,
        device={"mount": "/"}, remedy=REPLACE),
    row("other read only disk", judging("mounts", ROWS), WARN, device={"mount": "/scratch"}),
    row("other read only disk", judging("mounts", ROWS, expected={"mounts": ["/scratch"]}), FAIL),
    *(row("ext4 since Linux 6 15 keeps rw after an error",
        judging("mounts", mounted(("/dev/nvme0n1p1", "/", "ext4", ["rw", "relatime", option]))), FAIL,
        device={"mount": "/"})
        for option in ("emergency_ro", "shutdown")),
    row("ext4 since Linux 6 15 keeps rw after an error",
        judging("mounts", mounted(("/dev/nvme0n1p1", "/", "ext4", ["rw", "errors=remount-ro"]))), PASS),
    row("unknown", judging("mounts", {"mounts": BROKEN}), UNKNOWN),
)  # fmt: skip
