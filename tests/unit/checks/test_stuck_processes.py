"""stuck_processes: what is dead blocks, what waits warns."""

from flightline_node.read.parsers import processes
from tests.harness import BROKEN, only, sample

from .table import FAIL, PASS, REBOOT, SKIP, UNKNOWN, WARN, judging, row, table


def facts(*stuck, zombies=0, count=None, init=True):
    return {
        "total": 900, "init_seen": init, "states": {}, "watched_s": 1.0,
        "stuck_count": len(stuck) if count is None else count, "stuck": list(stuck), "zombie_count": zombies,
        "zombies": [{"pid": n, "name": "sh", "parent": "dumb-init"} for n in range(min(zombies, 20))],
    }  # fmt: skip


def waits(name, age_s=600.0, pid=4711):
    return {"pid": pid, "name": name, "parent": 1, "age_s": age_s, "wchan": "folio_wait_bit_common"}


def hung(pid, name, boot=0):
    return {"last_boot": 0, "hung_task": [{"boot": boot, "pid": pid, "process": name, "text": "INFO: task ..."}]}


def judge(given, kernel=None, **rest):
    return judging("stuck_processes", {"processes": given, **({"kernel": kernel} if kernel else {})}, **rest)


RECORDED = processes.parse({"processes.json": sample("processes/debian12.json")})


test_stuck_processes = table(
    row("none", judge(RECORDED), PASS, measured=RECORDED["total"]),
    row("a young GPU tool only warns", judge(facts(waits("nvidia-smi", 20.0))), WARN),
    row("a young GPU tool only warns",
        judge(facts(waits("nvidia-smi", 20.0)), thresholds={"stuck_processes.tool_age_s": 10}), FAIL),
    row("what the kernel called hung and still is blocks", judge(facts(waits("python3")), hung(4711, "python3")), FAIL,
        says="hung"),
    *(row("what the kernel called hung and still is blocks", judge(facts(waits("python3")), kernel), WARN)
        for kernel in (hung(4711, "bash"), hung(99, "python3"), hung(4711, "python3", boot=-1))),
    row("more than are listed", judge(facts(waits("dd"), count=300)), WARN, measured=300),
    *(row("zombies", judge(facts(zombies=count)), wanted) for count, wanted in [(49, PASS), (50, WARN)]),
    row("hidden processes are no pass", judge(facts(init=False)), SKIP, says="hidepid"),
    row("unreadable and missing", judge(BROKEN), UNKNOWN),
    *(row("a GPU tool is dead after a minute", judge(facts(waits("nvidia-smi", age_s))), wanted)
        for age_s, wanted in [(60.0, FAIL), (59.9, WARN)]),
    row("a single waiting process warns", judge(facts(waits("dd"))), WARN, measured=1),
    row("a single waiting process warns", judge(facts(count=0)), PASS),
)  # fmt: skip


def test_an_old_gpu_tool_blocks_and_a_job_warns():
    given = processes.parse({"processes.json": sample("processes/stuck.json")})
    findings = judge(given)
    dead, waiting = only(findings, FAIL), only(findings, WARN)
    assert (dead.remedy, dead.device) == (REBOOT, {"name": "nvidia-smi"})
    assert dead.evidence[2].endswith("[nvidia]")
    assert waiting.measured == 1
    assert "python3" in waiting.message


def test_a_recorded_wait_only_warns():
    given = processes.parse({"processes.json": sample("processes/debian12-vfork.json")})
    finding = only(judge(given), WARN)
    assert (finding.measured, finding.evidence[0].partition(": ")[2]) == (1, "waits in kernel_clone")
