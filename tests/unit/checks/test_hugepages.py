"""hugepages: as declared, more, fewer, another default size, nothing declared."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status


def judged(total, size=2048, wanted=5128):
    meminfo = {"hugepages_total": total, "hugepage_kib": size}
    return judge_facts("hugepages", {"meminfo": meminfo}, expected={"hugepages_2m": wanted})


@pytest.mark.parametrize(("total", "wanted"), [(5128, "PASS"), (9000, "PASS"), (5127, "FAIL"), (0, "FAIL")])
def test_count(total, wanted):
    assert status(judged(total)) == wanted


def test_fewer_is_configuration():
    finding = only(judged(100), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (100, 5128, Remedy.FIX_CONFIG)


def test_other_default_size_is_unknown():
    assert status(judged(10, size=1048576)) is Status.UNKNOWN
    assert status(judged(0, size=1048576, wanted=0)) is Status.PASS


def test_unknown_and_skip():
    declared = {"hugepages_2m": 1}
    assert status(judge_facts("hugepages", {"meminfo": {"total_kib": 1}}, expected=declared)) is Status.UNKNOWN
    assert status(judge_facts("hugepages", {"meminfo": BROKEN}, expected=declared)) is Status.UNKNOWN
    assert status(judge_facts("hugepages", {"meminfo": {"hugepages_total": 0, "hugepage_kib": 2048}})) is Status.SKIP


@pytest.mark.parametrize(("total", "size"), [(None, 2048), (5128, None)])
def test_half_of_the_lines_is_not_enough(total, size):
    assert "not printed" in only(judged(total, size), Status.UNKNOWN).message
