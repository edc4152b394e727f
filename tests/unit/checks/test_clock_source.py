"""clock_source: fast clocks pass, slow ones warn, the inventory's word blocks."""

from tests.harness import BROKEN
from tests.unit.parsers.hosttools import read

from .table import FAIL, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(current, available="", **rest):
    facts = {"clocksource": {"current": current, "available": available}}
    return judging("clock_source", {"sysfs": facts}, **rest)


test_clock_source = table(
    *(row("fast", judge(current), PASS, measured=current) for current in ["tsc", "kvm-clock", "arch_sys_counter"]),
    *(each for current in ["xen", "hpet", "acpi_pm", "refined-jiffies", "jiffies"] for each in (
        row("slow", judge(current, f"{current} acpi_pm"), WARN, says="given up"),
        row("slow", judge(current, f"{current} tsc kvm-clock"), WARN, says="tsc or kvm-clock can be chosen"),
    )),
    row("the inventory decides", judge("kvm-clock", expected={"clock_source": "tsc"}), FAIL, expected="tsc"),
    row("the inventory decides", judge("xen", expected={"clock_source": "xen"}), PASS),
    row("fixture", judging("clock_source", {"sysfs": read("sysfs", "sysfs/p5-storage.json")}), PASS),
    row("not there is no pass", judging("clock_source", {"sysfs": {"net": {}}}), SKIP),
    row("not there is no pass", judge("error: Input/output error"), SKIP, says="Input/output error"),
    row("not there is no pass", judging("clock_source", {"sysfs": BROKEN}), UNKNOWN),
)  # fmt: skip
