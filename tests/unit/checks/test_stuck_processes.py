"""stuck_processes: what is dead blocks, what waits warns."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import processes
from tests.harness import BROKEN, judge_facts, only, sample, status


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
    return judge_facts("stuck_processes", {"processes": given, **({"kernel": kernel} if kernel else {})}, **rest)


def test_none():
    recorded = processes.parse({"processes.json": sample("processes/debian12.json")})
    assert only(judge(recorded), Status.PASS).measured == recorded["total"]


def test_an_old_gpu_tool_blocks_and_a_job_warns():
    given = processes.parse({"processes.json": sample("processes/stuck.json")})
    findings = judge(given)
    dead, waiting = only(findings, Status.FAIL), only(findings, Status.WARN)
    assert (dead.remedy, dead.device) == (Remedy.REBOOT, {"name": "nvidia-smi"})
    assert dead.evidence[2].endswith("[nvidia]")
    assert waiting.measured == 1
    assert "python3" in waiting.message


def test_a_recorded_wait_only_warns():
    given = processes.parse({"processes.json": sample("processes/debian12-vfork.json")})
    finding = only(judge(given), Status.WARN)
    assert (finding.measured, finding.evidence[0].partition(": ")[2]) == (1, "waits in kernel_clone")


def test_a_young_gpu_tool_only_warns():
    assert status(judge(facts(waits("nvidia-smi", 20.0)))) is Status.WARN
    given = facts(waits("nvidia-smi", 20.0))
    assert status(judge(given, thresholds={"stuck_processes.tool_age_s": 10})) is Status.FAIL


def test_what_the_kernel_called_hung_and_still_is_blocks():
    assert "hung" in only(judge(facts(waits("python3")), hung(4711, "python3")), Status.FAIL).message
    for kernel in (hung(4711, "bash"), hung(99, "python3"), hung(4711, "python3", boot=-1)):
        assert status(judge(facts(waits("python3")), kernel)) is Status.WARN


def test_more_than_are_listed():
    assert only(judge(facts(waits("dd"), count=300)), Status.WARN).measured == 300


@pytest.mark.parametrize(("count", "wanted"), [(49, Status.PASS), (50, Status.WARN)])
def test_zombies(count, wanted):
    assert status(judge(facts(zombies=count))) is wanted


def test_hidden_processes_are_no_pass():
    assert "hidepid" in only(judge(facts(init=False)), Status.SKIP).message


def test_unreadable_and_missing():
    assert status(judge(BROKEN)) is Status.UNKNOWN


@pytest.mark.parametrize(("age_s", "wanted"), [(60.0, Status.FAIL), (59.9, Status.WARN)])
def test_a_gpu_tool_is_dead_after_a_minute(age_s, wanted):
    assert status(judge(facts(waits("nvidia-smi", age_s)))) is wanted


def test_a_single_waiting_process_warns():
    assert only(judge(facts(waits("dd"))), Status.WARN).measured == 1
    assert status(judge(facts(count=0))) is Status.PASS
