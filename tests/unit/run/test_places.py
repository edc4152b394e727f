"""Where a run may write. The whole command is tried in tests/e2e/test_refused_first.py."""

import errno
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

from flightline.run import places
from flightline.store.sqlite import SqliteStore


def test_a_new_store_and_one_that_is_there_are_taken_and_nothing_is_left(tmp_path):
    store = tmp_path / "new" / "runs.sqlite"
    assert places.mistakes(store) == [] and list(tmp_path.iterdir()) == []
    SqliteStore(store).close()
    assert places.mistakes(store) == [] and [one.name for one in store.parent.iterdir()] == ["runs.sqlite"]


def test_every_place_is_named_at_once(tmp_path):
    (tmp_path / "taken").write_text("")
    said = places.mistakes(tmp_path, tmp_path / "no" / "such", tmp_path / "taken" / "x.json")
    assert [one.partition(": saw ")[0] for one in said] == [
        "the run store",
        "the report's directory",
        "the JSON report",
    ]


def test_a_store_that_another_process_holds_is_no_reason_to_refuse(tmp_path):
    store = tmp_path / "runs.sqlite"
    SqliteStore(store).close()
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("PRAGMA journal_mode=DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    assert places.mistakes(store) == []
    holder.close()


@pytest.mark.parametrize(("number", "refused"), [(errno.ENOSPC, False), (errno.EDQUOT, False), (errno.EROFS, True)])
def test_a_full_disk_may_have_room_again(tmp_path, monkeypatch, number, refused):
    def no(**given):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", no)
    assert bool(places.mistakes(tmp_path / "runs.sqlite")) is refused


def test_a_name_that_no_file_may_have(tmp_path):
    (said,) = places.mistakes(tmp_path / ("x" * 300))
    assert "File name too long" in said and "wanted" in said


@pytest.mark.parametrize("path", ["-", "/dev/null", "/dev/stdout"])
def test_what_is_no_plain_file_takes_a_report_as_it_is(tmp_path, path):
    assert places.mistakes(tmp_path / "runs.sqlite", json_path=Path(path)) == []
