"""The run store's file: nothing written is lost, and every refusal says why.

What holds for every store is in tests/unit/cloud/test_store.py.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from flightline.store.run_rows import RunRows
from flightline.store.sqlite import SqliteStore, StoreError, default_path, spill_file, spill_files
from tests.unit.made import a_run, record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "runs.sqlite"


def filled(path, *hosts, run_id="r1", started_at="2026-11-21T10:00:00+00:00"):
    store = SqliteStore(path)
    store.start(a_run(*hosts, run_id=run_id, started_at=started_at))
    for host in sorted(hosts):
        store.save(run_id, record(host))
    return store


def test_opening_a_run_or_closing_it_twice_changes_nothing(path):
    with filled(path, "a") as store:
        store.start(a_run("x", "y"))
        store.finish("r1", "2026-11-21T10:05:00+00:00", "go")
        store.finish("r1", "2026-11-21T11:00:00+00:00", "no-go")
        assert store.save("r2", record("a")) is True, "another run is another row"
    with SqliteStore(path, create=False) as store:
        assert store.run("r1") == replace(a_run("a"), finished_at="2026-11-21T10:05:00+00:00", verdict="go")


def test_latest_is_the_run_opened_last_also_when_the_clock_was_set_back_in_between(path):
    filled(path, "a", run_id="r1", started_at="2026-11-22T00:00:00+00:00").close()
    filled(path, "a", run_id="r2", started_at="2026-11-20T00:00:00+00:00").close()
    with SqliteStore(path) as store:
        assert store.run("latest").run_id == "r2"
        assert [run.run_id for run in store.runs()] == ["r2", "r1"]
        assert [item.run_id for item in store.history("a")] == ["r2", "r1"]


def test_a_missing_store_says_what_to_do(path):
    with pytest.raises(StoreError, match="flightline preflight"):
        SqliteStore(path, create=False)
    assert not path.parent.exists(), "looking must not create"


def test_a_file_that_is_no_database_is_refused(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be taken for one" * 40)
    with pytest.raises(StoreError, match=r"runs\.sqlite: cannot open .* move the file away"):
        SqliteStore(path)


def test_a_damaged_row_costs_only_its_own_host(path):
    with filled(path, "a", "b", "c") as store:
        store._db.execute("UPDATE nodes SET record=? WHERE host='b'", (b"garbage",))
        assert [item["host"] for item in store.records("r1")] == ["a", "c"]


def test_a_store_of_a_newer_version_is_refused(path):
    filled(path, "a").close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="newer Flightline"):
        SqliteStore(path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make"):
        SqliteStore(tmp_path / "file" / "runs.sqlite")


def test_a_locked_store_names_file_and_holder(path):
    with filled(path, "a") as store:
        store.close()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with SqliteStore(path, busy_timeout_s=0.05) as second:
            with pytest.raises(StoreError, match=r"runs\.sqlite: cannot write .*locked: another process .*fuser"):
                second.save("r1", record("b"))
            assert second.answered("r1") == {"a"}, "readers do not wait for the writer"
            holder.execute("ROLLBACK")
            assert second.save("r1", record("b")), "and it goes on when the lock is gone"
        holder.close()


def spilled(path, run, *hosts):
    rows = RunRows(path, run)
    for host in hosts:
        spill(rows, host)
    return rows


def spill(rows, host):
    assert rows._keep_elsewhere(lambda store: store.save("r1", record(host))) == ""


def test_what_was_kept_aside_is_merged_once_by_the_next_opening(path):
    spilled(path, a_run("a", "b"), "a", "b", "a").close()
    with SqliteStore(path, create=False) as store:
        assert store.merged == 2
        assert store.answered("r1") == {"a", "b"} and [host.host for host in store.run("r1").hosts] == ["a", "b"]
        assert [past.host for past in store.history("i-a")] == ["a"], "and is found by its names"
    assert not list(path.parent.glob("*.aside.*"))
    with SqliteStore(path) as store:
        assert store.merged == 0


def test_what_the_store_has_already_stays_as_it_is(path):
    with filled(path, "a") as store:
        before = list(store.records("r1"))
    spilled(path, a_run("a"), "a").close()
    with SqliteStore(path) as store:
        assert store.merged == 0 and list(store.records("r1")) == before


def test_the_store_of_a_run_that_still_writes_is_left_alone(path):
    """Taken away while its run writes on, every later row of it would be lost."""
    rows = spilled(path, a_run("a", "b"), "a")
    with SqliteStore(path) as store:
        assert store.merged == 0 and len(spill_files(path)) == 1
    spill(rows, "b")
    rows.close()
    with SqliteStore(path) as store:
        assert store.answered("r1") == {"a", "b"}


def test_a_damaged_file_aside_costs_nobody_else_and_stays(path):
    spilled(path, a_run("a"), "a").close()
    spill_file(path, "0badcafe").write_bytes(b"no database")
    with SqliteStore(path) as store:
        assert store.answered("r1") == {"a"}
    assert [one.name for one in spill_files(path)] == ["runs.sqlite.aside.0badcafe"]


def test_a_killed_run_leaves_its_rows_aside(path):
    """SIGKILL right after put(), while another process holds the store."""
    SqliteStore(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from flightline.store import run_rows, sqlite
        from tests.unit.made import a_run, record
        sqlite.BUSY_TIMEOUT_S = run_rows.RETRY_BUSY_S = 0.01
        kept = run_rows.RunRows(Path(sys.argv[1]), a_run("a", "b"))
        kept.put(record("a"))
        kept.put(record("b"))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    holder.execute("ROLLBACK")
    with SqliteStore(path) as store:
        assert store.answered("r1") == {"a", "b"}


def test_a_row_is_on_disk_when_save_returns(path):
    """SIGKILL right after save(): the row is there, and so is the file's integrity."""
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from flightline.store.sqlite import SqliteStore
        from tests.unit.made import a_run, record
        store = SqliteStore(Path(sys.argv[1]))
        hosts = [f"n{number}" for number in range(1000)]
        store.start(a_run(*hosts))
        for host in hosts:
            store.save("r1", record(host))
            print(host, flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    told = [process.stdout.readline().strip() for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    told += process.stdout.read().split()
    process.wait()
    assert process.returncode == -signal.SIGKILL and len(told) < 1000
    with SqliteStore(path, create=False) as store:
        assert set(told) <= store.answered("r1")
        assert len(store.run("r1").hosts) == 1000
        assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _limited(path, body):
    """Run code in a process whose files may not grow beyond 200 kB: what a full disk looks like, without one."""
    script = "\n".join(
        (
            "import resource, signal, sys",
            "from pathlib import Path",
            "from flightline.store.sqlite import *",
            "from flightline.store.run_rows import RunRows",
            "from tests.unit.made import a_run, record",
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))",
            "path = Path(sys.argv[1])",
            textwrap.dedent(body),
        )
    )
    return subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_full_disk_is_an_error_that_names_the_file_and_loses_nothing_written(path):
    run = _limited(
        path,
        """
        store = SqliteStore(path)
        store.start(a_run("x"))
        for number in range(5000):
            try:
                store.save("r1", record(f"n{number}", filler=str(number) * 400))
            except StoreError as error:
                print(number, error)
                break
        """,
    )
    number, _, text = run.stdout.partition(" ")
    assert run.returncode == 0 and "runs.sqlite: cannot write" in text and "free space" in text, run.stderr
    with SqliteStore(path) as store:
        assert len(store.answered("r1")) == int(number) > 0


