"""cpu: all online, multithreading off, CPUs offline, too few, too many, not printed."""

from functools import partial

from tests.harness import BROKEN

from .table import FAIL, FIX_CONFIG, PASS, UNKNOWN, judging, row, table


def facts(**cpuinfo):
    return {"cpuinfo": cpuinfo}


judge = partial(judging, "cpu")

test_cpu = table(
    row("all online", judge(facts(cpus=192, online=192, offline=[], threads_per_core=2)), PASS, measured=192),
    # nosmt at boot leaves the siblings listed, and offline
    row("multithreading off is right", judge(facts(cpus=96, online=96, offline=[], threads_per_core=1)), PASS,
        says="multithreading is off"),
    row("multithreading off is right",
        judge(facts(cpus=192, online=96, offline=list(range(96, 192)), threads_per_core=1)), PASS),
    row("half the CPUs with threads is a fault", judge(facts(cpus=96, online=96, threads_per_core=2)), FAIL),
    row("type with one thread per core gets no half",
        judge(facts(cpus=96, online=96, threads_per_core=1), "g7.48xlarge"), FAIL),
    row("offline CPUs are named", judge(facts(cpus=192, online=190, offline=[4, 5], threads_per_core=2)), FAIL,
        says="offline are 4, 5", remedy=FIX_CONFIG),
    row("more is the wrong type", judge(facts(cpus=448)), FAIL, says="wrong instance type"),
    *(row("unknown", judge(given), UNKNOWN) for given in [{"cpuinfo": BROKEN}, {}, facts(model="EPYC")]),
    row("no type", judge(facts(cpus=2), "none"), PASS),
    row("no type", judge(facts(cpus=2), "none", expected={"vcpus": 2}), PASS),
    *(row("of many offline CPUs sixteen are named",
        judge(facts(cpus=192, online=192 - count, offline=list(range(192 - count, 192)), threads_per_core=2)), FAIL,
        ends=end)
        for count, end in ((16, "190, 191"), (17, "189, 190 ..."))),
    row("not printed says so", judge(facts(model="EPYC")), UNKNOWN, says="was not printed"),
)  # fmt: skip
