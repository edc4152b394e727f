"""nvme: all disks, one missing, too small, EBS not counted, disks without a model."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

MODEL = "Amazon EC2 NVMe Instance Storage"


def disks(count, size=3840755982336, model=MODEL):
    return [
        {"name": f"nvme{number}n1", "type": "disk", "size_bytes": size, "model": model, "serial": f"AWS{number}"}
        for number in range(1, count + 1)
    ]


EBS = {"name": "nvme0n1", "type": "disk", "size_bytes": 10**11, "model": "Amazon Elastic Block Store"}


def judged(found, kind="p5.48xlarge"):
    return judge_facts("nvme", {"lsblk": {"devices": [EBS, *found]}}, kind)


def test_all_there():
    assert only(judged(disks(8)), Status.PASS).measured == 8
    assert (
        status(judge_facts("nvme", {"lsblk": read("lsblk", "lsblk/p4d-strings.json")}, "p4d.24xlarge")) is Status.PASS
    )
    assert (
        status(judge_facts("nvme", {"lsblk": read("lsblk", "lsblk/g5-mountpoints.json")}, "g5.4xlarge")) is Status.PASS
    )


@pytest.mark.parametrize("count", [0, 7])
def test_missing(count):
    finding = only(judged(disks(count)), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (count, 8, Remedy.REPLACE)


def test_too_many_is_the_wrong_type():
    assert only(judged(disks(9)), Status.FAIL).remedy is Remedy.FIX_CONFIG


def test_one_too_small():
    found = [*disks(7), {"name": "nvme8n1", "type": "disk", "size_bytes": 10**12, "model": MODEL, "serial": "AWS8"}]
    (finding,) = judged(found)
    assert finding.status is Status.FAIL
    assert finding.device == {"name": "nvme8n1", "serial": "AWS8"}
    assert (finding.measured, finding.expected) == (1000, 3800)


def test_unknown():
    assert status(judged(disks(7, model=None))) is Status.UNKNOWN
    assert status(judged(disks(8, size=500 * 10**9, model=None))) is Status.UNKNOWN
    assert status(judged(disks(8, size=None))) is Status.UNKNOWN


def test_types_without_instance_store():
    assert status(judged([], "inf2.48xlarge")) is Status.SKIP
    assert status(judged([], "none")) is Status.SKIP


def test_disks_without_a_model_are_told_by_their_size():
    nameless = [*disks(8, model=None), {"name": "nvme9n1", "type": "disk", "size_bytes": 10**11}]
    assert "8 disks without a model" in only(judged(nameless), Status.PASS).message


@pytest.mark.parametrize(("size", "wanted"), [(3610 * 10**9, Status.PASS), (3610 * 10**9 - 1, Status.FAIL)])
def test_ninety_five_percent_of_the_size_is_the_least(size, wanted):
    assert status(judged(disks(8, size))) is wanted


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (3610 * 10**9 - 1, Status.UNKNOWN),
        (3610 * 10**9, Status.PASS),
        (3990 * 10**9, Status.PASS),
        (3990 * 10**9 + 1, Status.UNKNOWN),
    ],
)
def test_a_disk_without_a_model_is_taken_for_the_instance_store_within_five_percent(size, wanted):
    assert status(judged(disks(8, size, model=None))) is wanted


def test_a_disk_without_a_model_beside_all_that_are_wanted_is_another_one():
    (finding,) = judged([*disks(8), {"name": "nvme9n1", "type": "disk", "size_bytes": 10**11}])
    assert (finding.status, finding.message) == (Status.PASS, "8 instance-store disks")
