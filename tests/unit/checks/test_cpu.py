"""cpu: all online, multithreading off, CPUs offline, too few, too many, not printed."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status


def facts(**cpuinfo):
    return {"cpuinfo": cpuinfo}


def test_all_online():
    assert (
        only(judge_facts("cpu", facts(cpus=192, online=192, offline=[], threads_per_core=2)), Status.PASS).measured
        == 192
    )


def test_multithreading_off_is_right():
    finding = only(judge_facts("cpu", facts(cpus=96, online=96, offline=[], threads_per_core=1)), Status.PASS)
    assert "multithreading is off" in finding.message
    # nosmt at boot leaves the siblings listed, and offline
    siblings = facts(cpus=192, online=96, offline=list(range(96, 192)), threads_per_core=1)
    assert status(judge_facts("cpu", siblings)) is Status.PASS


def test_half_the_cpus_with_threads_is_a_fault():
    assert status(judge_facts("cpu", facts(cpus=96, online=96, threads_per_core=2))) is Status.FAIL


def test_type_with_one_thread_per_core_gets_no_half():
    assert status(judge_facts("cpu", facts(cpus=96, online=96, threads_per_core=1), "g7.48xlarge")) is Status.FAIL


def test_offline_cpus_are_named():
    finding = only(judge_facts("cpu", facts(cpus=192, online=190, offline=[4, 5], threads_per_core=2)), Status.FAIL)
    assert "offline are 4, 5" in finding.message
    assert finding.remedy is Remedy.FIX_CONFIG


def test_more_is_the_wrong_type():
    assert "wrong instance type" in only(judge_facts("cpu", facts(cpus=448)), Status.FAIL).message


@pytest.mark.parametrize("given", [{"cpuinfo": BROKEN}, {}, facts(model="EPYC")])
def test_unknown(given):
    assert status(judge_facts("cpu", given)) is Status.UNKNOWN


def test_no_type():
    assert status(judge_facts("cpu", facts(cpus=2), "none")) is Status.SKIP
    assert status(judge_facts("cpu", facts(cpus=2), "none", expected={"vcpus": 2})) is Status.PASS


def test_of_many_offline_cpus_sixteen_are_named():
    for count, end in ((16, "190, 191"), (17, "189, 190 ...")):
        offline = list(range(192 - count, 192))
        cpus = facts(cpus=192, online=192 - count, offline=offline, threads_per_core=2)
        assert only(judge_facts("cpu", cpus), Status.FAIL).message.endswith(end)


def test_not_printed_says_so():
    assert "was not printed" in only(judge_facts("cpu", facts(model="EPYC")), Status.UNKNOWN).message
