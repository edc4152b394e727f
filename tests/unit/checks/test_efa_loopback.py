"""efa_loopback: a device that carries nothing fails, a slow one warns, one not tested is unknown."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read


def run(number, usec=400.0, tool="fi_pingpong", rc=0, **more):
    largest = {"bytes": 1048576.0, "mb_s": 1048576 / usec, "usec": usec}
    base = {"tool": tool, "domain": f"rdmap{number}s27-rdm", "rc": rc, "rows": 6, "largest": largest, "said": []}
    return {key: value for key, value in {**base, **more}.items() if key != "largest" or value}


def judge(*runs, instance_type="p4d.24xlarge", **more):
    return judge_facts("efa_loopback", {"efa_loopback": {"runs": list(runs)}}, instance_type, **more)


def test_four_good_devices():
    facts = read("efa_loopback", "efa_loopback/p4d-pingpong.txt")
    (finding,) = judge_facts("efa_loopback", {"efa_loopback": facts}, "p4d.24xlarge")
    assert finding.status is Status.PASS
    assert "4 EFA devices" in finding.message


@pytest.mark.parametrize(("rc", "words"), [(1, "exit status 1"), (124, "no answer in time"), (0, "no result")])
def test_a_device_that_does_not_answer(rc, words):
    dead = run(4, rc=rc, rows=0, largest=None, said=["fi_cq_readerr: 4113 (Unreachable remote)"])
    finding = only(judge(run(1), run(2), run(3), dead), Status.FAIL)
    assert words in finding.message
    assert (finding.device, finding.remedy) == ({"name": "rdmap4s27"}, Remedy.REBOOT)
    assert finding.evidence == ("fi_cq_readerr: 4113 (Unreachable remote)",)


def test_a_table_and_then_an_error_is_no_pass():
    assert status(judge(run(1), run(2), run(3), run(4, rc=1))) is Status.FAIL


def test_wrong_data_fails():
    finding = only(judge(run(1), run(2), run(3), run(4, rc=1, said=["data check error at iteration 9"])), Status.FAIL)
    assert finding.remedy is Remedy.REPLACE


@pytest.mark.parametrize(("usec", "wanted"), [(800.0, Status.PASS), (800.1, Status.WARN)])
def test_one_slow_device(usec, wanted):
    findings = judge(run(1), run(2), run(3), run(4, usec))
    assert status(findings) is wanted


def test_tools_and_sizes_are_not_mixed():
    other = run(4, 20.0, largest={"bytes": 64.0, "mb_s": 3.0, "usec": 20.0})
    assert status(judge(run(1), run(2), run(3), other, run(4, 90.0, "fi_rdm_bw"))) is Status.PASS
    slower = [run(number, 4000.0, "fi_rdm_bw") for number in range(1, 4)]
    assert status(judge(*map(run, range(1, 5)), *slower)) is Status.PASS


def test_unfinished_and_missing_devices_are_unknown():
    assert status(judge(run(1), run(2), run(3), run(4, rc=None))) is Status.UNKNOWN
    finding = only(judge(run(1), run(2), run(3)), Status.UNKNOWN)
    assert (finding.measured, finding.expected) == (3, 4)
    assert status(judge(run(1), run(2), instance_type="none")) is Status.PASS


def test_deep_with_a_silent_device():
    facts = read("efa_loopback", "efa_loopback/p5en-deep-one-silent.txt")
    findings = judge_facts("efa_loopback", {"efa_loopback": facts}, "none")
    assert [finding.device["name"] for finding in findings] == ["rdmap111s0"] * 2
    assert {finding.status for finding in findings} == {Status.FAIL}


def test_not_run():
    assert status(judge_facts("efa_loopback", {}, "g6.xlarge")) is Status.SKIP


def test_all_devices_at_once_are_not_all_broken():
    dead = [run(number, rc=5, rows=0, largest=None) for number in range(4)]
    assert {finding.remedy for finding in judge(*dead)} == {Remedy.FIX_CONFIG}
    assert {finding.remedy for finding in judge(*dead[:3], run(3, rc=None, largest=None))} == {
        Remedy.REBOOT,
        Remedy.INVESTIGATE,
    }


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("fi_cq_readerr: err: Input/output error (5), prov_err: unknown error (13)", Remedy.FIX_CONFIG),
        ("cq_readerr: 4113 (Unresponsive receiver)", Remedy.FIX_CONFIG),
        ("failed to connect: Connection refused", Remedy.REBOOT),
    ],
)
def test_the_only_device_needs_the_reason(said, remedy):
    dead = run(1, rc=5, rows=0, largest=None, said=[said])
    assert only(judge(dead, instance_type="g5.8xlarge"), Status.FAIL).remedy is remedy
