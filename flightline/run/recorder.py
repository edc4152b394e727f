"""Keep a run's rows whatever happens to the store: a row that it refuses is kept aside until the run is judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..store import sqlite as stores
from ..store.aside import Aside

RETRY_EVERY_S = 5.0
RETRY_BUSY_S = 0.2
"""A store that refused a row is asked again only now and then, and briefly: hosts must not queue behind a lock."""


class Recorder:
    """One run's way into the store. aside: rows that the store refused. trouble: why, in one sentence, or "".

    told: who is told of each row once it is kept.
    """

    def __init__(
        self, path: Path, run: stores.Run, told: Callable[[Mapping[str, Any]], None] = lambda record: None
    ) -> None:
        self.path, self.run, self.told = path, run, told
        self.aside = Aside(path, run)
        self.trouble = ""
        self._db: stores.SqliteStore | None = None
        self._not_before = 0.0

    def open(self) -> None:
        """Register the run and its hosts. Never raises: what is refused is kept aside with the rows."""
        self._database(stores.BUSY_TIMEOUT_S)

    def add(self, record: Mapping[str, Any]) -> None:
        """Keep one row, in the safest place that takes it. Never raises."""
        if not self._saved(record):
            why = self.aside.add(record)
            if why and why not in self.trouble:
                self.trouble += f"; {why}"
        self.told(record)

    def _saved(self, record: Mapping[str, Any]) -> bool:
        db = self._database(RETRY_BUSY_S)
        try:
            if db:
                db.save(self.run.run_id, record)
        except stores.StoreError as error:
            self._refused(error)
            return False
        return db is not None

    def add_late(self, record: Mapping[str, Any]) -> None:
        """Keep what came after its host's row was written. Never raises."""
        try:
            with stores.SqliteStore(self.path) as db:
                db.save_late(self.run.run_id, record)
        except stores.StoreError as error:
            self.trouble = self.trouble or f"{error}; the late answer of {record['host']} is lost"

    def close(self) -> None:
        """Give the files back, so that what was kept aside can be merged by whoever opens the store next."""
        self.aside.close()
        self._close_database()

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
        self._close_database()

    def _close_database(self) -> None:
        if self._db:
            self._db.close()
            self._db = None
