"""swap: off, on, not printed, unreadable."""

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status


def test_off():
    assert status(judge_facts("swap", {"meminfo": {"swap_total_kib": 0}})) is Status.PASS


def test_on_warns():
    finding = only(judge_facts("swap", {"meminfo": {"swap_total_kib": 2 << 20}}), Status.WARN)
    assert (finding.measured, finding.remedy) == (2048, Remedy.FIX_CONFIG)


def test_not_printed_is_no_answer():
    assert status(judge_facts("swap", {"meminfo": {"total_kib": 5}})) is Status.SKIP


def test_unknown():
    assert status(judge_facts("swap", {"meminfo": BROKEN})) is Status.UNKNOWN
