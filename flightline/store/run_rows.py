"""Where the rows of one run are: in its store, beside it, in a folder of the run's own, or in memory.

A row is put into the first of them that takes it, and the first row of a host stays. Whoever reads a run that is not
concluded yet asks here. What lies beside the store is merged by its next opening, after a kill as well.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .sqlite import BUSY_TIMEOUT_S, Record, Run, SqliteStore, StoreError, spill_file, spill_files

FOLDER_ENV = "FLIGHTLINE_ASIDE"
"""A folder for what can be kept neither in the store nor beside it; a temporary one where none is named."""
MEMORY = Path(":memory:")
RETRY_EVERY_S = 5.0
RETRY_BUSY_S = 0.2
"""A store that refused a row is asked again only now and then, and briefly: hosts must not queue behind a lock."""
KNOWN_TROUBLE_BUSY_S = 1.0
"""A store that refused rows a moment ago: the verdict does not wait for it again, its rows are merged later."""


class _SettledStore(SqliteStore):
    """A store to read one run from. unstored: rows of it that the file refused, by host."""

    unstored: Mapping[str, Record] = {}

    def records(self, run_id: str) -> Iterator[Record]:
        """The run's own, then those that were refused."""
        yield from super().records(run_id)
        if self.unstored:
            stored = self.answered(run_id)
            yield from (record for host, record in self.unstored.items() if host not in stored)


