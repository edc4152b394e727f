"""Rows survive a store that refuses them."""

import sqlite3
import time
from operator import methodcaller

import pytest

from flightline.run import conclude as ending
from flightline.store.rows import broken_record, lost_record, unreachable_record
from flightline.store.run_rows import RunRows
from flightline.store.sqlite import ExpectedHost, SqliteStore, spill_files
from flightline_node.model import Status, Verdict
from tests.unit.made import a_run, record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def quick(monkeypatch):
    """Locks are waited for 5 s in life, hardly at all here."""
    monkeypatch.setattr("flightline.store.sqlite.BUSY_TIMEOUT_S", 0.1)
    monkeypatch.setattr("flightline.store.run_rows.RETRY_BUSY_S", 0.02)
    monkeypatch.setattr(SqliteStore.__init__, "__kwdefaults__", {"create": True, "busy_timeout_s": 0.1, "own": False})


@pytest.fixture
def locked(path, quick):
    SqliteStore(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    yield holder
    holder.close()


def test_rows_go_to_the_store(path):
    rows = RunRows(path, a_run("a", "b"))
    rows.open()
    rows.put(record("a"))
    with SqliteStore(path, create=False) as reader:
        assert reader.answered("r1") == {"a"}, "a row is there while the run goes on"
    rows.close()
    assert (rows.settle(), rows.trouble) == ([], "") and rows.store == path


def test_under_a_lock_rows_are_kept_aside_without_waiting_long_and_merged_later(path, locked):
    rows = RunRows(path, a_run(*(f"n{number}" for number in range(20))))
    started = time.monotonic()
    rows.open()
    for number in range(20):
        rows.put(record(f"n{number}"))
    rows.close()
    assert time.monotonic() - started < 15
    assert "locked" in rows.trouble and len(list(rows.read().records("r1"))) == 20
    rows.close()
    assert len(spill_files(path)) == 1 and rows.store == path
    locked.execute("ROLLBACK")
    with SqliteStore(path) as store:
        assert len(store.answered("r1")) == 20 and store.merged == 20
    assert not spill_files(path)


def test_rows_written_after_the_lock_went_are_in_the_store(path, locked, monkeypatch):
    monkeypatch.setattr("flightline.store.run_rows.RETRY_EVERY_S", 0)
    rows = RunRows(path, a_run("a", "b"))
    rows.open()
    rows.put(record("a"))
    locked.execute("ROLLBACK")
    rows.put(record("b"))
    rows.close()
    with SqliteStore(path) as store:
        assert store.answered("r1") == {"a", "b"} and len(store.run("r1").hosts) == 2


def test_a_store_locked_to_the_end_still_gives_the_verdict_over_all_rows(path, locked, tmp_path):
    rows = RunRows(path, a_run("a", "b"))
    rows.open()
    for host in ("a", "b"):
        rows.put(record(host))
    rows.close()
    outcome = ending.conclude(rows, tmp_path / "report")
    assert outcome.report.verdict is Verdict.GO and outcome.exit_status == 0
    assert {"json", "junit", "html", "hosts"} <= set(outcome.links)
    assert any("locked" in trouble and "2 results" in trouble for trouble in outcome.troubles)


def test_a_report_that_cannot_be_written_costs_only_the_report(path, tmp_path):
    (tmp_path / "taken").write_text("a file where the directory should be")
    rows = RunRows(path, a_run("a"))
    rows.open()
    rows.put(record("a"))
    rows.close()
    outcome = ending.conclude(rows, tmp_path / "taken")
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


def spilled_elsewhere(path, run, tmp_path, *hosts):
    """Rows in the run's own directory: neither the store nor its directory took them."""
    (tmp_path / "own").mkdir()
    rows = RunRows(path, run, tmp_path / "own")
    rows._next_place()
    for host in hosts:
        assert rows._keep_elsewhere(methodcaller("save", "r1", record(host))) == ""
    rows.close()
    assert not spill_files(path) and spill_files(tmp_path / "own" / path.name)
    return RunRows.find(path, "r1", tmp_path / "own", create=False) or RunRows(path, run, tmp_path / "own")


def test_a_row_that_came_aside_is_stored_when_the_run_ends(path, tmp_path):
    run = a_run("a", "b")
    with SqliteStore(path) as store:
        store.start(run)
        store.save("r1", record("a"))
    outcome = ending.conclude(spilled_elsewhere(path, run, tmp_path, "b"), tmp_path / "report")
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

    rows = spilled_elsewhere(path, run, tmp_path, "a")
    monkeypatch.setattr("flightline.store.sqlite._insert_node", refuse)
    (tmp_path / "taken").write_text("")
    outcome = ending.conclude(rows, tmp_path / "taken")
    assert outcome.exit_status == 0, "the verdict counts it"
    assert outcome.store is None and ending.look_back(outcome.store) is None
    assert "disk is full" in outcome.troubles[0] and "1 results could not be stored" in outcome.troubles[0]
    assert "only in this summary" in outcome.troubles[1]


def test_the_command_to_look_back_names_a_store_that_is_not_the_default(path, monkeypatch):
    monkeypatch.setenv("FLIGHTLINE_STORE", str(path))
    assert ending.look_back(path) == ""
    assert ending.look_back(path.with_name("an other.sqlite")).startswith(" --store '")
