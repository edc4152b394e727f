"""Whose drain it is, by the whole of its reason: our programs write one form, and everything else is a person's."""

import shlex

import pytest

from flightline.healing.controller import reason_of
from flightline.healing.plan.planner import SchedulerView
from flightline.report.copies import MOST_REASON_CHARS, no_go_claim
from flightline_node import selfcheck
from flightline_node.watch import claim
from flightline_node.watch.claim import Claim, read, why_kept
from flightline_node.watch.latch import drain_reason
from tests.unit.healing.made import incident

OURS = [
    ("flightline: xid 0000:53:00 by watch at quick for xid.79 run watch-gpu-07-20261122T100000000Z", "watch", "quick"),
    ("flightline: xid GPU 3 by remediate at standard for xid.48 run 20261122T161224Z-956ae0", "remediate", "standard"),
    ("flightline: sysctl: vm.swappiness is 60, wanted 1 (+2) by prolog at quick for differs", "prolog", "quick"),
    ("flightline: gpu_load: GPU 3 by hand by health at deep for slow by epilog at quick for slow", "epilog", "quick"),
    ("flightline: node no-go by preflight at deep for no_go run nightly-1", "preflight", "deep"),
    ("flightline: node by health at quick for no_verdict", "health", "quick"),
    ("flightline: training: rank 3 hung by blame at quick for rank.hung", "blame", "quick"),
    ("flightline: quarantine: xid: GPU 3 by agent at standard for quarantined", "agent", "standard"),
]
OTHERS = [
    "", "none", "RMA 4711 (Kim)", "Not responding", "Prolog error", "Node unexpectedly rebooted", "flightline", "flightline:", "flightline: ",
    "JIRA-12 flightline: keep this one out",
    "flightline: please keep out, RMA",
    "flightline: keep this one out, ada",
    "flightline: xid is open with AWS, keep it out",
    "flightline: xid GPU 3 run R1",
    "flightline: quarantine",
    "flightline: go",
    "flightline-check: no verdict within 30 s",
    "flightline-team: Kim works on it",
    "flightline 20261122T161224Z-956ae0 no-go",
    "ada: flightline: xid GPU 3 by watch at quick for xid.79",
    "flightline: xid GPU 3 by watch at quick for xid.79 run R1, and RMA 4711",
    "flightline: xid GPU 3 by watch at quick for xid.79 - keep out, ada",
    "flightline: xid GPU 3 by ada at quick for xid.79 run R1",
    "flightline: xid GPU 3 by watch at night for xid.79 run R1",
    "flightline: xid GPU 3 by watch at quick",
    "flightline: by watch at quick for xid.79",
    "flightline:xid by watch at quick for xid.79",
    "Flightline: xid by watch at quick for xid.79",
    " flightline: xid by watch at quick for xid.79",
    "flightline: xid by watch at quick for xid.79\nkeep out",
    "flightline: xid, GPU 3 by watch at quick for xid.79",
]  # fmt: skip


@pytest.mark.parametrize(("reason", "by", "level"), OURS)
def test_a_claim_of_ours_is_read_to_its_last_word(reason, by, level):
    found = read(reason)
    assert (found.by, found.level, found.text) == (by, level, reason)
    assert SchedulerView(True, reason).ours and not SchedulerView(True, reason).foreign


@pytest.mark.parametrize("reason", OTHERS)
def test_everything_else_is_a_persons_whatever_it_mentions(reason):
    assert read(reason) is None
    assert not SchedulerView(True, reason).ours and "somebody else" in SchedulerView(True, reason).foreign


FINDING = {
    "check": "xid",
    "status": "FAIL",
    "reason": "xid.79",
    "message": "GPU 3\nfell 'off' by remediate at deep " + "x" * 200,
}


def test_what_each_of_our_programs_writes_is_a_claim_in_its_name():
    marker = {"run": "watch-gpu-07-1", "findings": [{**FINDING, "device": {"index": 3}}]}
    written = {
        "watch": drain_reason(marker),
        "health": selfcheck.reason({"verdict": "no-go", "level": "quick", "findings": [FINDING] * 3}, "health"),
        "check": selfcheck.reason({"verdict": "no-go", "level": "deep", "findings": []}),
        "remediate": reason_of(incident()),
        "preflight": no_go_claim("20261122T161224Z-956ae0", "standard"),
    }
    assert {by: read(text).by for by, text in written.items()} == {by: by for by in written}
    assert written["watch"] == "flightline: xid GPU 3 by watch at quick for xid.79 run watch-gpu-07-1"
    assert (read(written["health"]).reason, read(written["check"]).level) == ("xid.79", "deep")
    assert " (+2) by health at quick for xid.79" in written["health"]
    assert all(len(text) <= claim.MOST_CHARS and shlex.quote(text) == f"'{text}'" for text in written.values())
    assert len(written["preflight"]) <= MOST_REASON_CHARS


@pytest.mark.parametrize("run", ["a b\nc", "R'1", "run x by ada", "\u202eR"])
@pytest.mark.parametrize("reason", ["", "Xid.79", "a..b.", "of ' it", "\n"])
def test_whatever_comes_in_the_form_stays_whole(run, reason):
    found = read(Claim("xid", 'on "$(gpu)" `3`\n', "watch", "quick", reason, run).text)
    assert found is not None and (found.check, found.by, found.level) == ("xid", "watch", "quick")


def go(level="quick", verdict="go", **status):
    return {
        "verdict": verdict,
        "level": level,
        "findings": [{"check": name, "status": one} for name, one in status.items()],
    }


@pytest.mark.parametrize(
    ("reason", "record", "why"),
    [
        ("flightline: xid by watch at quick for xid.79", go(xid="PASS"), ""),
        ("flightline: xid by prolog at quick for xid.79", go("standard", xid="WARN"), ""),
        ("flightline: node by health at quick for no_verdict", go(), ""),
        ("flightline: quarantine: x by epilog at quick for quarantined", go(), ""),
        ("flightline: xid by watch at quick for xid.79", go(), "xid was not measured"),
        ("flightline: xid by watch at quick for xid.79", go(xid="SKIP"), "xid was not measured"),
        ("flightline: xid by watch at quick for xid.79", go(verdict="no-go", xid="PASS"), "it is no-go"),
        ("flightline: xid by health at standard for xid.79", go(xid="PASS"), "level standard took it out"),
        ("flightline: xid by agent at deep for xid.79", go("standard", xid="PASS"), "level deep took it out"),
        ("flightline: xid by watch at quick for xid.79", go("half", xid="PASS"), "level quick took it out, and this is level half"),
        ("flightline: xid by remediate at quick for xid.79", go(xid="PASS"), "remediate took it out"),
        ("flightline: node no-go by preflight at quick for no_go", go("deep", node="PASS"), "preflight took it out"),
        ("flightline: training by blame at quick for rank.hung", go("deep"), "blame took it out"),
    ],
)  # fmt: skip
def test_a_node_ends_a_claim_of_its_own_at_the_level_and_by_the_check_that_made_it(reason, record, why):
    there = read(reason)
    assert there and why_kept(there, record).startswith(why) and bool(why_kept(there, record)) is bool(why)
