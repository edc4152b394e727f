"""Checkpoints once more in S3: copied when they are whole, brought back where the shared storage has none at all.

By the AWS command line, which opens the sessions of a directory bucket (S3 Express One Zone) as well. Such a bucket
lists in no order and only by prefixes that end in "/" (S3 API reference, ListObjectsV2): the step in a name says what
is newest. Standard library only.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import manifest

Say = Callable[..., None]
URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(?:[^/]+/)*")


class CopyError(RuntimeError):
    """S3 did not take or give what was asked for."""


def place(text: str) -> str:
    """The address of a run's copies, with the "/" at its end. Raises ValueError, which argparse says."""
    url = text.rstrip("/") + "/"
    if not URL.fullmatch(url):
        raise ValueError(text)
    return url


class Copier:
    """One copy at a time beside everything else; what became whole meanwhile goes next, the newest alone."""

    def __init__(self, url: str, say: Say, last: int, every: int) -> None:
        self._url, self._say, self._last, self._every = url, say, last, every
        self._wanted: Path | None = None
        self._now: Path | None = None
        self._change = threading.Condition()
        threading.Thread(target=self._work, daemon=True).start()

    def want(self, where: Path) -> None:
        """Copy this whole checkpoint, at once or after the one that is being copied."""
        with self._change:
            self._wanted = where
            self._change.notify_all()

    def held(self) -> str:
        """Name of the checkpoint that is being read; '' when none is."""
        now = self._now
        return now.name if now else ""

    def finish(self) -> None:
        """Until what was wanted is copied, or has failed and said so."""
        with self._change:
            self._change.wait_for(lambda: not (self._wanted or self._now))

    def _work(self) -> None:
        while True:
            with self._change:
                self._now = None
                self._change.notify_all()
                self._change.wait_for(lambda: self._wanted)
                self._now, self._wanted = self._wanted, None
            assert self._now
            self._one(self._now)

    def _one(self, where: Path) -> None:
        began = time.monotonic()
        try:
            copy(where, self._url)
            gone = tidy(self._url, self._last, self._every)
        except (CopyError, OSError, ValueError) as error:
            self._say("copy_failed", name=where.name, to=self._url, why=f"{type(error).__name__}: {error}"[:500])
            return
        self._say("copied", name=where.name, to=self._url, seconds=round(time.monotonic() - began, 3), removed=gone)


def copy(where: Path, url: str) -> None:
    """A whole checkpoint to S3, its manifest last. Raises CopyError, OSError."""
    _aws("s3", "cp", "--only-show-errors", "--recursive", "--exclude", manifest.NAME, str(where), f"{url}{where.name}/")
    _aws("s3", "cp", "--only-show-errors", str(where / manifest.NAME), f"{url}{where.name}/{manifest.NAME}")


def bring(root: Path, url: str, say: Say) -> None:
    """The newest copy, into a directory without any checkpoint; one that is not whole stays beside the one before it.

    Raises CopyError, OSError: what cannot be looked at is not taken for empty, for a run would begin again.
    """
    if manifest.candidates(root):
        return
    for name in newest(listed(url)):
        aside = root / f".brought-{name}"
        shutil.rmtree(aside, ignore_errors=True)
        _aws("s3", "cp", "--only-show-errors", "--recursive", f"{url}{name}/", str(aside))
        aside.rename(root / name)
        try:
            manifest.read(root / name)
        except manifest.DamagedError:
            continue
        say("brought", name=name, where=url)
        return


def tidy(url: str, last: int, every: int) -> list[str]:
    """Remove what is surplus; the names. Raises CopyError."""
    files = listed(url)
    whole = [(_step(name), name) for name in newest(files)]
    incomplete = [(_step(name), name) for name in files if (_step(name), name) not in whole]
    gone = sorted(manifest.surplus(whole, incomplete, last, every))
    for name in gone:
        # Its manifest first, as on the shared storage: the rest may not come to its end.
        _aws("s3", "rm", "--only-show-errors", f"{url}{name}/{manifest.NAME}")
        _aws("s3", "rm", "--only-show-errors", "--recursive", f"{url}{name}/")
    return gone


def listed(url: str) -> dict[str, dict[str, str]]:
    """Of each checkpoint in S3 its files, with the time each was written. Raises CopyError, OSError."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    words = ["--bucket", bucket, *(["--prefix", prefix] if prefix else [])]
    rows = _aws("s3api", "list-objects-v2", *words, "--query", "Contents[].[Key,LastModified]", "--output", "json")
    return grouped(json.loads(rows or "null") or [], prefix)


def grouped(rows: Iterable[Any], prefix: str) -> dict[str, dict[str, str]]:
    """Keys and times, in whatever order, by checkpoint; other things below the prefix are left out."""
    found: dict[str, dict[str, str]] = {}
    for key, at in rows:
        name, _, file = key.removeprefix(prefix).partition("/")
        if manifest.DIRECTORY.fullmatch(name) and file:
            found.setdefault(name, {})[file] = at
    return found


def newest(files: dict[str, dict[str, str]]) -> list[str]:
    """Checkpoints with a manifest: the most steps first, of equal steps the one written last."""
    whole = [name for name in files if manifest.NAME in files[name]]
    return sorted(whole, key=lambda name: (_step(name), files[name][manifest.NAME], name), reverse=True)


def _step(name: str) -> int:
    return manifest.step_of(Path(name))


def _aws(*words: str) -> str:
    wanted = "wanted the copies of checkpoints; do: look on this node with aws s3 ls"
    try:
        done = subprocess.run(["aws", *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise CopyError(f"saw no aws on the PATH, {wanted}") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
        raise CopyError(f"saw aws {words[0]} end with {done.returncode}: {said}; {wanted}")
    return done.stdout.decode("utf-8")
