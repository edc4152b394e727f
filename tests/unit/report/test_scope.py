"""A verdict says what it does not speak about."""

from flightline.fleet.judgement import judge_run
from flightline.report.notes import verdict_notes
from flightline.report.scope import left_out, waived_findings
from flightline_node.judge.checks import CHECKS
from tests.memory_store import MemoryStore
from tests.unit.made import a_run, finding, record

QUICK = [check.id for check in CHECKS.values() if check.level == "quick"]
WAIVED = "waived until 2026-12-31 by ops: image cache (was FAIL: / is full)"


def judged(**findings):
    records = {host: record(host, *found) for host, found in findings.items()}
    return judge_run(MemoryStore(a_run(*records), records), "r1")


def every(**changed):
    return [finding(check, **changed.get(check, {})) for check in QUICK]


def test_a_whole_look_has_nothing_to_add():
    report = judged(a=every(), b=[*every(), finding("nccl_busbw")])
    assert not [*left_out(report), *waived_findings(report)]


def test_a_selection_is_named_because_go_says_less():
    (note,) = left_out(judged(a=[finding("memory"), finding("xid")], b=[finding("memory"), finding("xid")]))
    assert note == f"2 of {len(QUICK)} checks of level quick were to run: only xid, memory."


def test_what_was_skipped_on_request_is_named_with_its_hosts():
    report = judged(a=every(), b=every(xid={"status": "SKIP", "message": "skipped on request", "reason": "not_asked"}))
    assert list(left_out(report)) == [
        f"{len(QUICK) - 1} of {len(QUICK)} checks of level quick were to run on b: not xid."
    ]


def test_what_does_not_apply_was_looked_at():
    report = judged(a=every(lustre={"status": "SKIP", "message": "no Lustre file system here"}))
    assert not [*left_out(report), *waived_findings(report)]


def test_waived_findings_are_told_once_with_all_hosts():
    waived = {"status": "SKIP", "message": WAIVED, "reason": "waived"}
    report = judged(**{f"n{number}": every(disk_space=waived) for number in range(1, 4)})
    assert str(report.verdict) == "go"
    told = f"Set aside: disk_space on n[1-3], {WAIVED}."
    assert list(waived_findings(report)) == [told] and told in verdict_notes(report)


def test_an_unreachable_host_is_not_one_with_few_checks():
    assert not list(left_out(judged(a=[finding("reachable", status="UNREACHABLE")])))
