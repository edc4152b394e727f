"""Rows that a run store refused, in a store of the same kind: beside it, in a directory of its own, or in memory.

The next opening of the store merges what lies beside it; a run that ends counts every row, wherever it is.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .sqlite import Record, Run, SqliteStore, StoreError, aside_file, aside_files

ASIDE_ENV = "FLIGHTLINE_ASIDE"
"""A directory for what can be kept neither in the store nor beside it; a temporary one where none is named."""
MEMORY = Path(":memory:")


class Aside:
    """What one run keeps aside. Files are made when the first row comes."""

    def __init__(self, path: Path, run: Run, directory: Path | None = None) -> None:
        self.path, self.run = path, run
        self._directory = directory
        self._open: SqliteStore | None = None
        self._memory: SqliteStore | None = None
        self._places: list[Callable[[], Path]] = [self._beside, self._elsewhere, lambda: MEMORY]

    def add(self, record: Mapping[str, Any]) -> str:
        """Keep a row in the first place that takes it. Never raises; returns why a place did not, or ""."""
        why = ""
        while True:
            try:
                self._store().save(self.run.run_id, record)
                return why
            except (StoreError, OSError) as error:
                why = why or str(error)
                self._next()

    def rows(self) -> Iterator[Record]:
        """Every row that was kept aside and is still there, each host's first."""
        seen: set[str] = set()
        for store in self._stores():
            with suppress(StoreError):
                for record in store.every(self.run.run_id):
                    if record["host"] not in seen:
                        seen.add(record["host"])
                        yield record

    def in_memory(self) -> SqliteStore:
        """A store of the run with every row, for a verdict when the store cannot be opened at all."""
        store = SqliteStore(MEMORY, own=True)
        store.start(self.run)
        for record in self.rows():
            store.save(self.run.run_id, record)
        return store

    @property
    def is_beside(self) -> bool:
        """Is everything that was kept aside beside the store, from where it is merged?"""
        return bool(aside_files(self.path)) and not self._elsewhere_files() and self._memory is None

    @property
    def where(self) -> str:
        """The end of a sentence that says where to look for the rows later; "" where nobody can."""
        if self.is_beside:
            return ", and are beside the store until it is next opened"
        left = [str(path) for path in self._elsewhere_files()] if not os.environ.get(ASIDE_ENV) else []
        return f", and are in {', '.join(left)} (--store takes it)" if left else ""

    def close(self) -> None:
        """Give the files back, so that they can be merged; what is in memory stays."""
        if self._open and self._open is not self._memory:
            self._open.close()
        self._open = self._memory

    def _stores(self) -> Iterator[SqliteStore]:
        self.close()
        for path in (*aside_files(self.path), *self._elsewhere_files()):
            with suppress(StoreError):
                store = SqliteStore(path, own=True, busy_timeout_s=0)
                yield store
                store.close()
        if self._memory:
            yield self._memory

    def _store(self) -> SqliteStore:
        if self._open is None:
            path = self._places[0]()
            self._open = SqliteStore(path, own=True)
            self._open.start(self.run)
            if path == MEMORY:
                self._memory = self._open
        return self._open

    def _next(self) -> None:
        self.close()
        self._open = None
        if len(self._places) == 1:
            raise MemoryError("no memory for a row")
        del self._places[0]

    def _beside(self) -> Path:
        self.path.parent.mkdir(exist_ok=True)
        return aside_file(self.path, secrets.token_hex(4))

    def _elsewhere(self) -> Path:
        if self._directory is None:
            self._directory = Path(os.environ.get(ASIDE_ENV) or tempfile.mkdtemp(prefix="flightline-aside-"))
        return aside_file(self._directory / self.path.name, secrets.token_hex(4))

    def _elsewhere_files(self) -> list[Path]:
        return aside_files(self._directory / self.path.name) if self._directory else []
