"""efa_counters: informs, never fails on one sample."""

from flightline_node.model import Status
from flightline_node.read.parsers import efa_counters
from tests.harness import judge_facts, only, sample, status


def judge(facts, instance_type="p4d.24xlarge"):
    return judge_facts("efa_counters", {"efa_counters": facts}, instance_type)


def fixture(name):
    return efa_counters.parse({"efa-counters.json": sample(f"efa_counters/{name}")})


def test_clean():
    assert only(judge(fixture("p4d-clean.json")), Status.PASS).measured == 0


def test_errors_inform_and_name_the_device():
    finding = only(judge(fixture("p4d-drops.json")), Status.INFO)
    assert finding.measured == 815
    assert finding.evidence == ("rdmap144s27: rx_drops 812, retrans_timeout_events 3",)


def test_retransmitted_packets_alone_are_normal():
    facts = {"devices": {"efa_0": {"rx_drops": 0, "retrans_pkts": 5000}}, "count": 1}
    assert status(judge(facts)) is Status.PASS


def test_a_counter_that_could_not_be_read():
    for value in ("Invalid argument", None):
        facts = {"devices": {"efa_0": {"rx_drops": value}}, "count": 1}
        assert status(judge(facts)) is Status.UNKNOWN


def test_nothing_counted_is_no_pass():
    assert status(judge({"devices": {}, "count": 0})) is Status.SKIP
    assert status(judge({"devices": {"efa_0": {"tx_bytes": 1}}, "count": 1})) is Status.SKIP
    assert status(judge({"devices": {}, "count": 0}, "g4dn.xlarge")) is Status.SKIP
