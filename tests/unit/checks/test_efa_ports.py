"""efa_ports: every port active, or named."""

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import sysfs
from tests.harness import judge_facts, only, sample, status


def judge(facts, instance_type="p5.48xlarge", **rest):
    return judge_facts("efa_ports", {"sysfs": facts}, instance_type, **rest)


def fixture(name):
    return sysfs.parse({"sysfs.json": sample(f"sysfs/{name}")})


def port(state, physical):
    return {"efa_ports": {"rdmap79s0": {"ports": {"1": {"state": state, "phys_state": physical}}}}}


def test_active():
    assert only(judge(fixture("p5.json")), Status.PASS).measured == 2


def test_down_and_unreadable_are_told_apart():
    findings = judge(fixture("p5-port-down.json"))
    down, unread = only(findings, Status.FAIL), only(findings, Status.UNKNOWN)
    assert (down.device, down.measured) == ({"name": "rdmap79s0", "port": "1"}, "DOWN")
    assert down.remedy is Remedy.REBOOT
    assert unread.device["name"] == "rdmap80s0"
    assert len(findings) == 2


def test_an_active_port_without_a_link():
    assert only(judge(port("ACTIVE", "Disabled")), Status.FAIL).measured == "ACTIVE"
    assert status(judge(port("ACTIVE", None))) is Status.PASS  # older kernels print no physical state


def test_no_evidence():
    assert status(judge(port(None, "LinkUp"))) is Status.UNKNOWN
    assert status(judge({"efa_ports": {"rdmap79s0": {"ports": {}}}})) is Status.UNKNOWN


def test_not_here():
    assert "efa_count" in only(judge({"efa_ports": {}}), Status.SKIP).message
    assert "no EFA" in only(judge(port("DOWN", "Disabled"), "g4dn.xlarge"), Status.SKIP).message


def test_what_was_seen_is_in_the_message():
    assert "port 1 is DOWN (Disabled), wanted" in only(judge(port("DOWN", "Disabled")), Status.FAIL).message
    unread = only(judge(port(None, None)), Status.UNKNOWN)
    assert "port 1 is without a state (no physical state)" in unread.message
