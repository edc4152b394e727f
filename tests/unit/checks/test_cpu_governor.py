"""cpu_governor: slow settings warn, what an autonomous driver calls powersave does not."""

from flightline_node.read.parsers import sysfs
from tests.harness import BROKEN, sample

from .table import FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(*policies):
    return judging("cpu_governor", {"sysfs": {"cpufreq": list(policies)}})


def policy(driver, governor, epp=None, policies=96):
    return {"driver": driver, "governor": governor, "epp": epp, "policies": policies}


def fixture(name):
    return judging("cpu_governor", {"sysfs": sysfs.parse({"sysfs.json": sample(f"sysfs/{name}")})})


test_cpu_governor = table(
    row("left to the hypervisor", fixture("p5.json"), SKIP, says="hypervisor"),
    *(row("fast enough", judge(policy("acpi-cpufreq", governor)), PASS, measured=[governor])
        for governor in ["performance", "schedutil", "ondemand"]),
    row("the default of an autonomous driver",
        [fixture("p4d.json"), judge(policy("amd-pstate-epp", "powersave", "balance_performance"))], PASS),
    row("slow", fixture("g4dn-metal.json"), WARN, measured="powersave", remedy=FIX_CONFIG),
    row("slow", judge(policy("intel_pstate", "powersave", "balance_power")), WARN, says="balance_power"),
    row("mixed", judge(policy("intel_cpufreq", "performance"), policy("intel_cpufreq", "schedutil")), WARN,
        measured=["performance", "schedutil"]),
    row("unreadable", judge(policy("acpi-cpufreq", "error: Input/output error")), SKIP, says="Input/output error"),
    row("unreadable", judging("cpu_governor", {"sysfs": BROKEN}), UNKNOWN),
)  # fmt: skip
