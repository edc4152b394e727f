"""maintenance: nothing scheduled, reboot soon or far, retirement, spot notices, no service, no answer."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, PASS, REBOOT, REPLACE, SKIP, UNKNOWN, WARN, changed, judging, row, table

P5 = read("imds", "imds/p5.json")


def judged(**changes):
    return judging("maintenance", {"imds": {**P5, **changes}})


def event(code, begins, state="active"):
    return {"maintenance_events": [{"code": code, "not_before": begins, "state": state, "description": "text"}]}


test_maintenance = table(
    row("nothing scheduled", judged(), PASS, message="no event is scheduled"),
    # 5 Dec 2026 12:00:00 is 14 days after the harness's now
    *(row("events", judged(**event(code, begins)), wanted)
        for code, begins, wanted in [
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
            ("system-reboot", "5 Dec 2026 12:00:00 GMT", "WARN"),
        ]),
    *(row("what is over", judged(**event("instance-retirement", "24 Nov 2026 09:00:43 GMT", state)), PASS)
        for state in ["completed", "canceled"]),
    row("rebalance alone only warns", judged(rebalance={"notice_time": "2026-11-21T11:50:00Z"}), WARN),
    row("no answer is unknown",
        judging("maintenance", {"imds": changed({name: value for name, value in P5.items() if name != "spot_action"},
        {"errors": {"meta-data/spot/instance-action": "TimeoutError: timed out"}})}), UNKNOWN,
        evidence=("meta-data/spot/instance-action: TimeoutError: timed out",)),
    row("metadata without any of it says nothing",
        judging("maintenance", {"imds": read("imds", "imds/identity-document.json")}), SKIP),
    row("no service", judging("maintenance", {"imds": {"available": False, "reason": "x"}}), SKIP),
    row("what EC2 says is in the message", judged(**event("instance-stop", None)), FAIL,
        ends="for an unknown time: text"),
    row("what EC2 says is in the message", judged(spot_action={"action": "stop", "time": "2026-11-21T12:02:00Z"}), FAIL,
        says="EC2 will stop this spot instance at 2026-11-21T12:02:00Z"),
)  # fmt: skip


def test_leaving_node():
    findings = judging("maintenance", {"imds": read("imds", "imds/p5-leaving.json")})
    assert [(f.status, f.remedy) for f in findings] == [
        (FAIL, REBOOT),
        (FAIL, REPLACE),
        (WARN, REPLACE),
    ]
    assert "system-reboot for 24 Nov 2026" in findings[0].message
