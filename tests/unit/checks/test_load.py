"""load: idle, busy, number of CPUs not known, unreadable."""

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

CPUS = {"cpuinfo": {"cpus": 192, "online": 192}}


def test_idle_and_a_training_job_both_go():
    assert status(judge_facts("load", {"loadavg": {"load1": 0.2}, **CPUS})) is Status.PASS
    assert status(judge_facts("load", {"loadavg": {"load1": 100.0}, **CPUS})) is Status.PASS


def test_busy_warns():
    finding = only(judge_facts("load", {"loadavg": {"load1": 400.0}, **CPUS}), Status.WARN)
    assert (finding.measured, finding.expected, finding.remedy) == (2.083, 1.0, Remedy.INVESTIGATE)


def test_cpus_from_the_type():
    assert status(judge_facts("load", {"loadavg": {"load1": 190.0}})) is Status.PASS
    assert status(judge_facts("load", {"loadavg": {"load1": 3.0}}, "none")) is Status.INFO


def test_threshold():
    given = {"loadavg": {"load1": 100.0}, **CPUS}
    assert status(judge_facts("load", given, thresholds={"load.max_per_cpu": 0.5})) is Status.WARN


def test_unknown():
    assert status(judge_facts("load", {"loadavg": BROKEN})) is Status.UNKNOWN


def test_one_task_per_cpu_is_no_wait():
    assert status(judge_facts("load", {"loadavg": {"load1": 192.0}, **CPUS})) is Status.PASS
    assert status(judge_facts("load", {"loadavg": {"load1": 193.0}, **CPUS})) is Status.WARN


def test_either_count_of_cpus_will_do():
    for cpuinfo in ({"cpus": 2}, {"online": 2}):
        facts = {"loadavg": {"load1": 3.0}, "cpuinfo": cpuinfo}
        assert only(judge_facts("load", facts, "none"), Status.WARN).measured == 1.5
