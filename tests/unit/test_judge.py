"""The judge: unknown is never a pass, nothing overwrites the worst, waivers end."""

import json
from datetime import date
from pathlib import Path

import pytest

from flightline_node import settings as site
from flightline_node.judge import judgement as judging
from flightline_node.judge import must
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.context import Context
from flightline_node.judge.waivers import apply
from flightline_node.judge.waivers import parse as parse_waivers
from flightline_node.know.expected import known_types, resolve
from flightline_node.model import (
    UNSAID,
    Check,
    Finding,
    ParseError,
    Remedy,
    SettingsError,
    Status,
    Verdict,
    clip_evidence,
    worst,
)
from flightline_node.read import bundle as bundles
from flightline_node.read.facts import FactBook
from flightline_node.read.parsers import Parser
from tests.harness import NOW, judge_dir

MEMINFO = "MemTotal: 2097152000 kB\nMemAvailable: 2000000000 kB\n"


def judge(directory: Path, *, required=False, instance_type="none", level="quick", names=(), **settings):
    expected = resolve(instance_type)
    built = site.build(level=level, **settings)
    return judging.judge(bundles.load(directory), expected, built, NOW, required=required, names=names)


def by_check(judgement, check_id):
    return [finding for finding in judgement.findings if finding.check == check_id]


def write_manifest(directory: Path, **entry):
    probe = {"id": "meminfo", "argv": ["cat", "/proc/meminfo"], "rc": 0, "timed_out": False, "file": "meminfo.txt"}
    (directory / "manifest.json").write_text(json.dumps({"probes": [{**probe, **entry}]}))


def test_nothing_judged_is_no_go(tmp_path):
    judgement = judge(tmp_path)
    assert judgement.verdict is Verdict.NO_GO
    assert {finding.status for finding in judgement.findings} == {Status.SKIP}


def test_one_good_file_alone_is_go_offline_and_no_go_in_a_preflight(tmp_path):
    (tmp_path / "meminfo.txt").write_text(MEMINFO)
    assert judge(tmp_path).verdict is Verdict.GO
    assert judge(tmp_path, required=True, instance_type="p5.48xlarge").verdict is Verdict.NO_GO


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02" * 50, b"MemTot", b"\xff\xfe\xfd", b"<html>login</html>"], ids=repr
)
def test_unreadable_output_is_unknown_with_evidence(tmp_path, content):
    (tmp_path / "meminfo.txt").write_bytes(content)
    judgement = judge(tmp_path)
    (finding,) = by_check(judgement, "memory")
    assert finding.status is Status.UNKNOWN and "meminfo.txt" in finding.message
    assert judgement.verdict is Verdict.NO_GO and "meminfo" in judgement.unreadable


def test_good_output_of_a_tool_that_failed_is_not_evidence(tmp_path):
    (tmp_path / "meminfo.txt").write_text(MEMINFO)
    write_manifest(tmp_path, rc=3, stderr="segfault\n")
    judgement = judge(tmp_path)
    findings = by_check(judgement, "memory")
    assert {f.status for f in findings} == {Status.UNKNOWN}
    assert "exit status 3" in findings[0].message and findings[0].evidence == ("segfault",)


def test_what_a_failed_tool_found_wrong_stands(tmp_path):
    (tmp_path / "meminfo.txt").write_text("MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n")
    write_manifest(tmp_path, rc=3)
    findings = by_check(judge(tmp_path, instance_type="p5.48xlarge"), "memory")
    assert Status.FAIL in {f.status for f in findings}


def test_a_timed_out_probe_is_unknown_even_with_plausible_output(tmp_path):
    (tmp_path / "meminfo.txt").write_text(MEMINFO)
    write_manifest(tmp_path, rc=None, timed_out=True, note="no answer within 8 s")
    (finding,) = by_check(judge(tmp_path), "memory")
    assert finding.status is Status.UNKNOWN and "no answer within 8 s" in finding.message


def _check(evaluate) -> Check:
    return Check(
        "broken", 0, title="x", what="x", why="x", remedy="x", out_of_service="x", source="x", evaluate=evaluate
    )


def _run(check: Check) -> list[Finding]:
    book = FactBook(bundles.Bundle(Path("/nonexistent"), {}), {})
    return judging._judge_check(check, book, resolve("none"), site.build(), NOW, {}, True)


def test_a_check_that_raises_or_says_nothing_is_unknown():
    def explode(context: Context):
        raise ZeroDivisionError("one over zero")

    (raised,) = _run(_check(lambda context: map(explode, [context])))
    assert raised.status is Status.UNKNOWN and "ZeroDivisionError: one over zero" in raised.message
    (silent,) = _run(_check(lambda context: iter(())))
    assert silent.status is Status.UNKNOWN


