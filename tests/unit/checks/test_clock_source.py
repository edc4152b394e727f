"""clock_source: fast clocks pass, slow ones warn, the inventory's word blocks."""

import pytest

from flightline_node.model import Status
from tests.harness import BROKEN, judge_facts, only, status
from tests.unit.parsers.hosttools import read


def judge(current, available="", **rest):
    facts = {"clocksource": {"current": current, "available": available}}
    return judge_facts("clock_source", {"sysfs": facts}, **rest)


@pytest.mark.parametrize("current", ["tsc", "kvm-clock", "arch_sys_counter"])
def test_fast(current):
    assert only(judge(current), Status.PASS).measured == current


@pytest.mark.parametrize("current", ["xen", "hpet", "acpi_pm", "refined-jiffies", "jiffies"])
def test_slow(current):
    assert "given up" in only(judge(current, f"{current} acpi_pm"), Status.WARN).message
    assert "tsc or kvm-clock can be chosen" in only(judge(current, f"{current} tsc kvm-clock"), Status.WARN).message


def test_the_inventory_decides():
    assert only(judge("kvm-clock", expected={"clock_source": "tsc"}), Status.FAIL).expected == "tsc"
    assert status(judge("xen", expected={"clock_source": "xen"})) is Status.PASS


def test_fixture():
    facts = read("sysfs", "sysfs/p5-storage.json")
    assert status(judge_facts("clock_source", {"sysfs": facts})) is Status.PASS


def test_not_there_is_no_pass():
    assert status(judge_facts("clock_source", {"sysfs": {"net": {}}})) is Status.SKIP
    assert "Input/output error" in only(judge("error: Input/output error"), Status.SKIP).message
    assert status(judge_facts("clock_source", {"sysfs": BROKEN})) is Status.UNKNOWN
