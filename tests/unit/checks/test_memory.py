"""memory: too little of it, little available, neither printed, and sizes a kernel keeps for itself."""

from functools import partial

import pytest

from tests.harness import BROKEN

from .table import FAIL, INVESTIGATE, NONE, PASS, REPLACE, SKIP, UNKNOWN, WARN, changed, judging, row, table

TYPE_MIB = 2097152  # p5.48xlarge


def meminfo(total_percent=98, available_percent=90):
    total_kib = -(-TYPE_MIB * total_percent // 100) * 1024  # whole MiB, rounded up
    return {"meminfo": {"total_kib": total_kib, "available_kib": total_kib * available_percent // 100}}


judge = partial(judging, "memory")

test_memory = table(
    row("pages taken out of use warn", judge(changed(meminfo(), {"meminfo.hardware_corrupted_kib": 8})), WARN,
        measured=8, expected=0, unit="KiB"),
    row("pages taken out of use warn", judge(changed(meminfo(), {"meminfo.hardware_corrupted_kib": 0})), PASS),
    row("a site may ask for more", judge(meminfo(95, 60), thresholds={"memory.min_total_percent": 96}), FAIL),
    row("a site may ask for more", judge(meminfo(95, 60), thresholds={"memory.min_available_percent": 61}), WARN),
    row("a kernel that prints no available memory is judged by the total",
        judge({"meminfo": {"total_kib": TYPE_MIB * 1024}}), PASS).also(SKIP, starts="MemAvailable"),
    row("unreadable and missing", judge({"meminfo": BROKEN}), UNKNOWN),
)  # fmt: skip


def test_a_good_node():
    findings = judge(meminfo())
    assert [finding.status for finding in findings] == [PASS, PASS]
    assert findings[0].measured == -(-TYPE_MIB * 98 // 100)


@pytest.mark.parametrize(("percent", "wanted"), [(100, PASS), (90, PASS), (89, FAIL), (50, FAIL)])
def test_total_against_the_type(percent, wanted):
    finding = judge(meminfo(percent))[0]
    assert finding.status is wanted
    assert finding.remedy is (REPLACE if wanted is FAIL else NONE)
    assert finding.expected == TYPE_MIB


@pytest.mark.parametrize(("percent", "wanted"), [(51, PASS), (50, PASS), (49, WARN), (1, WARN)])
def test_available_against_its_share(percent, wanted):
    # A whole number of KiB, so that the share is what it says.
    facts = {"meminfo": {"total_kib": 2_000_000_000, "available_kib": 20_000_000 * percent}}
    finding = judge(facts)[1]
    assert finding.status is wanted
    assert finding.remedy is (INVESTIGATE if wanted is WARN else NONE)


def test_without_a_type_only_the_share_is_judged():
    findings = judge(meminfo(10), "none")
    assert [finding.status for finding in findings] == [PASS]
    assert findings[0].unit == "%"


@pytest.mark.parametrize(("mib", "wanted"), [(900, PASS), (899, FAIL)])
def test_ninety_percent_of_the_type_is_the_least(mib, wanted):
    facts = {"meminfo": {"total_kib": mib * 1024}}
    assert judge(facts, expected={"memory_mib": 1000})[0].status is wanted
