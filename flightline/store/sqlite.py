"""The run store: what every node answered, kept the moment it answered.

`Store` is what a store can do; `SqliteStore` keeps one file. Rows are written once: a retry neither
doubles nor overwrites a result. A row that the file refuses (locked, disk full) goes into a store of the same kind
aside (run_rows.py), and is merged when the store is next opened.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from flightline_node.model import Status, as_status, worst

from ..record.intake import stored
from .jsontext import decode

STORE_ENV = "FLIGHTLINE_STORE"
RUN_ID_ENV = "FLIGHTLINE_RUN_ID"
DEFAULT_PATH = Path(".flightline/runs.sqlite")
LATEST = "latest"
BUSY_TIMEOUT_S = 5.0
SCHEMA_VERSION = 1
MOST_INCIDENTS = 60
HOSTS_A_QUERY = 50
"""Records read at once: a query a host takes as long as unpacking it, one for all would hold a fleet in memory."""

TOGETHER = "(fabric)"
"""The name of the record of what a run's nodes showed together; no host of an inventory has it."""

Record = dict[str, Any]
"""One node's row, as flightline_node.node.record() makes it."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, finished_at TEXT NOT NULL DEFAULT '', level TEXT NOT NULL,
    inventory TEXT NOT NULL, hosts TEXT NOT NULL, verdict TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS nodes (
    run_id TEXT NOT NULL, host TEXT NOT NULL, instance_id TEXT NOT NULL, status TEXT NOT NULL, verdict TEXT NOT NULL,
    record BLOB NOT NULL, PRIMARY KEY (run_id, host));
CREATE TABLE IF NOT EXISTS names (
    name TEXT NOT NULL, run_id TEXT NOT NULL, host TEXT NOT NULL, PRIMARY KEY (name, run_id, host)) WITHOUT ROWID;
"""


_LATE = """
CREATE TABLE IF NOT EXISTS late (
    run_id TEXT NOT NULL, host TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (run_id, host)) WITHOUT ROWID;
"""
"""Made with the first late record: most stores never have one."""

_TABLES = {"late", "runs", "nodes", "names", "incidents", "incident_keys", "healing_lease", "healing_stops"}


class StoreError(RuntimeError):
    """The store cannot be read or written; the text says which file, why and what to do."""


@dataclass(frozen=True)
class ExpectedHost:
    """A host that the run has to answer for, from the inventory.

    place: its rack or zone, where known; address: by which other nodes reach it, "" for its name.
    """

    host: str
    instance_type: str = ""
    instance_id: str = ""
    place: str = ""
    address: str = ""


@dataclass(frozen=True)
class Run:
    """One run. hosts: every expected host in inventory order. Stamps: ISO 8601, UTC."""

    run_id: str
    started_at: str
    level: str = "quick"
    inventory: str = ""
    hosts: tuple[ExpectedHost, ...] = field(default=(), repr=False)
    finished_at: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class Past:
    """One node's result in one run, for the history."""

    run_id: str
    started_at: str
    host: str
    instance_id: str
    verdict: str
    status: str
    record: Record = field(repr=False)


@dataclass(frozen=True)
class Look:
    """What one run came to about one node, without its record."""

    run_id: str
    level: str
    started_at: str
    host: str
    instance_id: str
    verdict: str
    status: str