class RunRows:
    """One run's rows, to write and to read. trouble: why the store refused some, in one sentence, or "".

    store: once they are settled, where the run can be looked up again; None when no file has all of it.
    """

    def __init__(self, path: Path, run: Run, folder: Path | None = None) -> None:
        self.path, self.run, self.trouble = path, run, ""
        self.store: Path | None = None
        self._folder = folder
        self._awaited = dict.fromkeys(host.host for host in run.hosts)
        self._db: SqliteStore | None = None
        self._not_before = 0.0
        self._spill: SqliteStore | None = None
        self._memory: SqliteStore | None = None
        self._places: list[Callable[[], Path]] = [self._beside, self._elsewhere, lambda: MEMORY]
        self._reader: _SettledStore | None = None

    @classmethod
    def find(cls, path: Path, run_id: str, folder: Path, create: bool) -> RunRows | None:
        """The rows that another process put down; None where no place has the run. create: as it opened the store."""
        trouble = ""
        try:
            # What it could not make is named as that, and not as a store that is not there.
            with SqliteStore(path, create=create) as store:
                return cls(path, store.run(run_id), folder)
        except StoreError as error:
            trouble = str(error)
        for other in (*spill_files(path), *spill_files(folder / path.name)):
            with suppress(StoreError), SqliteStore(other, own=True, busy_timeout_s=0) as store:
                found = cls(path, store.run(run_id), folder)
                found.trouble = trouble
                return found
        return None

    def open(self) -> None:
        """Register the run and its hosts. Never raises: what is refused is put with the rows."""
        self._database(BUSY_TIMEOUT_S)

    def put(self, record: Mapping[str, Any]) -> None:
        """Keep one row, in the safest place that takes it. Never raises."""
        self._put(lambda store: store.save(self.run.run_id, record))
        self._awaited.pop(str(record["host"]), None)

    def put_late_record(self, record: Mapping[str, Any]) -> None:
        """Keep what came after its host's row was put. Never raises."""
        self._put(lambda store: store.save_late_record(self.run.run_id, record))

    def awaits(self, host: str) -> bool:
        """Is the host expected, and nothing of it put here?"""
        return host in self._awaited

    def missing(self) -> list[str]:
        """Expected hosts of which nothing was put here, in inventory order."""
        return list(self._awaited)

    def settle(self) -> list[str]:
        """Bring the rows together, in the store as far as it takes them; what is to be said of that, in sentences."""
        self.close()
        left = self._spilled()
        troubles = self._open_reader(left, KNOWN_TROUBLE_BUSY_S if self.trouble else BUSY_TIMEOUT_S)
        if self.trouble:
            where = self._where() if left else ""
            refused = f"{self.trouble} ({len(left)} results were kept aside, are counted here{where})"
            troubles = [refused, *(text for text in troubles if text not in self.trouble)]
        self.store = self.path if self._bring_in(left, troubles) else None
        return troubles

    def read(self) -> _SettledStore:
        """A store with every row that was put until they were settled last; it ends with `close`."""
        if self._reader is None:
            self.settle()
        assert self._reader
        return self._reader

    def close(self) -> None:
        """Give the files back, so that whoever opens the store next can merge them; what is in memory stays."""
        for store in (self._db, self._spill, self._reader):
            if store and store is not self._memory:
                store.close()
        self._db = self._reader = None
        self._spill = self._memory

    def _put(self, keep: Callable[[SqliteStore], object]) -> None:
        db = self._database(RETRY_BUSY_S)
        try:
            if db:
                keep(db)
                return
        except StoreError as error:
            self._refused(error)
        why = self._keep_elsewhere(keep)
        if why and why not in self.trouble:
            self.trouble += f"; {why}"

    def _database(self, busy_timeout_s: float) -> SqliteStore | None:
        if self._db is None and time.monotonic() >= self._not_before:
            try:
                self._db = SqliteStore(self.path, busy_timeout_s=busy_timeout_s)
                self._db.start(self.run)
            except StoreError as error:
                self._refused(error)
        return self._db

    def _refused(self, error: StoreError) -> None:
        self.trouble = self.trouble or str(error)
        self._not_before = time.monotonic() + RETRY_EVERY_S
        if self._db:
            self._db.close()
            self._db = None

    def _keep_elsewhere(self, keep: Callable[[SqliteStore], object]) -> str:
        """In the first place that takes it; why another did not, or ""."""
        why = ""
        while True:
            try:
                keep(self._spill_store())
                return why
            except (StoreError, OSError) as error:
                why = why or str(error)
                self._next_place()

    def _spill_store(self) -> SqliteStore:
        if self._spill is None:
            path = self._places[0]()
            self._spill = SqliteStore(path, own=True)
            self._spill.start(self.run)
            if path == MEMORY:
                self._memory = self._spill
        return self._spill

    def _next_place(self) -> None:
        if self._spill and self._spill is not self._memory:
            self._spill.close()
        self._spill = None
        if len(self._places) == 1:
            raise MemoryError("no memory for a row")
        del self._places[0]

    def _beside(self) -> Path:
        self.path.parent.mkdir(exist_ok=True)
        return spill_file(self.path, secrets.token_hex(4))

    def _elsewhere(self) -> Path:
        if self._folder is None:
            self._folder = Path(os.environ.get(FOLDER_ENV) or tempfile.mkdtemp(prefix="flightline-aside-"))
        return spill_file(self._folder / self.path.name, secrets.token_hex(4))

    def _elsewhere_files(self) -> list[Path]:
        return spill_files(self._folder / self.path.name) if self._folder else []

    def _spilled(self) -> dict[str, Record]:
        """Every row that is not in the store and still there, each host's first."""
        found: dict[str, Record] = {}
        for path in (*spill_files(self.path), *self._elsewhere_files()):
            with suppress(StoreError), SqliteStore(path, own=True, busy_timeout_s=0) as store:
                for record in store.every(self.run.run_id):
                    found.setdefault(record["host"], record)
        for record in self._memory.every(self.run.run_id) if self._memory else ():
            found.setdefault(record["host"], record)
        return found

    def _open_reader(self, left: Mapping[str, Record], wait_s: float) -> list[str]:
        """The store with all that lay beside it; in memory where it cannot be opened, and why."""
        try:
            self._reader = _SettledStore(self.path, busy_timeout_s=wait_s)
            self._reader.start(self.run)
            return []
        except StoreError as error:
            self._reader = _SettledStore(MEMORY, own=True)
            self._reader.start(self.run)
            for record in left.values():
                self._reader.save(self.run.run_id, record)
            return [str(error)]

    def _bring_in(self, left: Mapping[str, Record], troubles: list[str]) -> bool:
        """Try once more to store the rows that it refused; is all of the run in it, or where its opening merges it?"""
        reader = self.read()
        if reader.path == MEMORY:
            return self._is_beside
        stored = reader.answered(self.run.run_id)
        missing = {host: record for host, record in left.items() if host not in stored}
        try:
            for record in missing.values():
                reader.save(self.run.run_id, record)
        except StoreError as error:
            troubles.append(f"{error} ({len(missing)} results could not be stored; they are counted here)")
            reader.unstored = missing
            return self._is_beside
        return True

    @property
    def _is_beside(self) -> bool:
        """Is everything that the store refused beside it, from where it is merged?"""
        return bool(spill_files(self.path)) and not self._elsewhere_files() and self._memory is None

    def _where(self) -> str:
        """The end of a sentence that says where to look for the rows later; "" where nobody can."""
        if self._is_beside:
            return ", and are beside the store until it is next opened"
        left = [str(path) for path in self._elsewhere_files()] if not os.environ.get(FOLDER_ENV) else []
        return f", and are in {', '.join(left)} (--store takes it)" if left else ""
