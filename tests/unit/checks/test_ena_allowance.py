"""ena_allowance: bursts inform, dropped connections warn, nothing blocks."""

from flightline_node.model import BLOCKING, Status
from flightline_node.read.parsers import ethtool
from tests.harness import BROKEN, judge_facts, only, sample, status


def judge(counters):
    return judge_facts("ena_allowance", {"sysfs": {}, "ethtool": {"counters": counters}})


def fixture(name):
    return judge(ethtool.parse({"ethtool.txt": sample(f"ethtool/{name}")})["counters"])


def test_quiet():
    assert status(judge({"bw_in_allowance_exceeded": 0, "conntrack_allowance_exceeded": 0})) is Status.PASS


def test_bursts_inform():
    finding = only(fixture("ena.txt"), Status.INFO)
    assert (finding.measured, "bw_in 1893, bw_out 22" in finding.message) == (1915, True)


def test_dropped_connections():
    assert only(fixture("ena-conntrack.txt"), Status.WARN).measured == 977
    finding = only(judge({"conntrack_allowance_exceeded": 0, "conntrack_allowance_available": 0}), Status.WARN)
    assert "no further connection" in finding.message


def test_not_counted_is_no_pass():
    assert status(fixture("virtio.txt")) is Status.SKIP
    assert status(judge({})) is Status.SKIP


def test_a_node_without_ethtool_is_not_blocked():
    for facts in ({"sysfs": {}}, {"sysfs": {}, "ethtool": BROKEN}):
        assert status(judge_facts("ena_allowance", facts)) is Status.SKIP
    assert status(judge_facts("ena_allowance", {})) in BLOCKING  # not even the reader ran


def test_the_counters_alone_are_judged():
    counters = {"counters": {"conntrack_allowance_exceeded": 3}}
    assert status(judge_facts("ena_allowance", {"ethtool": counters}, required=False)) is Status.WARN


def test_the_first_packet_dropped_for_lack_of_tracking_warns():
    (finding,) = judge({"conntrack_allowance_exceeded": 1, "conntrack_allowance_available": 9})
    assert (finding.status, finding.measured, finding.expected) == (Status.WARN, 1, 1)
    (finding,) = judge({"conntrack_allowance_exceeded": 0, "conntrack_allowance_available": 1})
    assert finding.status is Status.PASS


def test_no_tracking_left_is_no_pass_as_well():
    (finding,) = judge({"conntrack_allowance_exceeded": 0, "conntrack_allowance_available": 0})
    assert finding.status is Status.WARN
