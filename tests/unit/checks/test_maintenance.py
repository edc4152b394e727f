"""maintenance: nothing scheduled, reboot soon or far, retirement, spot notices, no service, no answer."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

P5 = read("imds", "imds/p5.json")


def judged(**changes):
    return judge_facts("maintenance", {"imds": {**P5, **changes}})


def event(code, begins, state="active"):
    return {"maintenance_events": [{"code": code, "not_before": begins, "state": state, "description": "text"}]}


def test_nothing_scheduled():
    assert only(judged(), Status.PASS).message == "no event is scheduled"


def test_leaving_node():
    findings = judge_facts("maintenance", {"imds": read("imds", "imds/p5-leaving.json")})
    assert [(f.status, f.remedy) for f in findings] == [
        (Status.FAIL, Remedy.REBOOT),
        (Status.FAIL, Remedy.REPLACE),
        (Status.WARN, Remedy.REPLACE),
    ]
    assert "system-reboot for 24 Nov 2026" in findings[0].message


@pytest.mark.parametrize(
    ("code", "begins", "wanted"),
    [
        ("system-reboot", "24 Nov 2026 09:00:43 GMT", "FAIL"),
        ("system-reboot", "24 Dec 2026 09:00:43 GMT", "WARN"),
        ("system-maintenance", "1 Dec 2026 09:00:00 GMT", "FAIL"),
        ("instance-retirement", "24 Dec 2027 09:00:43 GMT", "FAIL"),
        ("instance-stop", "24 Dec 2026 09:00:43 GMT", "FAIL"),
        ("instance-reboot", "soon", "FAIL"),
        ("instance-reboot", "32 Nov 2026 09:00:43 GMT", "FAIL"),
        ("instance-reboot", None, "FAIL"),
        ("instance-reboot", "24 Foo 2027 09:00:43 GMT", "FAIL"),
        ("instance-reboot", "24 Jan 2027 09:00:43 GMT", "WARN"),
        ("system-reboot", "5 Dec 2026 11:59:59 GMT", "FAIL"),
        ("system-reboot", "5 Dec 2026 12:00:00 GMT", "WARN"),  # 14 days after the harness's now
    ],
)
def test_events(code, begins, wanted):
    assert status(judged(**event(code, begins))) == wanted


@pytest.mark.parametrize("state", ["completed", "canceled"])
def test_what_is_over(state):
    assert status(judged(**event("instance-retirement", "24 Nov 2026 09:00:43 GMT", state))) is Status.PASS


def test_rebalance_alone_only_warns():
    assert status(judged(rebalance={"notice_time": "2026-11-21T11:50:00Z"})) is Status.WARN


def test_no_answer_is_unknown():
    facts = {name: value for name, value in P5.items() if name != "spot_action"}
    facts["errors"] = {"meta-data/spot/instance-action": "TimeoutError: timed out"}
    finding = only(judge_facts("maintenance", {"imds": facts}), Status.UNKNOWN)
    assert finding.evidence == ("meta-data/spot/instance-action: TimeoutError: timed out",)


def test_metadata_without_any_of_it_says_nothing():
    assert status(judge_facts("maintenance", {"imds": read("imds", "imds/identity-document.json")})) is Status.SKIP


def test_no_service():
    assert status(judge_facts("maintenance", {"imds": {"available": False, "reason": "x"}})) is Status.SKIP


def test_what_ec2_says_is_in_the_message():
    assert only(judged(**event("instance-stop", None)), Status.FAIL).message.endswith("for an unknown time: text")
    action = {"action": "stop", "time": "2026-11-21T12:02:00Z"}
    finding = only(judged(spot_action=action), Status.FAIL)
    assert "EC2 will stop this spot instance at 2026-11-21T12:02:00Z" in finding.message
