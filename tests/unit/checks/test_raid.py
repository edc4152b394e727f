"""raid: whole, degraded, stopped and rebuilding arrays."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import mdstat
from tests.harness import BROKEN, judge_facts, only, status
from tests.unit.parsers.hosttools import read

STRIPE = "md127 : active raid0 nvme2n1[1] nvme1n1[0]\n      7500179456 blocks super 1.2 512k chunks\n"


def judge(text):
    return judge_facts("raid", {"sysfs": {"md": mdstat.arrays(text)}})


def test_whole():
    assert only(judge(f"Personalities : [raid0]\n{STRIPE}\nunused devices: <none>"), Status.PASS).measured == 1
    mirror = "md0 : active (auto-read-only) raid1 sdb1[1] sda1[0]\n      1048512 blocks [2/2] [UU]\n"
    assert status(judge(mirror)) is Status.PASS


@pytest.mark.parametrize(
    ("text", "words", "unit"),
    [
        (STRIPE.replace("active", "broken"), "md127 does not run: broken", ""),
        ("md0 : inactive nvme1n1[0](S)\n      1 blocks\n", "md0 does not run: inactive", ""),
        (STRIPE.replace("nvme1n1[0]", "nvme1n1[0](F)"), "nvme1n1 failed", ""),
        ("md5 : active raid5 sda[0] sdb[1]\n      9 blocks level 5 [3/2] [UU_]\n", "2 of 3 disks", "disks"),
    ],
)
def test_not_whole(text, words, unit):
    finding = only(judge(text), Status.FAIL)
    assert finding.unit == unit
    assert words in finding.message
    assert finding.remedy is Remedy.REPLACE


def test_rebuilding_warns():
    text = "md0 : active raid1 sdb1[1] sda1[0]\n      1 blocks [2/2] [UU]\n      [=>...]  resync = 12.6% (1/8)\n"
    assert only(judge(text), Status.WARN).measured == "resync = 12.6%"


def test_fixture():
    findings = judge_facts("raid", {"sysfs": read("sysfs", "sysfs/p5-storage.json")})
    assert only(findings, Status.FAIL).device == {"name": "md1"}


def test_none_is_no_pass():
    assert status(judge("Personalities :\nunused devices: <none>")) is Status.SKIP
    assert status(judge_facts("raid", {"sysfs": {}})) is Status.SKIP
    assert status(judge_facts("raid", {"sysfs": BROKEN})) is Status.UNKNOWN


def test_level_and_members_are_shown():
    assert only(judge(STRIPE), Status.PASS).message == "whole: md127 (raid0, 2)"
