"""raid: whole, degraded, stopped and rebuilding arrays."""

from flightline_node.read.parsers import mdstat
from tests.harness import BROKEN
from tests.unit.parsers.hosttools import read

from .table import FAIL, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table

STRIPE = "md127 : active raid0 nvme2n1[1] nvme1n1[0]\n      7500179456 blocks super 1.2 512k chunks\n"


def judge(text):
    return judging("raid", {"sysfs": {"md": mdstat.arrays(text)}})


test_raid = table(
    row("whole", judge(f"Personalities : [raid0]\n{STRIPE}\nunused devices: <none>"), PASS, measured=1),
    row("whole", judge("md0 : active (auto-read-only) raid1 sdb1[1] sda1[0]\n      1048512 blocks [2/2] [UU]\n"), PASS),
    *(row("not whole", judge(text), FAIL, unit=unit, says=words, remedy=REPLACE)
        for text, words, unit in [
            (STRIPE.replace("active", "broken"), "md127 does not run: broken", ""),
            ("md0 : inactive nvme1n1[0](S)\n      1 blocks\n", "md0 does not run: inactive", ""),
            (STRIPE.replace("nvme1n1[0]", "nvme1n1[0](F)"), "nvme1n1 failed", ""),
            ("md5 : active raid5 sda[0] sdb[1]\n      9 blocks level 5 [3/2] [UU_]\n", "2 of 3 disks", "disks"),
        ]),
    row("rebuilding warns",
        judge("md0 : active raid1 sdb1[1] sda1[0]\n      1 blocks [2/2] [UU]\n      [=>...]  resync = 12.6% (1/8)\n"),
        WARN, measured="resync = 12.6%"),
    row("fixture", judging("raid", {"sysfs": read("sysfs", "sysfs/p5-storage.json")}), FAIL, device={"name": "md1"}),
    row("none is no pass", [judge("Personalities :\nunused devices: <none>"), judging("raid", {"sysfs": {}})], SKIP),
    row("none is no pass", judging("raid", {"sysfs": BROKEN}), UNKNOWN),
    row("level and members are shown", judge(STRIPE), PASS, message="whole: md127 (raid0, 2)"),
)  # fmt: skip
