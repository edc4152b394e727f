"""memlock: session, slurmd, containers, pam_limits; whichever gives a job its limit."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table

GIB = 1 << 20


def judged(kind="p5.48xlarge", **limits):
    return judging("memlock", {"limits": {"launchers": {}, "configured": [], **limits}}, kind)


test_memlock = table(
    *(row("session", judged(memlock_soft_kib=soft), wanted)
        for soft, wanted in [
            ("unlimited", "PASS"), (16 * GIB, "PASS"), (16 * GIB - 1, "FAIL"), (8192, "FAIL"), (0, "FAIL"),
        ]),
    row("small limit is configuration", judging("memlock", {"limits": read("limits", "proc/debian12-limits.txt")}),
        FAIL, measured="8192 KiB", remedy=FIX_CONFIG),
    row("slurmd decides where it runs", judging("memlock", {"limits": read("limits", "proc/slurm-limits.txt")}), PASS,
        says="(slurmd)"),
    row("slurmd decides where it runs",
        judged(memlock_soft_kib="unlimited",
        launchers={"slurmd": {"memlock_soft_kib": 8192, "memlock_hard_kib": 8192}}), FAIL),
    row("containers and login sessions",
        [judged(memlock_soft_kib=8192,
        launchers={"containerd": {"memlock_soft_kib": "unlimited", "memlock_hard_kib": "unlimited"}}),
        judged(memlock_soft_kib=8192, launchers={"dockerd": {"memlock_soft_kib": 8192, "memlock_hard_kib": 8192}},
        configured=[{"domain": "*", "type": "-", "memlock_kib": "unlimited"}])], PASS),
    row("containers and login sessions",
        judged(memlock_soft_kib=8192,
        configured=[{"domain": "root", "type": "-", "memlock_kib": "unlimited"},
        {"domain": "*", "type": "hard", "memlock_kib": "unlimited"}]), FAIL),
    row("Kubernetes only warns where the runtime may raise it",
        judged(memlock_soft_kib=8192,
        launchers={"kubelet": {"memlock_soft_kib": "unlimited"},
        "containerd": {"memlock_soft_kib": 8192, "memlock_hard_kib": 8192}}), WARN,
        evidence=("this session: 8192 KiB; containerd: 8192 KiB",)),
    row("types without EFA", [judged("g5.xlarge", memlock_soft_kib=64), judged("none", memlock_soft_kib=64)], SKIP),
    row("unknown", judged(memlock_soft_kib=None), UNKNOWN),
)  # fmt: skip
