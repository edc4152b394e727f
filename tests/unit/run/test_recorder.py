"""Rows survive a store that refuses them."""

from __future__ import annotations

import sqlite3
import time

import pytest

from flightline.run import conclude as ending
from flightline.run.recorder import Recorder
from flightline.store.aside import Aside
from flightline.store.rows import broken_record, lost_record, unreachable_record
from flightline.store.sqlite import ExpectedHost, SqliteStore, aside_files
from flightline_node.model import Status, Verdict
from tests.unit.made import a_run, record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def quick(monkeypatch):
    """Locks are waited for 5 s in life, hardly at all here."""
    monkeypatch.setattr("flightline.store.sqlite.BUSY_TIMEOUT_S", 0.1)
    monkeypatch.setattr("flightline.run.recorder.RETRY_BUSY_S", 0.02)
    monkeypatch.setattr(SqliteStore.__init__, "__kwdefaults__", {"create": True, "busy_timeout_s": 0.1, "own": False})


@pytest.fixture
def locked(path, quick):
    SqliteStore(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    yield holder
    holder.close()


def test_rows_go_to_the_store(path):
    recorder = Recorder(path, a_run("a", "b"))
    recorder.open()
    recorder.add(record("a"))
    with SqliteStore(path, create=False) as reader:
        assert reader.answered("r1") == {"a"}, "a row is there while the run goes on"
    recorder.close()
    assert (list(recorder.aside.rows()), recorder.trouble) == ([], "")


def test_under_a_lock_rows_are_kept_aside_without_waiting_long_and_merged_later(path, locked):
    recorder = Recorder(path, a_run(*(f"n{number}" for number in range(20))))
    started = time.monotonic()
    recorder.open()
    for number in range(20):
        recorder.add(record(f"n{number}"))
    recorder.close()
    assert time.monotonic() - started < 15
    assert "locked" in recorder.trouble and len(list(recorder.aside.rows())) == 20
    assert len(aside_files(path)) == 1 and recorder.aside.is_beside
    locked.execute("ROLLBACK")
    with SqliteStore(path) as store:
        assert len(store.answered("r1")) == 20 and store.merged == 20
    assert not aside_files(path)


def test_rows_written_after_the_lock_went_are_in_the_store(path, locked, monkeypatch):
    monkeypatch.setattr("flightline.run.recorder.RETRY_EVERY_S", 0)
    recorder = Recorder(path, a_run("a", "b"))
    recorder.open()
    recorder.add(record("a"))
    locked.execute("ROLLBACK")
    recorder.add(record("b"))
    recorder.close()
    with SqliteStore(path) as store:
        assert store.answered("r1") == {"a", "b"} and len(store.run("r1").hosts) == 2


def test_a_store_locked_to_the_end_still_gives_the_verdict_over_all_rows(path, locked, tmp_path):
    recorder = Recorder(path, a_run("a", "b"))
    recorder.open()
    for host in ("a", "b"):
        recorder.add(record(host))
    recorder.close()
    outcome = ending.conclude(path, recorder.run, recorder.aside, tmp_path / "report", recorder.trouble)
    assert outcome.report.verdict is Verdict.GO and outcome.exit_status == 0
    assert {"json", "junit", "html", "hosts"} <= set(outcome.links)
    assert any("locked" in trouble and "2 results" in trouble for trouble in outcome.troubles)


def test_a_report_that_cannot_be_written_costs_only_the_report(path, tmp_path):
    (tmp_path / "taken").write_text("a file where the directory should be")
    recorder = Recorder(path, a_run("a"))
    recorder.open()
    recorder.add(record("a"))
    recorder.close()
    outcome = ending.conclude(path, recorder.run, recorder.aside, tmp_path / "taken")
    assert outcome.report.verdict is Verdict.GO and not outcome.links
    assert any("could not be written" in text and "flightline report r1" in text for text in outcome.troubles)
    with SqliteStore(path) as store:
        assert store.run("r1").verdict == "go"


def test_hosts_without_a_measurement_have_a_blocking_row():
    host = ExpectedHost("n1", "p5.48xlarge", "i-1")
    for made, check, status in (
        (unreachable_record(host, "Task failed: ssh: refused\n"), "reachable", Status.UNREACHABLE),
        (broken_record(host, "MODULE FAILURE"), "node", Status.UNKNOWN),
        (lost_record(host), "reachable", Status.UNKNOWN),
    ):
        (only,) = made["findings"]
        assert (only["check"], only["status"], made["verdict"]) == (check, str(status), "no-go")
        assert (made["host"], made["instance_type"], made["instance_id"]) == ("n1", "p5.48xlarge", "i-1")
    assert (
        unreachable_record(host, "Task failed: ssh: refused\n")["findings"][0]["message"]
        == "no connection: ssh: refused"
    )
    assert "no reason given" in broken_record(host, "")["findings"][0]["message"]


def kept_elsewhere(path, run, tmp_path, *hosts):
    """Rows in the run's own directory: neither the store nor its directory took them."""
    aside = Aside(path, run, tmp_path / "own")
    (tmp_path / "own").mkdir()
    aside._next()
    for host in hosts:
        assert aside.add(record(host)) == ""
    aside.close()
    assert not aside.is_beside and not aside_files(path)
    return aside


def test_a_row_that_came_aside_is_stored_when_the_run_ends(path, tmp_path):
    run = a_run("a", "b")
    with SqliteStore(path) as store:
        store.start(run)
        store.save("r1", record("a"))
    outcome = ending.conclude(path, run, kept_elsewhere(path, run, tmp_path, "b"), tmp_path / "report")
    assert outcome.exit_status == 0 and outcome.store == path and not outcome.troubles
    with SqliteStore(path) as store:
        assert store.answered("r1") == {"a", "b"}


def test_a_row_that_no_store_takes_is_told_and_nobody_is_sent_to_look_it_up(path, tmp_path, monkeypatch):
    """The run was opened, then the disk filled: the store has the run and not the row."""
    run = a_run("a")
    with SqliteStore(path) as store:
        store.start(run)
    full = sqlite3.OperationalError("database or disk is full")

    def refuse(*_):
        raise full

    aside = kept_elsewhere(path, run, tmp_path, "a")
    monkeypatch.setattr("flightline.store.sqlite._insert_node", refuse)
    (tmp_path / "taken").write_text("")
    outcome = ending.conclude(path, run, aside, tmp_path / "taken")
    assert outcome.exit_status == 0, "the verdict counts it"
    assert outcome.store is None and ending.look_back(outcome.store) is None
    assert "disk is full" in outcome.troubles[0] and "1 results could not be stored" in outcome.troubles[0]
    assert "only in this summary" in outcome.troubles[1]


def test_the_command_to_look_back_names_a_store_that_is_not_the_default(path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(path))
    assert ending.look_back(path) == ""
    assert ending.look_back(path.with_name("an other.sqlite")).startswith(" --store '")
