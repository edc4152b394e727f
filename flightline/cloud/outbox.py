"""What is still to be published: a queue in a SQLite file beside the run store.

A job is a run and where it goes. Its stages are marked as they are done, so that a publisher that was killed
goes on where it was; what a stage does twice changes nothing. The results themselves stay in the run store.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..store.sqlite import StoreError

NAME = "publish.sqlite"
LOCK_WAIT_S = 30.0

WAITING, STORED, PLANNED, TOLD, DONE = "waiting", "stored", "planned", "told", "done"
_OF_0_1 = {"sns": ["sns"], "slack": ["sns", "slack"]}
"""Stages of jobs that an earlier version queued: the channels that had been told."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, target TEXT NOT NULL, settings TEXT NOT NULL,
    stage TEXT NOT NULL DEFAULT 'waiting', plan TEXT NOT NULL DEFAULT '', trouble TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS open_jobs ON jobs (seq) WHERE stage <> 'done';
CREATE TABLE IF NOT EXISTS gpus (
    target TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (target, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS told (
    scope TEXT NOT NULL, key TEXT NOT NULL, item TEXT NOT NULL, PRIMARY KEY (scope, key)) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class PublishJob:
    """One run for one target. plan: the message, the channels it was sent to (sent) and what people then know."""

    seq: int
    run_id: str
    target: str
    settings: dict[str, Any]
    stage: str
    plan: dict[str, Any]
    trouble: str


def path_for(store: Path) -> Path:
    """The queue that belongs to a run store's file."""
    return store.with_name(f"{store.name}.{NAME}")


class Outbox:
    """The queue. Every method raises StoreError when the file cannot be used."""

    def __init__(self, store: Path) -> None:
        self.path = path_for(store)
        with self._guard("open"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=10.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_SCHEMA)

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def _guard(self, action: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{self.path}: cannot {action} the queue of what is to be published; saw {error}, "
                f"wanted a writable file"
            ) from error

    @contextmanager
    def lock(self, wait_s: float = LOCK_WAIT_S) -> Iterator[bool]:
        """One publisher at a time, or order would be lost; False when another is at work."""
        with self._guard("lock"):
            handle = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield _locked(handle, time.monotonic() + wait_s)
        finally:
            os.close(handle)

    def add(self, run_id: str, target: str, settings: dict[str, Any]) -> None:
        """Queue a run; the same run for the same target that is still open is not queued again."""
        with self._guard("write"):
            self._db.execute(
                "INSERT INTO jobs (run_id, target, settings) SELECT ?, ?, ? WHERE NOT EXISTS "
                "(SELECT 1 FROM jobs WHERE run_id = ? AND target = ? AND stage <> 'done')",
                (run_id, target, json.dumps(settings), run_id, target),
            )

    def open_jobs(self) -> list[PublishJob]:
        """What is not done, in order."""
        query = (
            "SELECT seq, run_id, target, settings, stage, plan, trouble FROM jobs WHERE stage <> 'done' ORDER BY seq"
        )
        with self._guard("read"):
            rows = self._db.execute(query).fetchall()
        return [
            PublishJob(seq, run_id, target, json.loads(settings), *_today(stage, json.loads(plan or "{}")), trouble)
            for seq, run_id, target, settings, stage, plan, trouble in rows
        ]

    def advance(self, job: PublishJob, stage: str, plan: dict[str, Any] | None = None) -> PublishJob:
        """Mark a stage as done, on disk before it returns."""
        kept = job.plan if plan is None else plan
        with self._guard("write"):
            self._db.execute(
                "UPDATE jobs SET stage = ?, plan = ?, trouble = '' WHERE seq = ?",
                (stage, "" if stage == DONE else json.dumps(kept), job.seq),
            )
        return PublishJob(job.seq, job.run_id, job.target, job.settings, stage, kept, "")

    def failed(self, job: PublishJob, trouble: str) -> None:
        """Remember why a job waits."""
        with self._guard("write"):
            self._db.execute("UPDATE jobs SET trouble = ? WHERE seq = ?", (trouble, job.seq))

    def gpus(self, target: str) -> set[str]:
        """GPU items that the target has."""
        with self._guard("read"):
            return {row[0] for row in self._db.execute("SELECT name FROM gpus WHERE target = ?", (target,))}

    def add_gpus(self, target: str, names: Collection[str]) -> None:
        """Remember GPU items that the target has taken."""
        with self._guard("write"):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR IGNORE INTO gpus VALUES (?, ?)", [(target, name) for name in names])
            self._db.execute("COMMIT")

    def alerts(self, scope: str) -> dict[str, dict[str, Any]]:
        """What people have been told, where no table keeps it."""
        with self._guard("read"):
            rows = self._db.execute("SELECT key, item FROM told WHERE scope = ?", (scope,)).fetchall()
        return {key: json.loads(item) for key, item in rows}

    def remember(self, scope: str, put: dict[str, Any], drop: Collection[str]) -> None:
        """Change what people have been told, where no table keeps it."""
        with self._guard("write"):
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(scope, key, json.dumps(item)) for key, item in put.items()]
            self._db.executemany("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", rows)
            self._db.executemany("DELETE FROM told WHERE scope = ? AND key = ?", [(scope, key) for key in drop])
            self._db.execute("COMMIT")


def _today(stage: str, plan: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return (PLANNED, {**plan, "sent": _OF_0_1[stage]}) if stage in _OF_0_1 else (stage, plan)


def _locked(handle: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.1)
        else:
            return True
