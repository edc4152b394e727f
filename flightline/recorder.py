"""Keep a run's rows whatever happens to the store: database, else spool file, else memory.

The verdict needs every row, so a row the database refused also stays in memory until the run is judged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flightline_node.bounds import SAID_CHARS
from flightline_node.model import RECORD_SCHEMA, Remedy, Status

from . import intake
from . import store as stores
from .shape import printable

RETRY_EVERY_S = 5.0
RETRY_BUSY_S = 0.2
"""A store that refused a row is asked again only now and then, and briefly: hosts must not queue behind a lock."""

REACHABLE = "reachable"
NODE = "node"
ABSENT = "absent"
ANSIBLE_PREFIX = "Task failed: "


def unreachable_record(host: stores.Host, message: str) -> stores.Record:
    """The row of a host that Ansible could not connect to; message is the connection's own text."""
    return _one_finding(host, REACHABLE, Status.UNREACHABLE, f"no connection: {_said(message)}")


def broken_record(host: stores.Host, message: str) -> stores.Record:
    """The row of a host where the module did not end well: nothing was measured, so UNKNOWN."""
    return _one_finding(host, NODE, Status.UNKNOWN, f"{intake.CANNOT}{_said(message)}")


def absent_record(host: stores.Host, message: str) -> stores.Record:
    """The row of a node that its stack has and the inventory lacks."""
    return _one_finding(host, ABSENT, Status.FAIL, _one_line(message), "not listed", "in the inventory")


def lost_record(host: stores.Host) -> stores.Record:
    """The row of an expected host that never answered."""
    message = "no result: the run ended before this host answered; judge it again"
    return _one_finding(host, REACHABLE, Status.UNKNOWN, message)


def _one_finding(
    host: stores.Host,
    check: str,
    status: Status,
    message: str,
    measured: str | None = None,
    expected: str | None = None,
) -> stores.Record:
    finding: dict[str, Any] = {
        "check": check,
        "status": str(status),
        "device": {},
        "measured": measured,
        "expected": expected,
        "unit": "",
        "message": message,
        "remedy": str(Remedy.INVESTIGATE),
        "evidence": [],
    }
    made = {
        "schema": RECORD_SCHEMA,
        "host": host.host,
        "instance_id": host.instance_id,
        "instance_type": host.instance_type,
        "started_at": stores.now_stamp(),
        "seconds": 0.0,
        "findings": [finding],
    }
    return intake.stamped(made)


def _said(message: str) -> str:
    said = _one_line(message)
    return said[len(ANSIBLE_PREFIX) :] if said.startswith(ANSIBLE_PREFIX) else said


def _one_line(text: str) -> str:
    return " ".join(printable(str(text)).split())[:SAID_CHARS] or "no reason given"


@dataclass
class Recorder:
    """One run's way into the store.

    kept: records the database refused, by host. trouble: why, in one sentence, or "".
    """

    path: Path
    run: stores.Run
    kept: dict[str, stores.Record] = field(default_factory=dict)
    trouble: str = ""
    _db: stores.SqliteStore | None = None
    _not_before: float = 0.0

    def open(self) -> None:
        """Register the run and its hosts. Never raises: a refused run is spooled with its rows."""
        self._database(stores.BUSY_TIMEOUT_S)

    def add(self, record: Mapping[str, Any]) -> None:
        """Keep one row, in the safest place that takes it. Never raises."""
        db = self._database(RETRY_BUSY_S)
        if db:
            try:
                db.save(self.run.run_id, record)
                return
            except stores.StoreError as error:
                self._refused(error)
        host = str(record["host"])
        if host in self.kept:
            return
        self.kept[host] = dict(record)
        try:
            stores.spool(self.path, self.run, record)
        except OSError as error:
            where = stores.spool_path(self.path)
            if str(where) not in self.trouble:
                self.trouble += f"; {where}: {error.strerror}: results are only in memory and in this report"

    def close(self) -> None:
        """Give the file back, so that its spool can be merged by whoever opens it next."""
        if self._db:
            self._db.close()
            self._db = None

    def _database(self, busy_timeout_s: float) -> stores.SqliteStore | None:
        if self._db is None and time.monotonic() >= self._not_before:
            try:
                self._db = stores.SqliteStore(self.path, busy_timeout_s=busy_timeout_s)
                self._db.start(self.run)
            except stores.StoreError as error:
                self._refused(error)
        return self._db

    def _refused(self, error: stores.StoreError) -> None:
        self.trouble = self.trouble or str(error)
        self._not_before = time.monotonic() + RETRY_EVERY_S
        self.close()


class MemoryStore:
    """One run in memory: what is judged when no file takes it. See store.Store for the methods."""

    def __init__(self, run: stores.Run, records: Mapping[str, stores.Record]) -> None:
        self._run, self._records = run, dict(records)

    def start(self, run: stores.Run) -> None:
        """Take over a run."""
        self._run = run

    def save(self, run_id: str, record: Mapping[str, Any]) -> bool:
        """Keep a record once."""
        return self._records.setdefault(str(record["host"]), dict(record)) is record

    def finish(self, run_id: str, finished_at: str, verdict: str) -> None:
        """Close the run."""
        run = self._run
        self._run = stores.Run(run.run_id, run.started_at, run.level, run.inventory, run.hosts, finished_at, verdict)

    def run(self, run_id: str) -> stores.Run:
        """The run, whatever its id."""
        return self._run

    def runs(self, limit: int = 20) -> list[stores.Run]:
        """The one run."""
        return [self._run]

    def records(self, run_id: str) -> Iterator[stores.Record]:
        """Its records."""
        yield from self._records.values()

    def answered(self, run_id: str) -> set[str]:
        """Hosts with a record."""
        return set(self._records)

    def history(self, name: str, limit: int = 50) -> list[stores.Past]:
        """Nothing: memory has no past."""
        return []

    def close(self) -> None:
        """Nothing to give back."""
