"""load: idle, busy, number of CPUs not known, unreadable."""

from functools import partial

from tests.harness import BROKEN

from .table import INFO, INVESTIGATE, PASS, UNKNOWN, WARN, judging, row, table

CPUS = {"cpuinfo": {"cpus": 192, "online": 192}}
judge = partial(judging, "load")

test_load = table(
    row("idle and a training job both go",
        [judge({"loadavg": {"load1": 0.2}, **CPUS}), judge({"loadavg": {"load1": 100.0}, **CPUS})], PASS),
    row("busy warns", judge({"loadavg": {"load1": 400.0}, **CPUS}), WARN, measured=2.083, expected=1.0,
        remedy=INVESTIGATE),
    row("CPUs from the type", judge({"loadavg": {"load1": 190.0}}), PASS),
    row("CPUs from the type", judge({"loadavg": {"load1": 3.0}}, "none"), INFO),
    row("threshold", judge({"loadavg": {"load1": 100.0}, **CPUS}, thresholds={"load.max_per_cpu": 0.5}), WARN),
    row("unknown", judge({"loadavg": BROKEN}), UNKNOWN),
    row("one task per CPU is no wait", judge({"loadavg": {"load1": 192.0}, **CPUS}), PASS),
    row("one task per CPU is no wait", judge({"loadavg": {"load1": 193.0}, **CPUS}), WARN),
    *(row("either count of CPUs will do", judge({"loadavg": {"load1": 3.0}, "cpuinfo": cpuinfo}, "none"), WARN,
        measured=1.5)
        for cpuinfo in ({"cpus": 2}, {"online": 2})),
)  # fmt: skip
