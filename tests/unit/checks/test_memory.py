"""memory: too little of it, little available, neither printed, and sizes a kernel keeps for itself."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

TYPE_MIB = 2097152  # p5.48xlarge


def meminfo(total_percent=98, available_percent=90):
    total_kib = -(-TYPE_MIB * total_percent // 100) * 1024  # whole MiB, rounded up
    return {"meminfo": {"total_kib": total_kib, "available_kib": total_kib * available_percent // 100}}


def test_a_good_node():
    findings = judge_facts("memory", meminfo())
    assert [finding.status for finding in findings] == [Status.PASS, Status.PASS]
    assert findings[0].measured == -(-TYPE_MIB * 98 // 100)


@pytest.mark.parametrize(
    ("percent", "wanted"), [(100, Status.PASS), (90, Status.PASS), (89, Status.FAIL), (50, Status.FAIL)]
)
def test_total_against_the_type(percent, wanted):
    finding = judge_facts("memory", meminfo(percent))[0]
    assert finding.status is wanted
    assert finding.remedy is (Remedy.REPLACE if wanted is Status.FAIL else Remedy.NONE)
    assert finding.expected == TYPE_MIB


@pytest.mark.parametrize(
    ("percent", "wanted"), [(51, Status.PASS), (50, Status.PASS), (49, Status.WARN), (1, Status.WARN)]
)
def test_available_against_its_share(percent, wanted):
    # A whole number of KiB, so that the share is what it says.
    facts = {"meminfo": {"total_kib": 2_000_000_000, "available_kib": 20_000_000 * percent}}
    finding = judge_facts("memory", facts)[1]
    assert finding.status is wanted
    assert finding.remedy is (Remedy.INVESTIGATE if wanted is Status.WARN else Remedy.NONE)


def test_pages_taken_out_of_use_warn():
    facts = meminfo()
    facts["meminfo"]["hardware_corrupted_kib"] = 8
    finding = only(judge_facts("memory", facts), Status.WARN)
    assert (finding.measured, finding.expected, finding.unit) == (8, 0, "KiB")
    facts["meminfo"]["hardware_corrupted_kib"] = 0
    assert status(judge_facts("memory", facts)) is Status.PASS


def test_a_site_may_ask_for_more():
    facts = meminfo(95, 60)
    assert status(judge_facts("memory", facts, thresholds={"memory.min_total_percent": 96})) is Status.FAIL
    assert status(judge_facts("memory", facts, thresholds={"memory.min_available_percent": 61})) is Status.WARN


def test_a_kernel_that_prints_no_available_memory_is_judged_by_the_total():
    facts = {"meminfo": {"total_kib": TYPE_MIB * 1024}}
    findings = judge_facts("memory", facts)
    assert status(findings) is Status.PASS
    assert only(findings, Status.SKIP).message.startswith("MemAvailable")


def test_without_a_type_only_the_share_is_judged():
    findings = judge_facts("memory", meminfo(10), "none")
    assert [finding.status for finding in findings] == [Status.PASS]
    assert findings[0].unit == "%"


def test_unreadable_and_missing():
    assert status(judge_facts("memory", {"meminfo": BROKEN})) is Status.UNKNOWN


@pytest.mark.parametrize(("mib", "wanted"), [(900, Status.PASS), (899, Status.FAIL)])
def test_ninety_percent_of_the_type_is_the_least(mib, wanted):
    facts = {"meminfo": {"total_kib": mib * 1024}}
    assert judge_facts("memory", facts, expected={"memory_mib": 1000})[0].status is wanted
