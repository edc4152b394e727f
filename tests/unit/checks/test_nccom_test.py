"""nccom_test: completed, failed at once, failed in the middle, wrong data, cut off."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import PARSERS
from tests.harness import judge_facts, only, sample, status

from .neurons import TRN1, fixture, node

GOOD = sample("nccom_test/trn1-32-ranks.txt").decode()


def judge(text):
    facts = PARSERS["nccom_test"].parse({"nccom-test.txt": text.encode()})
    return judge_facts("nccom_test", node(nccom_test=facts), TRN1)


def test_completed():
    findings = judge(GOOD)
    assert [finding.status for finding in findings] == [Status.PASS, Status.PASS]
    assert "all_reduce of 32 ranks completed, 6 sizes, data checked" in findings[0].message


@pytest.mark.parametrize(
    ("name", "remedy"), [("bench-failed", Remedy.INVESTIGATE), ("no-driver", Remedy.UPDATE_SOFTWARE)]
)
def test_failed(name, remedy):
    facts = fixture("nccom_test", f"nccom_test/{name}.txt")
    finding = only(judge_facts("nccom_test", node(nccom_test=facts), TRN1), Status.FAIL)
    assert finding.remedy is remedy
    assert finding.measured == "exit status 1"


def test_wrong_data_is_a_failure_though_the_table_is_whole():
    text = GOOD.replace("Avg bus", "Output mismatch on rank 7: golden differs\nAvg bus", 1)
    finding = only(judge(text), Status.FAIL)
    assert (finding.remedy, finding.measured) == (Remedy.REPLACE, "wrong data")


def test_an_exit_status_is_enough():
    finding = only(judge(GOOD.replace("# exit 0", "# exit 139", 1)), Status.FAIL)
    assert finding.measured == "exit status 139" and finding.message.endswith(" failed with exit status 139")


@pytest.mark.parametrize("keep", [0.3, 0.45])
def test_cut_off_is_no_pass(keep):
    assert status(judge(GOOD[: int(len(GOOD) * keep)])) is Status.UNKNOWN


def test_not_installed():
    text = "# nccom-test -r 32 allr\nsh: 7: nccom-test: not found\n# exit 127\n"
    assert only(judge(text), Status.UNKNOWN).remedy is Remedy.UPDATE_SOFTWARE


def test_a_table_without_a_command_line():
    assert (
        status(judge_facts("nccom_test", node(nccom_test=fixture("nccom_test", "nccom_test/bare-table.txt")), TRN1))
        is Status.PASS
    )
    assert status(judge_facts("nccom_test", {}, "p5.48xlarge")) is Status.SKIP
    assert status(judge_facts("nccom_test", {}, TRN1)) is Status.UNKNOWN