def test_a_parser_s_own_bug_is_unreadable_not_an_exception(tmp_path):
    def bug(files):
        raise IndexError("oops")

    def refuse(files):
        raise ParseError("not mine")

    (tmp_path / "x.txt").write_text("hello")
    parsers = {"bug": Parser("bug", ("x.txt",), bug), "refuse": Parser("refuse", ("x.txt",), refuse)}
    book = FactBook(bundles.load(tmp_path), parsers)
    assert "parser bug broke: IndexError: oops" in book.get("bug").reason
    assert set(book.unreadable()) == {"bug", "refuse"} and book.get("refuse").evidence == ("hello",)


def verdict(*statuses, table=must.NOTHING):
    return must.verdict_of([must.Answer(f"c{place}", status) for place, status in enumerate(statuses)], table)


def test_a_verdict_wants_every_check_of_its_table():
    measured, skippable = must.Wanted({}), must.Wanted({"": must.Condition()})
    assert verdict(Status.PASS, Status.SKIP, table={"c0": measured, "c1": skippable}) is Verdict.GO
    assert verdict(Status.PASS, Status.SKIP, table={"c0": measured, "c1": measured}) is Verdict.NO_GO
    assert verdict(Status.PASS, Status.INFO, table={"c0": measured, "c1": measured}) is Verdict.NO_GO
    assert verdict(Status.PASS, table={"c0": measured, "c1": measured}) is Verdict.NO_GO, "one is absent"


def test_the_lattice():
    order = [Status.SKIP, Status.PASS, Status.INFO, Status.WARN, Status.UNKNOWN, Status.UNREACHABLE, Status.FAIL]
    assert [worst(order[: n + 1]) for n in range(len(order))] == order
    assert worst([]) is Status.SKIP
    assert verdict(Status.PASS, Status.WARN, Status.SKIP) is Verdict.GO
    for blocking in (Status.FAIL, Status.UNKNOWN, Status.UNREACHABLE):
        assert verdict(Status.PASS, blocking) is Verdict.NO_GO
    assert verdict(Status.SKIP) is verdict() is Verdict.NO_GO
    assert f"{Status.PASS}" == str(Status.PASS) == "PASS"


def test_evidence_is_short_and_printable():
    lines = clip_evidence(["\x1b[31mred\x1b[0m\x00", "x" * 5000, *["more"] * 20])
    assert len(lines) == 9 and all(line.isprintable() for line in lines)
    assert "\x1b" not in lines[0] and len(lines[1]) < 400


WAIVER = {"check": "memory", "scope": "gpu-*", "reason": "old DIMMs", "owner": "ops", "expiry": "2026-12-01"}


def _finding(status=Status.FAIL, **device) -> Finding:
    return Finding("memory", status, "too small", Remedy.REPLACE, device)


def test_a_waiver_turns_the_finding_into_skip_with_its_reason():
    (waived,) = apply([_finding()], parse_waivers([WAIVER], CHECKS), ["gpu-7"], date(2026, 12, 1))
    assert waived.status is Status.SKIP
    for word in ("old DIMMs", "ops", "2026-12-01", "FAIL", "too small"):
        assert word in waived.message


def test_an_expired_waiver_fails_the_run():
    findings = apply([_finding(Status.WARN)], parse_waivers([WAIVER], CHECKS), ["gpu-7"], date(2026, 12, 2))
    assert [finding.status for finding in findings] == [Status.WARN, Status.FAIL]
    assert "expired" in findings[1].message and findings[1].remedy is Remedy.FIX_CONFIG


def test_a_waiver_covers_its_scope_only():
    waivers = parse_waivers([{**WAIVER, "scope": "GPU-abc*"}], CHECKS)
    inside, outside = apply([_finding(uuid="GPU-abcd"), _finding(uuid="GPU-x", index=1)], waivers, ["n1"], NOW.date())
    assert (inside.status, outside.status) == (Status.SKIP, Status.FAIL)


@pytest.mark.parametrize(
    ("waiver", "wanted"),
    [
        ({**WAIVER, "check": "nonsense"}, "flightline checks lists them"),
        ({**WAIVER, "expiry": "tomorrow"}, "2026-12-31"),
        ({**WAIVER, "expiry": "2026-12-31xyz"}, "2026-12-31"),
        ({**WAIVER, "owner": ""}, "lacks owner"),
        ({**WAIVER, "until": "x"}, "unknown key until"),
        ("memory", "wanted a mapping"),
    ],
)
def test_bad_waivers_are_refused_by_name(waiver, wanted):
    with pytest.raises(SettingsError, match=wanted):
        parse_waivers([waiver], CHECKS)


