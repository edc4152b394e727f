"""Where a run writes, tried before the first node is asked. Of a place that is named, the last folder may be made."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from flightline_node.model import SettingsError

from ..store.sqlite import SqliteStore, StoreError

REPORT_ENV = "FLIGHTLINE_REPORT_DIR"
FULL = (errno.ENOSPC, errno.EDQUOT)
PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
"""A store that is held by another process or full may be free again: what it refuses is kept aside."""
TRIED_S = 0.2


def refuse(store: Path, report_dir: Path | None = None, json_path: Path | None = None) -> None:
    """Raise SettingsError with every place in which nothing could be kept at the end."""
    found = mistakes(store, report_dir, json_path)
    if found:
        raise SettingsError(*found)


def mistakes(store: Path, report_dir: Path | None = None, json_path: Path | None = None) -> list[str]:
    """What is wrong with the places of a run. report_dir: else FLIGHTLINE_REPORT_DIR's."""
    chosen = chosen_report_dir(report_dir)
    looks: dict[str, Callable[[], str]] = {
        "the run store": lambda: _store(store),
        "the report's directory": lambda: _folder(chosen) if chosen else "",
        "the JSON report": lambda: _file(json_path, store) if json_path else "",
    }
    return [f"{what}: {why}" for what, look in looks.items() if (why := _seen(look))]


def _seen(look: Callable[[], str]) -> str:
    try:
        return look()
    except OSError as error:  # no right even to look, a name that is too long
        return f"saw {error.strerror} at {error.filename}, wanted a place to write; do: name another"


def chosen_report_dir(given: Path | None = None) -> Path | None:
    """Where reports go by choice: as given, else FLIGHTLINE_REPORT_DIR; None for beside the store."""
    chosen = given or os.environ.get(REPORT_ENV)
    return Path(chosen).absolute() if chosen else None


def is_special(path: Path) -> bool:
    """Is it a device or a pipe, which is written to as it is?"""
    return path.exists() and not path.is_file() and not path.is_dir()


def _store(path: Path) -> str:
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "no plain file"
        return f"saw {what} at {path}, wanted a file; do: name one with --store or FLIGHTLINE_STORE"
    why = _folder(path.parent)
    if why or not path.exists():
        return why
    with path.open("r+b"):  # what SQLite says of a file without the right does not name the reason
        pass
    try:
        SqliteStore(path, busy_timeout_s=TRIED_S).close()
    except StoreError as error:
        passing = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF in PASSING
        return "" if passing else str(error)
    return ""


def _file(path: Path, store: Path) -> str:
    if str(path) == "-" or is_special(path):
        return ""
    if path.absolute() == store.absolute():
        return f"saw the run store {path}, wanted another file; do: name one"
    if path.is_dir():
        return f"saw a directory at {path}, wanted a file; do: name one"
    return _folder(path.absolute().parent)


def _folder(path: Path) -> str:
    """Why nothing can be written there, or ""."""
    there = path if path.exists() else path.absolute().parent
    if not there.exists():
        return f"saw no folder {there}, wanted one: only {path.name} is made in it; do: make it, or name another place"
    if not there.is_dir():
        return f"saw a file at {there}, wanted a folder; do: name another place"
    try:
        tempfile.NamedTemporaryFile(dir=there, prefix=".flightline-").close()
    except OSError as error:
        if error.errno not in FULL:
            return f"saw {error.strerror} in {there}, wanted a folder to write in; do: name another place"
    return ""
