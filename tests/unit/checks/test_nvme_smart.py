"""nvme_smart: the controller's warning, spare blocks, wear, media errors; disks that do not answer."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read


def judge(*disks, **rest):
    return judge_facts("nvme_smart", {"nvme_smart": {"disks": list(disks)}}, **rest)


def disk(**values):
    good = {"critical_warning": 0, "available_spare": 100, "spare_threshold": 10, "percentage_used": 1}
    return {"name": "nvme1", "serial": "AWS1", **good, "media_errors": 0, **values}


@pytest.mark.parametrize(
    ("file", "wanted", "remedy"),
    [
        ("reader-p5.json", Status.PASS, Remedy.NONE),
        ("nvme-cli.json", Status.PASS, Remedy.NONE),
        ("nvme-cli-2-failing.json", Status.FAIL, Remedy.REPLACE),
        ("smartctl.json", Status.WARN, Remedy.REPLACE),
        ("smartctl-refused.json", Status.SKIP, Remedy.NONE),
    ],
)
def test_fixtures(file, wanted, remedy):
    findings = judge_facts("nvme_smart", {"nvme_smart": read("nvme_smart", f"nvme_smart/{file}")})
    assert only(findings, wanted).remedy is remedy


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"critical_warning": 1}, "spare blocks are used up"),
        ({"critical_warning": 8}, "read-only"),
        ({"critical_warning": 64}, "0x40"),
        ({"available_spare": 9}, "9 % spare"),
    ],
)
def test_what_blocks(values, wanted):
    finding = only(judge(disk(**values)), Status.FAIL)
    assert wanted in finding.message
    assert finding.device == {"name": "nvme1", "serial": "AWS1"}


def test_what_warns_and_its_thresholds():
    assert status(judge(disk(percentage_used=99))) is Status.PASS
    assert status(judge(disk(percentage_used=100))) is Status.WARN
    assert status(judge(disk(percentage_used=100), thresholds={"nvme_smart.wear": 120})) is Status.PASS
    assert only(judge(disk(media_errors=1)), Status.WARN).measured == 1
    assert status(judge(disk(media_errors=1), thresholds={"nvme_smart.media_errors": 1})) is Status.PASS
    assert status(judge(disk(available_spare=10))) is Status.PASS


def test_a_warning_that_cannot_be_read_is_unknown():
    assert status(judge(disk(critical_warning=None))) is Status.UNKNOWN


def test_nothing_to_judge():
    blank = {"name": "nvme0", "critical_warning": 0, "available_spare": 0, "media_errors": 0}
    assert "zero" in only(judge(blank), Status.SKIP).message
    assert only(judge({"name": "nvme0", "error": "Permission denied"}), Status.SKIP).message.endswith(
        "Permission denied"
    )
    assert status(judge()) is Status.SKIP
    assert only(judge(blank, disk()), Status.PASS).message.startswith("1 of 2 disks")


def test_the_most_worn_disk_and_the_log_are_shown():
    assert only(judge(disk(percentage_used=3), disk(name="nvme2", percentage_used=7)), Status.PASS).measured == 7
    evidence = only(judge(disk(media_errors=1)), Status.WARN).evidence[0]
    assert ("media_errors 1" in evidence, "AWS1" in evidence) == (True, False)
