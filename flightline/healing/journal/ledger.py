"""Incidents, breakers and the lease in the run store's SQLite file: on disk before a method returns.

Every write is conditional: on the version that was read, so that two writers never overwrite each other, and on the
lease's token, so that a remediator that lost its lease writes nothing more.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ...store.sqlite import BUSY_TIMEOUT_S, STORE_ENV, SqliteStore, StoreError, default_path, is_aws, transaction
from .incident import Incident, from_dict
from .lease import SKEW_S, Lease, LeaseHolder, LeaseLostError, Leases

_SCHEMA = """
CREATE TABLE IF NOT EXISTS incidents (
    id TEXT PRIMARY KEY, host TEXT NOT NULL, instance_id TEXT NOT NULL, opened_at TEXT NOT NULL, open INTEGER NOT NULL,
    version INTEGER NOT NULL, token INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS one_open_incident ON incidents (host) WHERE open = 1;
CREATE TABLE IF NOT EXISTS incident_keys (key TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (key, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS healing_lease (
    one INTEGER PRIMARY KEY CHECK (one = 1), owner TEXT NOT NULL, token INTEGER NOT NULL, expires_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS healing_stops (group_name TEXT PRIMARY KEY, why TEXT NOT NULL, at TEXT NOT NULL);
"""


class ConflictError(RuntimeError):
    """Somebody else changed it since it was read: read again."""


class Ledger(Leases, Protocol):
    """Where incidents are kept. Every method raises StoreError when the store cannot be used."""

    def save(self, incident: Incident, lease: Lease | None) -> Incident:
        """Keep an incident; returns it with its new version. lease: None for what a person decides.

        Raises ConflictError when it was changed since it was read, LeaseLostError when another has the lease.
        """

    def incidents(
        self, *, only_open: bool = False, name: str = "", since: str = "", limit: int = 10_000
    ) -> list[Incident]:
        """Newest first. name: a host, instance id or GPU serial. since: closed ones that were opened later."""

    def stops(self) -> Mapping[str, str]:
        """Groups whose breaker fell, and why."""

    def stop(self, group: str, why: str, at: str, lease: Lease | None) -> None:
        """Keep that a breaker fell; without a lease, that a person paused."""

    def reset(self, group: str) -> bool:
        """Forget a breaker; False when none fell there."""

    def close(self) -> None:
        """Give the resources back."""


class SqliteLedger:
    """See Ledger."""

    def __init__(self, path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        # The run store makes the file, and refuses one that is none.
        SqliteStore(path, busy_timeout_s=busy_timeout_s).close()
        self.path = path
        self._lock = threading.Lock()
        with self._guard("open"):
            self._db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_SCHEMA)

    def __enter__(self) -> SqliteLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _guard(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path}: cannot {action} the incidents; saw {error}, wanted a writable file; "
                "do: free the file or its disk, or name another with --store"
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        # The lease is renewed by a thread of its own on the same connection.
        with self._lock, self._guard("write"), transaction(self._db):
            yield self._db

    def save(self, incident: Incident, lease: Lease | None) -> Incident:
        """Keep an incident."""
        kept = replace(incident, version=incident.version + 1)
        body = zlib.compress(json.dumps(kept.to_dict(), separators=(",", ":")).encode(), 1)
        with self._writing() as db:
            token = _fence(db, lease)
            row = db.execute("SELECT version FROM incidents WHERE id = ?", (kept.id,)).fetchone()
            if (row[0] if row else 0) != incident.version:
                raise ConflictError(f"incident {kept.id} was changed by somebody else")
            values = (kept.id, kept.host, kept.instance_id, kept.opened_at, kept.is_open, kept.version, token, body)
            _write(db, kept, values, bool(row))
            keys = {*kept.keys, *kept.serials, kept.host, kept.instance_id} - {""}
            db.executemany("INSERT OR IGNORE INTO incident_keys VALUES (?, ?)", [(key, kept.id) for key in keys])
        return kept

    def incidents(
        self, *, only_open: bool = False, name: str = "", since: str = "", limit: int = 10_000
    ) -> list[Incident]:
        """Incidents, newest first."""
        where, values = ["1"], list[object]()
        if only_open:
            where.append("open = 1")
        if name:
            where.append("id IN (SELECT id FROM incident_keys WHERE key = ? UNION SELECT ?)")
            values += [name, name]
        if since:
            where.append("(open = 1 OR opened_at >= ?)")
            values.append(since)
        query = f"SELECT body FROM incidents WHERE {' AND '.join(where)} ORDER BY opened_at DESC, id LIMIT ?"  # noqa: S608
        with self._lock, self._guard("read"):
            rows = self._db.execute(query, (*values, limit)).fetchall()
        return [from_dict(json.loads(zlib.decompress(row[0]))) for row in rows]

    def stops(self) -> Mapping[str, str]:
        """Groups whose breaker fell."""
        with self._lock, self._guard("read"):
            return dict(self._db.execute("SELECT group_name, why FROM healing_stops").fetchall())

    def stop(self, group: str, why: str, at: str, lease: Lease | None) -> None:
        """Keep that a breaker fell; without a lease, that a person paused."""
        with self._writing() as db:
            _fence(db, lease)
            db.execute("INSERT OR IGNORE INTO healing_stops VALUES (?, ?, ?)", (group, why, at))

    def reset(self, group: str) -> bool:
        """Forget a breaker."""
        with self._writing() as db:
            return db.execute("DELETE FROM healing_stops WHERE group_name = ?", (group,)).rowcount == 1

    def acquire(self, owner: str, now_s: float, ttl_s: float) -> Lease | None:
        """Take the lease."""
        with self._writing() as db:
            row = db.execute("SELECT owner, token, expires_at FROM healing_lease").fetchone()
            if row and row[0] and row[2] + SKEW_S > now_s:
                return None
            token = (row[1] if row else 0) + 1
            db.execute("INSERT OR REPLACE INTO healing_lease VALUES (1, ?, ?, ?)", (owner, token, now_s + ttl_s))
            return Lease(owner, token)

    def renew(self, lease: Lease, now_s: float, ttl_s: float) -> None:
        """Keep the lease."""
        with self._writing() as db:
            _fence(db, lease)
            db.execute("UPDATE healing_lease SET expires_at = ?", (now_s + ttl_s,))

    def give_up(self, lease: Lease) -> None:
        """Let the next one have it."""
        with self._writing() as db:
            db.execute("UPDATE healing_lease SET owner = '', expires_at = 0 WHERE token = ?", (lease.token,))

    def holder(self) -> LeaseHolder | None:
        """Who has the lease."""
        with self._lock, self._guard("read"):
            row = self._db.execute("SELECT owner, token, expires_at FROM healing_lease WHERE owner <> ''").fetchone()
        return LeaseHolder(*row) if row else None


def _write(db: sqlite3.Connection, kept: Incident, values: tuple[object, ...], there: bool) -> None:
    if there:
        query = "UPDATE incidents SET open = ?, version = ?, token = ?, body = ? WHERE id = ?"
        db.execute(query, (*values[4:], kept.id))
        return
    try:
        db.execute("INSERT INTO incidents VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    except sqlite3.IntegrityError as error:
        raise ConflictError(f"{kept.host} has an open incident already") from error


def _fence(db: sqlite3.Connection, lease: Lease | None) -> int:
    """The token that a write goes under. Raises LeaseLostError for an old one."""
    if lease is None:
        return 0
    row = db.execute("SELECT owner, token FROM healing_lease").fetchone()
    if row is None or row[1] != lease.token or row[0] != lease.owner:
        raise LeaseLostError(f"{row[0] or 'nobody' if row else 'nobody'} has the lease now, not {lease.owner}")
    return lease.token


def open_ledger(spec: str | None) -> Ledger:
    """The incidents of the store that the user named: a file, or `aws` / `aws:TABLE`. Raises StoreError."""
    wanted = str(spec or os.environ.get(STORE_ENV) or "")
    if is_aws(wanted):
        from .dynamo import open_table

        return open_table(wanted)
    path = Path(wanted).expanduser().absolute() if wanted else default_path()
    if not path.is_file():
        raise StoreError(
            f"{path}: saw no run store here, wanted one; do: run `flightline preflight`, or name another with --store"
        )
    return SqliteLedger(path)
