"""A node that answers after it was given up: what it says is kept, judged when the run is looked at again, and said."""

import json

import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.fleet.judgement import as_judged, judge_run
from flightline.store.rows import broken_record, unreachable_record
from flightline.store.sqlite import ExpectedHost, SqliteStore, spill_file
from flightline_node.model import Verdict
from tests.unit.made import a_run, finding, record

GIVEN_UP = "no answer before the deadline (asked: srun)"


@pytest.fixture
def path(tmp_path):
    """A run of two that was closed as no-go: b had not answered."""
    found = tmp_path / "runs.sqlite"
    with SqliteStore(found) as store:
        store.start(a_run("a", "b"))
        store.save("r1", record("a"))
        store.save("r1", unreachable_record(ExpectedHost("b", "p5.48xlarge"), GIVEN_UP))
        store.finish("r1", "2026-11-21T10:05:00+00:00", "no-go")
    return found


def report(path, *more):
    done = CliRunner().invoke(cli, ["report", "r1", "--store", str(path), *more])
    return done.exit_code, done.output


def test_without_a_late_answer_the_row_says_how_it_was_asked(path):
    status, said = report(path)
    assert status == 1 and GIVEN_UP in said and "late: " not in said


def test_a_late_go_is_judged_and_the_first_verdict_stays_on_record(path):
    with SqliteStore(path) as store:
        assert store.save_late_record("r1", record("b"))
    status, said = report(path)
    assert status == 0 and "late: 1 node answered after the deadline: b." in said
    assert "The first verdict, no-go, was given without them and stays on record." in " ".join(said.split())
    with SqliteStore(path) as store:
        assert (store.run("r1").verdict, store.run("r1").finished_at[:16]) == ("no-go", "2026-11-21T10:05")
        assert GIVEN_UP in str(list(store.records("r1"))), "nothing measured or judged is overwritten"
        assert judge_run(store, "r1", late=False).verdict is Verdict.NO_GO
        assert [one["verdict"] for one in as_judged(store, "r1")] == ["go", "go"]


def test_the_json_report_has_what_the_late_node_measured(path):
    with SqliteStore(path) as store:
        store.save_late_record(
            "r1", record("b", finding("row_remap", "FAIL"), measures={"m": {"unit": "W", "values": {"0": 1}}})
        )
    status, said = report(path, "--json", "-")
    document = json.loads(said)
    assert status == 1 and document["late"] == {"hosts": ["b"], "first_verdict": "no-go"}
    assert document["nodes"][1]["measures"]["m"]["values"] == {"0": 1} and document["nodes"][1]["cells"] == {
        "row_remap": "FAIL"
    }


def test_only_the_first_late_answer_counts_and_none_replaces_an_answer(path):
    with SqliteStore(path) as store:
        assert store.save_late_record("r1", record("b", finding("row_remap", "FAIL")))
        assert not store.save_late_record("r1", record("b")), "twice"
        store.save_late_record("r1", record("a", finding("row_remap", "FAIL")))
        found = judge_run(store, "r1")
    assert found.late == ["b"] and {row.host: str(row.verdict) for row in found.rows} == {"a": "go", "b": "no-go"}


def test_a_late_answer_of_an_unknown_node_or_another_run_is_no_row(path):
    with SqliteStore(path) as store:
        store.save_late_record("r1", record("stranger"))
        store.save_late_record("r0", record("b"))
        found = judge_run(store, "r1")
    assert [row.host for row in found.rows] == ["a", "b"] and found.late == [] and found.verdict is Verdict.NO_GO


def test_a_torn_answer_is_not_replaced_by_a_second_one(tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        store.start(a_run("a"))
        store.save("r1", broken_record(ExpectedHost("a"), "its answer ends in the middle"))
        store.save_late_record("r1", record("a"))
        assert judge_run(store, "r1").verdict is Verdict.NO_GO


def test_a_killed_run_is_judged_with_what_came_late(tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        store.start(a_run("a", "b"))
        store.save("r1", record("a"))
        store.save_late_record("r1", record("b"))
        found = judge_run(store, "r1")
    assert found.verdict is Verdict.GO and found.late == ["b"] and found.first == ""


def test_a_damaged_late_answer_is_none(path):
    with SqliteStore(path) as store:
        store.save_late_record("r1", record("b"))
        store._db.execute("UPDATE late SET record = x'00'")
        assert store.late("r1") == [] and judge_run(store, "r1").verdict is Verdict.NO_GO


def test_a_late_answer_that_was_kept_beside_the_store_is_merged(path):
    other = spill_file(path, "x")
    with SqliteStore(other, own=True) as store:
        store.start(a_run("a", "b"))
        store.save_late_record("r1", record("b"))
    with SqliteStore(path) as store:
        assert [one["host"] for one in store.late("r1")] == ["b"]
