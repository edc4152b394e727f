"""sysctl: as declared, drifted, not set, nothing declared."""

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

VALUES = {"sysctl": {"values": {"net.core.rmem_max": "212992", "net.ipv4.tcp_rmem": "4096 131072 6291456"}}}


def judged(wanted):
    return judge_facts("sysctl", VALUES, expected={"sysctl": wanted})


def test_as_declared_whatever_the_spelling():
    assert status(judged({"net.core.rmem_max": 212992, "net/ipv4/tcp_rmem": "4096\t131072\t6291456"})) is Status.PASS


def test_drift():
    finding = only(judged({"net.core.rmem_max": 1, "net.ipv4.tcp_rmem": "4096 131072 6291456"}), Status.FAIL)
    assert (finding.device, finding.measured, finding.expected) == ({"name": "net.core.rmem_max"}, "212992", "1")
    assert finding.remedy is Remedy.FIX_CONFIG


def test_not_set():
    assert "not set" in only(judged({"vm.absent": "1"}), Status.FAIL).message


def test_nothing_declared():
    assert status(judge_facts("sysctl", VALUES)) is Status.SKIP
    assert status(judge_facts("sysctl", {"sysctl": BROKEN})) is Status.SKIP


def test_unknown():
    assert status(judge_facts("sysctl", {"sysctl": BROKEN}, expected={"sysctl": {"a": "1"}})) is Status.UNKNOWN
