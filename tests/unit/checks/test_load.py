"""load: idle, busy, number of CPUs not known, unreadable."""

from tests.harness import BROKEN

from .table import INFO, INVESTIGATE, PASS, UNKNOWN, WARN, judging, row, table

CPUS = {"cpuinfo": {"cpus": 192, "online": 192}}


test_load = table(
    row("idle and a training job both go", [judging("load", {"loadavg": {"load1": 0.2}, **CPUS}),
        judging("load", {"loadavg": {"load1": 100.0}, **CPUS})], PASS),
    row("busy warns", judging("load", {"loadavg": {"load1": 400.0}, **CPUS}), WARN, measured=2.083, expected=1.0,
        remedy=INVESTIGATE),
    row("CPUs from the type", judging("load", {"loadavg": {"load1": 190.0}}), PASS),
    row("CPUs from the type", judging("load", {"loadavg": {"load1": 3.0}}, "none"), INFO),
    row("threshold", judging("load", {"loadavg": {"load1": 100.0}, **CPUS}, thresholds={"load.max_per_cpu": 0.5}),
        WARN),
    row("unknown", judging("load", {"loadavg": BROKEN}), UNKNOWN),
    row("one task per CPU is no wait", judging("load", {"loadavg": {"load1": 192.0}, **CPUS}), PASS),
    row("one task per CPU is no wait", judging("load", {"loadavg": {"load1": 193.0}, **CPUS}), WARN),
    *(row("either count of CPUs will do", judging("load", {"loadavg": {"load1": 3.0}, "cpuinfo": cpuinfo}, "none"),
        WARN, measured=1.5)
        for cpuinfo in ({"cpus": 2}, {"online": 2})),
)  # fmt: skip
