"""cpu_governor: slow settings warn, what an autonomous driver calls powersave does not."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import sysfs
from tests.harness import BROKEN, judge_facts, only, sample, status


def judge(*policies):
    return judge_facts("cpu_governor", {"sysfs": {"cpufreq": list(policies)}})


def policy(driver, governor, epp=None, policies=96):
    return {"driver": driver, "governor": governor, "epp": epp, "policies": policies}


def fixture(name):
    return judge_facts("cpu_governor", {"sysfs": sysfs.parse({"sysfs.json": sample(f"sysfs/{name}")})})


def test_left_to_the_hypervisor():
    assert "hypervisor" in only(fixture("p5.json"), Status.SKIP).message


@pytest.mark.parametrize("governor", ["performance", "schedutil", "ondemand"])
def test_fast_enough(governor):
    assert only(judge(policy("acpi-cpufreq", governor)), Status.PASS).measured == [governor]


def test_the_default_of_an_autonomous_driver():
    assert status(fixture("p4d.json")) is Status.PASS
    assert status(judge(policy("amd-pstate-epp", "powersave", "balance_performance"))) is Status.PASS


def test_slow():
    finding = only(fixture("g4dn-metal.json"), Status.WARN)
    assert (finding.measured, finding.remedy) == ("powersave", Remedy.FIX_CONFIG)
    assert "balance_power" in only(judge(policy("intel_pstate", "powersave", "balance_power")), Status.WARN).message


def test_mixed():
    finding = only(judge(policy("intel_cpufreq", "performance"), policy("intel_cpufreq", "schedutil")), Status.WARN)
    assert finding.measured == ["performance", "schedutil"]


def test_unreadable():
    assert "Input/output error" in only(judge(policy("acpi-cpufreq", "error: Input/output error")), Status.SKIP).message
    assert status(judge_facts("cpu_governor", {"sysfs": BROKEN})) is Status.UNKNOWN
