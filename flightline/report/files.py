"""Write the report's files: all of them, or none."""

from __future__ import annotations

import gzip
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from flightline.fleet.result import Report

from ..store.atomic import draft_of
from . import healthy, html, jsonfile, junit
from .copies import copies

Records = Callable[[], Iterable[dict[str, Any]]]
"""Gives the run's node records afresh at each call, one at a time, each as flightline_node.node.record() makes it."""

NAMES: Mapping[str, str] = {
    "json": "report.json",
    "junit": "junit.xml",
    "html": "report.html",
    "hosts": "no-go.txt",
    **healthy.NAMES,
}
MOST_PLAIN_NODES = 1000
"""With more nodes report.json is compressed: it has about 25 kB of JSON for each, and is sent and kept."""

CHUNK_CHARS, MOST_WAITING = 1 << 20, 2

COMPRESSED = "report.json.gz"
GZIP_LEVEL = 1
"""Of 9: a tenth of the size in a tenth of the time; the highest saves a third more."""


def existing(directory: Path) -> dict[str, Path]:
    """The report files that are in a directory."""
    places = [*NAMES.items(), ("json", COMPRESSED)]
    return {kind: directory / name for kind, name in places if (directory / name).is_file()}


def names_for(report: Report) -> dict[str, str]:
    """The file's name of each format, for a run of this size."""
    return {**NAMES, "json": COMPRESSED if len(report.rows) > MOST_PLAIN_NODES else NAMES["json"]}


@contextmanager
def opened(path: Path, packed: bool) -> Iterator[IO[str]]:
    """A text file to write, compressed where wanted; the same text gives the same bytes. Raises OSError."""
    if not packed:
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    with ExitStack() as files:
        raw = files.enter_context(path.open("wb"))
        squeezed = files.enter_context(gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0))
        beside: Any = _Beside(squeezed)
        yield files.enter_context(beside)


class _Beside(io.TextIOBase):
    """Text that is compressed by a thread while more of it is made: compressing is a fifth of the report's time."""

    def __init__(self, squeezed: gzip.GzipFile) -> None:
        self._squeezed = squeezed
        self._parts: list[str] = []
        self._room = CHUNK_CHARS
        self._pool = ThreadPoolExecutor(1, "gzip")
        self._waiting: deque[Future[int]] = deque()

    def write(self, text: str) -> int:
        self._parts.append(text)
        self._room -= len(text)
        if self._room <= 0:
            self._send(MOST_WAITING)
        return len(text)

    def __exit__(self, *_: object) -> None:
        """Raises OSError where not all of it could be written."""
        with self._pool:
            self._send(0)

    def _send(self, most: int) -> None:
        chunk = "".join(self._parts).encode("utf-8")
        self._parts, self._room = [], CHUNK_CHARS
        self._waiting.append(self._pool.submit(self._squeezed.write, chunk))
        while len(self._waiting) > most:
            self._waiting.popleft().result()


def write_all(report: Report, records: Records, directory: Path) -> dict[str, Path]:
    """Write report.json, junit.xml, report.html, no-go.txt and the lists of healthy hosts; returns the path of each.

    Every file is complete before the first is put in place, so that a reader never sees half a report
    and a failure leaves the earlier report alone. Raises OSError when the directory cannot be written.
    """
    names = names_for(report)
    paths = {kind: directory / name for kind, name in names.items()}
    writers: dict[str, Callable[[IO[str]], None]] = {
        "json": lambda stream: jsonfile.write(report, records(), stream),
        "junit": lambda stream: junit.write(report, stream),
        "html": lambda stream: html.write(report, stream, {"JSON": names["json"], "JUnit": names["junit"]}),
        "hosts": lambda stream: _hosts(report, stream),
        **{kind: partial(healthy.write, kind, healthy.of_report(report)) for kind in healthy.NAMES},
    }
    with ExitStack() as whole:
        for kind, path in paths.items():
            draft = whole.enter_context(draft_of(path))
            with opened(draft, names[kind] == COMPRESSED) as stream:
                writers[kind](stream)
    for other in {NAMES["json"], COMPRESSED} - {names["json"]}:
        (directory / other).unlink(missing_ok=True)  # of an earlier run of another size, into the same directory
    return paths


def _hosts(report: Report, stream: IO[str]) -> None:
    """The no-go hosts, one a line, as `ansible-playbook --limit @FILE` reads them."""
    found = copies(report)
    stream.write("".join(f"{host}\n" for host in found.hosts.split()) if found else "")