def test_on_a_full_disk_rows_are_kept_aside_and_at_last_in_memory(path):
    run = _limited(
        path,
        """
        rows = RunRows(path, a_run("x"))
        rows.open()
        for number in range(1500):
            rows.put(record(f"n{number}", filler=str(number) * 400))
        rows.close()
        print(len(rows._spilled()), rows._memory is not None, rows.trouble)
        """,
    )
    kept, memory, trouble = run.stdout.split(" ", 2)
    assert run.returncode == 0, run.stderr
    assert "cannot write" in trouble and memory == "True"
    with SqliteStore(path) as store:
        stored = store.answered("r1")
    assert len(stored) < 1500 <= len(stored) + int(kept)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="permissions"):
        SqliteStore(tmp_path / "runs.sqlite")


def test_another_programs_database_is_left_as_it_is(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (x)")
    with pytest.raises(
        StoreError, match="saw the table bookmarks, so not a Flightline run store, wanted one; do: name another"
    ):
        SqliteStore(path)
    with sqlite3.connect(path) as other:
        assert [row[0] for row in other.execute("SELECT name FROM sqlite_master")] == ["bookmarks"]


def test_a_table_of_another_shape_says_what_to_do(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (run_id TEXT)")
    with SqliteStore(path) as store, pytest.raises(StoreError, match="no Flightline run store: move the file away"):
        store.run("latest")


def test_a_tilde_in_the_environment_is_the_home_directory(monkeypatch, tmp_path):
    """A unit's or a container's environment is not expanded by any shell."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FLIGHTLINE_STORE", "~/runs.sqlite")
    assert default_path() == tmp_path / "runs.sqlite"
