"""flightline runs, diff, waivers and --only-failed-of: what scripts and people ask of earlier runs."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.commands import preflight as command
from flightline.fleet import lookup, waiver_list
from flightline.fleet.judgement import judge_run
from flightline.run.preflight import CannotRunError
from flightline.store.rows import absent_record, unreachable_record
from flightline.store.sqlite import ExpectedHost, SqliteStore
from flightline_node.judge.checks import CHECKS
from tests.memory_store import MemoryStore
from tests.unit.made import a_run, finding, record

GPU = {"index": 3, "uuid": "GPU-3", "serial": "S3", "pci": "0000:86:00.0"}


def fail(check="row_remap", message="a row remapping waits", **rest):
    return finding(check, "FAIL", remedy="RESET_GPU", message=message, **{"device": GPU, **rest})


def judged(*records, run_id="r1"):
    hosts = [item["host"] for item in records]
    return judge_run(MemoryStore(a_run(*hosts, run_id=run_id), {item["host"]: item for item in records}), run_id)


def compared(before, after):
    found = lookup.difference(judged(*before), judged(*after))
    return {name: [(one.host, one.check) for one in some] for name, _, some in lookup.classes(found) if some}, found


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "runs.sqlite"
    with SqliteStore(path) as db:
        db.start(a_run("a", "b", run_id="20261121T030000Z-aaaaaa"))
        db.save("20261121T030000Z-aaaaaa", record("a"))
        db.save("20261121T030000Z-aaaaaa", record("b", fail()))
        db.finish("20261121T030000Z-aaaaaa", "2026-11-21T10:00:30+00:00", "no-go")
        db.start(a_run("b", "c", run_id="20261122T030000Z-bbbbbb"))
        db.save("20261122T030000Z-bbbbbb", record("b", finding("row_remap")))
        db.save("20261122T030000Z-bbbbbb", record("c", fail("disk_space", "/ is full", device={"mount": "/"})))
    return path


def call(*arguments):
    done = CliRunner().invoke(cli, [str(one) for one in arguments])
    return done.exit_code, done.output, done.exception


def test_runs_are_listed_newest_first(store):
    status, out, _ = call("runs", "--store", store)
    lines = out.splitlines()
    assert status == 0 and lines[1].split()[:4] == ["20261122T030000Z-bbbbbb", "unfinished", "2", "quick"]
    assert lines[2].split()[:6] == ["20261121T030000Z-aaaaaa", "no-go", "2", "quick", "30", "s"]


def test_runs_for_scripts(store):
    status, out, _ = call("runs", "--json", "--limit", 1, "--store", store)
    (only,) = json.loads(out)
    assert status == 0 and (only["run"], only["verdict"], only["nodes"]) == ("20261122T030000Z-bbbbbb", "unfinished", 2)


def test_new_gone_and_same():
    before = [record("a", fail()), record("b", fail()), record("c")]
    after = [record("a", fail()), record("b", finding("row_remap")), record("c", fail("ecc_mode", "off"))]
    assert compared(before, after)[0] == {
        "new": [("c", "ecc_mode")],
        "same": [("a", "row_remap")],
        "gone": [("b", "row_remap")],
    }


@pytest.mark.parametrize(
    "again",
    [
        unreachable_record(ExpectedHost("a"), "no route"),
        record("a", finding("row_remap", "UNKNOWN", message="could not be measured: x", remedy="INVESTIGATE")),
        record("a", finding("row_remap", "SKIP", message="skipped on request"), finding()),
        record("a", finding("memory")),
    ],
)
def test_a_trouble_that_nobody_looked_at_again_is_not_gone(again):
    found, whole = compared([record("a", fail())], [again])
    assert found["unjudged"] == [("a", "row_remap")] and "gone" not in found and whole.is_worse


def test_the_same_trouble_of_another_gpu_is_new():
    other = fail(device={"index": 5, "uuid": "GPU-5", "serial": "S5"})
    assert compared([record("a", fail())], [record("a", other)])[0] == {
        "new": [("a", "row_remap")],
        "gone": [("a", "row_remap")],
    }
    renumbered = fail(device={**GPU, "index": 4, "pci": "0000:97:00.0"})
    assert compared([record("a", fail())], [record("a", renumbered)])[0] == {"same": [("a", "row_remap")]}


def test_nodes_that_appeared_and_vanished(store):
    status, out, _ = call("diff", "20261121T030000Z-aaaaaa", "latest", "--json", "--store", store)
    found = json.loads(out)
    assert status == 1 and (found["appeared"], found["vanished"]) == (["c"], ["a"])
    assert [one["host"] for one in found["gone"]] == ["b"] and [one["check"] for one in found["new"]] == ["disk_space"]
    status, out, _ = call("diff", "20261121T030000Z-aaaaaa", "latest", "--store", store)
    assert status == 1 and "1 node vanished: a" in out and "c  FAIL disk_space RESET_GPU: / is full" in out
    assert call("diff", "latest", "latest", "--store", store)[0] == 0


@pytest.mark.parametrize("arguments", [("report",), ("diff", "latest"), ("waivers", "--run")])
def test_a_misspelt_run_is_guessed(store, arguments):
    _, _, error = call(*arguments, "20261121T030000Z-aaaaab", "--store", store)
    assert "did you mean 20261121T030000Z-aaaaaa" in str(error)


def test_only_the_failed_are_judged_again(store, monkeypatch):
    asked = []

    def run(request, *_):
        asked.append((request.inventory, Path(request.limit.removeprefix("@")).read_text()))
        raise CannotRunError("enough")

    monkeypatch.setattr(command, "run", run)
    status, _, _ = call("preflight", "--only-failed-of", "20261121T030000Z-aaaaaa", "-i", "made", "--store", store)
    assert status == 2 and asked == [(("made",), "b\n")]


def test_there_must_be_something_to_judge_again(store):
    with SqliteStore(store) as db:
        db.start(a_run("a", run_id="good"))
        db.save("good", record("a"))
    status, out, _ = call("preflight", "--only-failed-of", "good", "--store", store)
    assert status == 2 and "no node of it was no-go" in out
    status, out, _ = call("preflight", "--only-failed-of", "good", "--limit", "x", "--store", store)
    assert status != 0


def test_what_is_in_no_inventory_is_not_judged_again():
    report = judged(record("b", fail()), absent_record(ExpectedHost("i-1"), "launched, not listed"))
    assert lookup.failed_hosts(report) == (["b"], ["i-1"])


TODAY = date(2026, 11, 22)


def waiver(days, check="disk_space", **rest):
    day = (TODAY + timedelta(days=days)).isoformat()
    return {"check": check, "scope": "*", "reason": "images", "owner": "ops", "expiry": day, **rest}


def test_waivers_of_an_inventory():
    found, broken = waiver_list.from_variables(
        {"a": [waiver(30), waiver(3)], "b": [waiver(30), waiver(-1), {"check": "xid"}], "c": None, "d": "nonsense"}
    )
    assert [(one.state(TODAY, 14), one.days_left(TODAY), one.hosts) for one in found] == [
        ("expired", -1, ["b"]),
        ("soon", 3, ["a"]),
        ("active", 30, ["a", "b"]),
    ]
    assert [text.partition(":")[0] for text in broken] == ["b", "d"]


@pytest.mark.parametrize(("days", "state"), [(-1, "expired"), (0, "soon"), (14, "soon"), (15, "active")])
def test_the_last_day_still_holds(days, state):
    ((one,), _) = waiver_list.from_variables({"a": [waiver(days)]})
    assert one.state(TODAY, 14) == state


def test_waivers_that_a_run_leaned_on():
    rows = [
        record("a", finding("disk_space", "SKIP", reason="waived", waiver=waiver(39))),
        record("b", finding("xid", "FAIL", waiver=waiver(-2, "xid"))),
        record(
            "of-0.1", finding("xid", "SKIP", reason="waived", message="waived until 2026-12-31 by ops: x (was FAIL: y)")
        ),
    ]
    found, broken = waiver_list.from_report(judged(*rows))
    assert [(one.waiver.check, one.days_left(TODAY), one.hosts) for one in found] == [
        ("xid", -2, ["b"]),
        ("disk_space", 39, ["a"]),
    ]
    assert [text.partition(":")[0] for text in broken] == ["of-0.1"]


def test_an_inventory_s_waivers_as_ansible_reads_them(tmp_path):
    hosts = {"a": {"flightline_waivers": [waiver(-1)]}, "b": {}}
    path = tmp_path / "hosts.yml"
    path.write_text(json.dumps({"all": {"vars": {"flightline_waivers": [waiver(3000)]}, "hosts": hosts}}))
    status, out, _ = call("waivers", "-i", path, "--json")
    found = json.loads(out)["waivers"]
    assert status == 1 and [(one["state"], one["hosts"]) for one in found] == [("expired", ["a"]), ("active", ["b"])]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("judge", ".", "--instance-type", "p5.48xlrge"), "did you mean p5.48xlarge"),
        (("judge", ".", "--instance-type", "none", "--check", "gpu_cuont"), "did you mean gpu_count"),
        (("judge", ".", "--level", "quik"), "did you mean quick"),
        (("checks", "memroy"), "did you mean memory"),
        (("demo", "--out", "x", "--fault", "gpu_mising=gpu-01"), "did you mean gpu_missing"),
        (("prefligth",), "did you mean preflight"),
    ],
)
def test_what_was_meant(arguments, wanted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, error = call(*arguments)
    assert wanted in out + str(error)


def test_what_comes_near_nothing_is_not_guessed():
    from flightline_node.suggest import meant

    assert meant("zzzz", CHECKS) == "" and meant("", CHECKS) == "" and meant("x" * 5_000_000, CHECKS) == ""


@pytest.mark.parametrize(
    "name",
    ["preflight", "judge", "collect", "report", "runs", "diff", "history", "waivers", "publish", "checks", "demo"],
)
def test_every_command_s_help_has_an_example(name):
    status, out, _ = call(name, "--help")
    assert status == 0 and f"flightline {name}" in out.partition("Example:")[2]