class Store(Protocol):
    """What the control side asks of a run store. Every method raises StoreError when it cannot."""

    def start(self, run: Run) -> None:
        """Open a run; a run of that id that is there already is left as it is."""

    def save(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a node's record; False when this run already has one for the host (it stays)."""

    def finish(self, run_id: str, finished_at: str, verdict: str) -> None:
        """Close a run; the first closing stays."""

    def run(self, run_id: str) -> Run:
        """A run by id, or the one opened last for "latest"."""

    def runs(self, limit: int = 20) -> list[Run]:
        """The newest runs, newest first, without their hosts."""

    def records(self, run_id: str) -> Iterator[Record]:
        """Stream the records of a run's hosts, in inventory order."""

    def answered(self, run_id: str) -> set[str]:
        """Hosts that have a record in a run."""

    def save_late_record(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a record that came after its host had been given up; False when there is one already (it stays)."""

    def late(self, run_id: str) -> list[Record]:
        """The records of a run that came late, by host. The row that was judged in their place stays in `records`."""

    def history(self, name: str, limit: int = 50) -> list[Past]:
        """Results of a host, instance id, GPU serial or GPU UUID, newest first."""

    def close(self) -> None:
        """Give the resources back; closing twice is allowed."""


def status_of(finding: Mapping[str, Any]) -> Status:
    """A stored finding's status; one that a newer version invented is UNKNOWN: it cannot be vouched for."""
    return as_status(finding["status"])


def worst_of(record: Mapping[str, Any]) -> Status:
    """The worst status among a record's findings."""
    return worst(map(status_of, record.get("findings", [])))


def now_stamp() -> str:
    """The present moment as stores write it: ISO 8601, UTC, seconds."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def new_run_id() -> str:
    """A run id that sorts by time and is unique across control nodes."""
    return datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ-") + secrets.token_hex(3)


def is_aws(spec: object) -> bool:
    """Does it name the store in AWS (aws, aws:TABLE) and not a file?"""
    return str(spec).partition(":")[0] == "aws"


def default_path() -> Path:
    """Where the store's file is: FLIGHTLINE_STORE, else .flightline/runs.sqlite below the current directory.

    Results go to a file first, also when FLIGHTLINE_STORE names the store in AWS for reading.
    """
    named = os.environ.get(STORE_ENV) or ""
    return Path(DEFAULT_PATH if is_aws(named) or not named else named).expanduser().absolute()


def spill_file(path: Path, token: str) -> Path:
    """A store of the same kind beside a store's file, for what that refuses."""
    return path.with_name(f"{path.name}.aside.{token}")


def spill_files(path: Path) -> list[Path]:
    """Stores beside a store's file whose rows are not in it yet."""
    found = path.parent.glob(f"{path.name}.aside.*")
    return sorted(one for one in found if not one.name.endswith("-journal") and one.stat().st_size)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside, or none of it. Raises sqlite3's errors."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class SqliteStore:
    """A run store in one SQLite file, readable while a run writes to it.

    own: nobody else may read or write the file while it is open, and nothing is merged into it.
    """

    def __init__(
        self, path: Path, *, create: bool = True, busy_timeout_s: float = BUSY_TIMEOUT_S, own: bool = False
    ) -> None:
        self.path = path
        self.merged = 0
        self._closed = False
        if not create and not path.is_file() and not spill_files(path):
            raise StoreError(
                f"{path}: saw no run store here, wanted one; "
                f"do: run `flightline preflight`, or name another with --store"
            )
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"saw {error.strerror}: cannot make the run store's directory {path.parent}; wanted a place to write"
            ) from error
        with self._guard("open"):
            self._db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
            self._prepare(own)
        if not own:
            self._merge()

    def _prepare(self, own: bool) -> None:
        if own:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path}: saw a store of a newer Flightline (schema {version}), "
                f"wanted schema {SCHEMA_VERSION}; do: update"
            )
        found = (row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type='table'"))
        strange = {name for name in found if not name.startswith("sqlite_")} - _TABLES
        if strange:
            raise StoreError(
                f"{self.path}: saw the table {min(strange)}, so not a Flightline run store, wanted one; "
                "do: name another with --store"
            )
        # WAL: readers do not wait for the run. FULL: a row is on disk when save() returns, whatever is killed.
        if version < SCHEMA_VERSION:
            self._db.execute(f"PRAGMA journal_mode={'DELETE' if own else 'WAL'}")
            # At once: who opens the file in between finds it empty or whole.
            self._db.executescript(f"BEGIN EXCLUSIVE; {_SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT")
        self._db.execute("PRAGMA synchronous=FULL")

    @contextmanager
    def _guard(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path}: cannot {action} the run store; saw: {_explain(error, self.path)}; "
                f"wanted a readable, writable file"
            ) from error

    @contextmanager
    def _transaction(self, action: str) -> Iterator[sqlite3.Connection]:
        with self._guard(action), transaction(self._db):
            yield self._db

    def start(self, run: Run) -> None:
        """Open a run."""
        with self._transaction("write") as db:
            _insert_run(db, run)

    def save(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a record; False when the run already has one for the host."""
        with self._transaction("write") as db:
            return _insert_node(db, run_id, record)

    def finish(self, run_id: str, finished_at: str, verdict: str) -> None:
        """Close a run."""
        with self._transaction("write") as db:
            db.execute(_CLOSE, (finished_at, verdict, run_id))

    def run(self, run_id: str) -> Run:
        """A run by id or "latest"."""
        # By order of arrival: a clock that was set back must not hide the run that was just made.
        where = ("ORDER BY rowid DESC LIMIT 1", ()) if run_id == LATEST else ("WHERE run_id=?", (run_id,))
        with self._guard("read"):
            row = self._db.execute(f"SELECT {_RUN_COLUMNS}, hosts FROM runs {where[0]}", where[1]).fetchone()  # noqa: S608
        if row is None:
            known = ", ".join(run.run_id for run in self.runs(5)) or "none, run `flightline preflight` first"
            raise StoreError(f"{self.path}: saw no run {run_id!r}; wanted one of the store, newest runs: {known}")
        return _run(row[:-1], tuple(ExpectedHost(**host) for host in json.loads(row[-1])))

    def runs(self, limit: int = 20) -> list[Run]:
        """The newest runs, newest first."""
        query = f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY rowid DESC LIMIT ?"  # noqa: S608
        with self._guard("read"):
            return [_run(row, ()) for row in self._db.execute(query, (limit,))]

    def records(self, run_id: str) -> Iterator[Record]:
        """Stream the records of a run: its hosts', then what they showed together."""
        run = self.run(run_id)
        every = [*(host.host for host in run.hosts), TOGETHER]
        for at in range(0, len(every), HOSTS_A_QUERY):
            names = every[at : at + HOSTS_A_QUERY]
            query = f"SELECT host, record FROM nodes WHERE run_id=? AND host IN ({', '.join('?' * len(names))})"  # noqa: S608
            with self._guard("read"):
                packed = dict(self._db.execute(query, (run.run_id, *names)).fetchall())
            for name in names:
                record: Record | None = None
                # A damaged row is no result of its host, and costs no other host's.
                with suppress(zlib.error, ValueError):
                    record = _unpack(packed[name], name) if name in packed else None
                if record:
                    yield record

    def answered(self, run_id: str) -> set[str]:
        """Hosts that have a record in a run."""
        with self._guard("read"):
            return {row[0] for row in self._db.execute("SELECT host FROM nodes WHERE run_id=?", (run_id,))}

    def save_late_record(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a late record; False when the run already has one for the host."""
        row = (run_id, str(record["host"]), _pack(record))
        with self._guard("write"):
            self._db.execute(_LATE)
        with self._transaction("write") as db:
            return db.execute(_LATE_IN, row).rowcount == 1

    def late(self, run_id: str) -> list[Record]:
        """The late records of a run; a damaged one is none."""
        with self._guard("read"):
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'late'").fetchone():
                return []
            rows = self._db.execute("SELECT host, record FROM late WHERE run_id=? ORDER BY host", (run_id,)).fetchall()
        found = []
        for host, packed in rows:
            with suppress(zlib.error, ValueError):
                found.append(_unpack(packed, host))
        return found

    def history(self, name: str, limit: int = 50) -> list[Past]:
        """Results of a host, instance id, GPU serial or GPU UUID, newest first."""
        query = (
            "SELECT n.run_id, r.started_at, n.host, n.instance_id, n.verdict, n.status, n.record FROM names k "
            "JOIN nodes n USING (run_id, host) JOIN runs r USING (run_id) WHERE k.name=? "
            "ORDER BY r.rowid DESC, n.host LIMIT ?"
        )
        with self._guard("read"):
            rows = self._db.execute(query, (name, limit)).fetchall()
        return [Past(a, b, c, d, e, f, _unpack(packed, c)) for a, b, c, d, e, f, packed in rows]

    def looks(self, since: str) -> Iterator[Look]:
        """Every node's result in every run that began later, newest first."""
        query = (
            "SELECT r.run_id, r.level, r.started_at, n.host, n.instance_id, n.verdict, n.status FROM runs r "
            "JOIN nodes n USING (run_id) WHERE r.started_at >= ? ORDER BY r.started_at DESC, r.rowid DESC"
        )
        with self._guard("read"):
            yield from (Look(*row) for row in self._db.execute(query, (since,)))

    def record(self, run_id: str, host: str) -> Record | None:
        """One host's record in a run; None where it has none, or a damaged one."""
        with self._guard("read"):
            row = self._db.execute("SELECT record FROM nodes WHERE run_id=? AND host=?", (run_id, host)).fetchone()
        with suppress(zlib.error, ValueError):
            return _unpack(row[0], host) if row else None
        return None

    def incidents(self, limit: int = MOST_INCIDENTS) -> list[dict[str, Any]]:
        """What a remediator kept here (flightline/healing/journal/ledger.py), open ones first, then the newest."""
        with self._guard("read"):
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'incidents'").fetchone():
                return []
            query = "SELECT body FROM incidents ORDER BY open DESC, opened_at DESC LIMIT ?"
            rows = self._db.execute(query, (limit,)).fetchall()
        found = []
        for row in rows:
            # A damaged one costs no other.
            with suppress(zlib.error, ValueError):
                found.append(decode(zlib.decompress(row[0])))
        return found

    def close(self) -> None:
        """Close the file."""
        if not self._closed:
            self._closed = True
            self._db.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def every(self, run_id: str) -> Iterator[Record]:
        """The records of a run, also of hosts that it did not expect."""
        with self._guard("read"):
            rows = self._db.execute("SELECT host, record FROM nodes WHERE run_id=?", (run_id,)).fetchall()
        return (_unpack(packed, host) for host, packed in rows)

    def _merge(self) -> None:
        """Bring in what was kept aside; a file goes only when every row of it is in.

        Merging twice is harmless (rows are written once), so a merge that was killed, or that another process does at
        the same time, loses and doubles nothing. What cannot be merged now, also because its run still writes to it,
        stays for the next opening.
        """
        for other in spill_files(self.path):
            with suppress(StoreError, OSError, sqlite3.Error):
                self._take(other)
                other.unlink(missing_ok=True)

    def _take(self, other: Path) -> None:
        source = sqlite3.connect(f"{other.absolute().as_uri()}?mode=rw", timeout=0, uri=True)
        try:
            source.execute("BEGIN")
            with self._transaction("write") as db:
                db.executemany(_RUN_IN, source.execute(f"SELECT {_RUN_COLUMNS}, hosts FROM runs ORDER BY rowid"))  # noqa: S608
                closed = source.execute("SELECT finished_at, verdict, run_id FROM runs WHERE finished_at <> ''")
                db.executemany(_CLOSE, closed)
                for row in source.execute("SELECT * FROM nodes"):
                    if db.execute(_NODE_IN, row).rowcount == 1:
                        self.merged += 1
                        names = source.execute("SELECT * FROM names WHERE run_id=? AND host=?", row[:2])
                        db.executemany(_NAME_IN, names)
                self._take_late_records(source, db)
        finally:
            source.close()

    def _take_late_records(self, source: sqlite3.Connection, db: sqlite3.Connection) -> None:
        if source.execute("SELECT 1 FROM sqlite_master WHERE name = 'late'").fetchone():
            db.execute(_LATE)
            db.executemany(_LATE_IN, source.execute("SELECT * FROM late"))


_RUN_COLUMNS = "run_id, started_at, level, inventory, finished_at, verdict"
_RUN_IN = f"INSERT OR IGNORE INTO runs ({_RUN_COLUMNS}, hosts) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_NODE_IN = "INSERT OR IGNORE INTO nodes VALUES (?, ?, ?, ?, ?, ?)"
_NAME_IN = "INSERT OR IGNORE INTO names VALUES (?, ?, ?)"
_LATE_IN = "INSERT OR IGNORE INTO late VALUES (?, ?, ?)"
_CLOSE = "UPDATE runs SET finished_at=?, verdict=? WHERE run_id=? AND finished_at=''"


def _run(row: Sequence[str], hosts: tuple[ExpectedHost, ...]) -> Run:
    return Run(row[0], row[1], row[2], row[3], hosts, row[4], row[5])


def _insert_run(db: sqlite3.Connection, run: Run) -> None:
    hosts = json.dumps([vars(host) for host in run.hosts], separators=(",", ":"))
    db.execute(_RUN_IN, (run.run_id, run.started_at, run.level, run.inventory, run.finished_at, run.verdict, hosts))


def _insert_node(db: sqlite3.Connection, run_id: str, record: Mapping[str, Any]) -> bool:
    host, instance_id = str(record["host"]), str(record.get("instance_id") or "")
    row = (run_id, host, instance_id, str(worst_of(record)), str(record.get("verdict", "")), _pack(record))
    written = db.execute(_NODE_IN, row).rowcount == 1
    if written:
        gpus = record.get("gpus") or []
        names = {host, instance_id, *(str(gpu.get(key) or "") for gpu in gpus for key in ("serial", "uuid"))} - {""}
        db.executemany(_NAME_IN, [(name, run_id, host) for name in names])
    return written


def _pack(record: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(record, separators=(",", ":"), default=str).encode(), 1)


def _unpack(packed: bytes, host: str) -> Record:
    return stored(decode(zlib.decompress(packed)), host)


def _explain(error: sqlite3.Error, path: Path) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return f"{text}: another process holds it (fuser {path} names it); end it or name another store with --store"
    if "full" in text or "disk I/O" in text:
        return f"{text}: free space on the file system of {path.parent}, or name another store with --store"
    if "not a database" in text or "malformed" in text:
        return f"{text}: move the file away and run again, or name another store with --store"
    if "no such column" in text or "has no column" in text:
        return f"{text}, so no Flightline run store: move the file away and run again, or name another with --store"
    if "readonly" in text or "unable to open" in text:
        return f"{text}: check the permissions of {path} and its directory, or name another store with --store"
    return text
