"""efa_loopback: a device that carries nothing fails, a slow one warns, one not tested is unknown."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, INVESTIGATE, PASS, REBOOT, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def run(number, usec=400.0, tool="fi_pingpong", rc=0, **more):
    largest = {"bytes": 1048576.0, "mb_s": 1048576 / usec, "usec": usec}
    base = {"tool": tool, "domain": f"rdmap{number}s27-rdm", "rc": rc, "rows": 6, "largest": largest, "said": []}
    return {key: value for key, value in {**base, **more}.items() if key != "largest" or value}


def judge(*runs, instance_type="p4d.24xlarge", **more):
    return judging("efa_loopback", {"efa_loopback": {"runs": list(runs)}}, instance_type, **more)


test_efa_loopback = table(
    row("four good devices", judging("efa_loopback",
        {"efa_loopback": read("efa_loopback", "efa_loopback/p4d-pingpong.txt")}, "p4d.24xlarge"), PASS, alone=True,
        says="4 EFA devices"),
    *(row("a device that does not answer",
        judge(run(1), run(2), run(3),
        run(4, rc=rc, rows=0, largest=None, said=["fi_cq_readerr: 4113 (Unreachable remote)"])), FAIL, says=words,
        device={"name": "rdmap4s27"}, remedy=REBOOT, evidence=("fi_cq_readerr: 4113 (Unreachable remote)",))
        for rc, words in [(1, "exit status 1"), (124, "no answer in time"), (0, "no result")]),
    row("a table and then an error is no pass", judge(run(1), run(2), run(3), run(4, rc=1)), FAIL),
    row("wrong data fails", judge(run(1), run(2), run(3), run(4, rc=1, said=["data check error at iteration 9"])), FAIL,
        remedy=REPLACE),
    *(row("one slow device", judge(run(1), run(2), run(3), run(4, usec)), wanted)
        for usec, wanted in [(800.0, PASS), (800.1, WARN)]),
    row("tools and sizes are not mixed",
        [judge(run(1), run(2), run(3), run(4, 20.0, largest={"bytes": 64.0, "mb_s": 3.0, "usec": 20.0}),
        run(4, 90.0, "fi_rdm_bw")),
        judge(*map(run, range(1, 5)), *[run(number, 4000.0, "fi_rdm_bw") for number in range(1, 4)])], PASS),
    row("unfinished and missing devices are unknown", judge(run(1), run(2), run(3), run(4, rc=None)), UNKNOWN),
    row("unfinished and missing devices are unknown", judge(run(1), run(2), run(3)), UNKNOWN, measured=3, expected=4),
    row("unfinished and missing devices are unknown", judge(run(1), run(2), instance_type="none"), PASS),
    row("not run", judging("efa_loopback", {}, "g6.xlarge"), SKIP),
    *(row("the only device needs the reason",
        judge(run(1, rc=5, rows=0, largest=None, said=[said]), instance_type="g5.8xlarge"), FAIL, remedy=remedy)
        for said, remedy in [
            ("fi_cq_readerr: err: Input/output error (5), prov_err: unknown error (13)", FIX_CONFIG),
            ("cq_readerr: 4113 (Unresponsive receiver)", FIX_CONFIG),
            ("failed to connect: Connection refused", REBOOT),
        ]),
)  # fmt: skip


def test_deep_with_a_silent_device():
    facts = read("efa_loopback", "efa_loopback/p5en-deep-one-silent.txt")
    findings = judging("efa_loopback", {"efa_loopback": facts}, "none")
    assert [finding.device["name"] for finding in findings] == ["rdmap111s0"] * 2
    assert {finding.status for finding in findings} == {FAIL}


def test_all_devices_at_once_are_not_all_broken():
    dead = [run(number, rc=5, rows=0, largest=None) for number in range(4)]
    assert {finding.remedy for finding in judge(*dead)} == {FIX_CONFIG}
    assert {finding.remedy for finding in judge(*dead[:3], run(3, rc=None, largest=None))} == {
        REBOOT,
        INVESTIGATE,
    }