def test_every_mistake_is_listed_at_once():
    thresholds = {"memory.min_total_percent": 500, "memory.nope": 1, "memory.min_available_percent": "many"}
    with pytest.raises(SettingsError) as error:
        site.build(level="fast", select=["gpu_cuont"], skip="cpus", thresholds=thresholds, waivers=[{}])
    for part in (
        "unknown level 'fast'; known levels: quick, standard, deep",
        "checks: saw unknown check or tag 'gpu_cuont' (did you mean gpu_count?); wanted one of the 1",
        "gpu_count",
        "skip: saw unknown check or tag 'cpus'",
        "memory.min_total_percent: saw 500, wanted a number from 1 to 100 %",
        "unknown threshold 'memory.nope'; wanted one of the ",
        "memory.min_available_percent: saw 'many'",
        "waiver 1: saw that it lacks check, scope, reason, owner, expiry",
    ):
        assert part in str(error.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), True, None, [], "1e999"])
def test_a_threshold_must_be_a_number_in_bounds(bad):
    with pytest.raises(SettingsError, match=r"memory\.min_total_percent"):
        site.build(thresholds={"memory.min_total_percent": bad})


def test_selecting_and_skipping_by_id_and_tag(tmp_path):
    (tmp_path / "meminfo.txt").write_text(MEMINFO)
    assert {f.check for f in judge(tmp_path, select=["memory"]).findings} == {"memory"}
    chosen = site.build(select=["host"], skip=["memory"])
    assert "memory" not in {check.id for check in chosen.checks}
    judgement = judge(tmp_path, select=["host"], skip=["memory"])
    (skipped,) = by_check(judgement, "memory")
    assert skipped.status is Status.SKIP and skipped.message == "skipped on request"


def test_unknown_instance_type_lists_the_known():
    with pytest.raises(SettingsError) as error:
        resolve("p99.metal")
    assert "p5.48xlarge" in str(error.value) and "'none'" in str(error.value)
    assert len(known_types()) > 70


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("gpu_count", "many", "number"),
        ("gpu_count", -1, "number"),
        ("gpu_count", 1.5, "whole number"),
        ("gpu_count", True, "number"),
        ("nvswitch", "maybe", "true or false"),
        ("modules", 3, "list"),
        ("sysctl", "x", "mapping"),
        ("driver_version", [580], "text"),
        ("gpus", 8, "known expected values: "),
        ("instance_type", "p5", "known expected values: "),
    ],
)
def test_bad_expected_values_are_refused_by_name(name, value, wanted):
    with pytest.raises(SettingsError, match=name) as error:
        resolve("p5.48xlarge", {name: value})
    assert wanted in str(error.value)


def test_overrides_and_clearing():
    expected = resolve(
        "p5.48xlarge", {"gpu_count": "4", "efa_count": None, "sysctl": {"vm.x": 1}, "modules": "efa, gdrdrv"}
    )
    assert (expected.gpu_count, expected.efa_count, dict(expected.sysctl)) == (4, None, {"vm.x": "1"})
    assert expected.modules == ("efa", "gdrdrv") and expected.gpu_model == "H100-SXM5-80GB"
    assert dict(resolve("p5.48xlarge", {"sysctl": None}).sysctl) == {}


def test_bundle_must_be_a_directory_with_a_sound_manifest(tmp_path):
    with pytest.raises(SettingsError, match="wanted a directory"):
        bundles.load(tmp_path / "absent")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(SettingsError, match="not JSON"):
        bundles.load(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(SettingsError, match="wanted an object"):
        bundles.load(tmp_path)


def test_extra_files_are_ignored(tmp_path):
    (tmp_path / "meminfo.txt").write_text(MEMINFO)
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "subdir").mkdir()
    assert judge_dir(tmp_path, "none").verdict is Verdict.GO


def test_a_record_leaves_out_only_what_says_nothing():
    bare = Finding("memory", Status.PASS, "fine")
    assert bare.to_record() == {"check": "memory", "status": "PASS", "message": "fine"}
    full = Finding("memory", Status.FAIL, "x", Remedy.REPLACE, {"index": 0}, 0, False, "MiB", ("line",), "r")
    assert full.to_record() == full.to_dict()
    assert {**UNSAID, **bare.to_record()} == bare.to_dict()
