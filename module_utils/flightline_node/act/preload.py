"""Bring the files of a training manifest from S3 onto FSx for Lustre before the first step reads them.

  flightline-preload --manifest s3://RESULTS/training/JOB/REQUEST.json --link s3://DATA=/fsx/data --deadline-min 60

`lfs hsm_restore` only asks; a file is there when `lfs hsm_state` no longer says "released" (FSx for Lustre user guide,
"Preloading files into your file system"). Progress goes to stderr, the outcome as one JSON object to stdout.
Exit status: 0 every file is there, 1 some are not and are named, 2 nothing could be asked, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import stat
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .program import TIMED_OUT, outputs

BATCH = 64
"""Files in one call of lfs."""
CALL_S = 120
LOOK_EVERY_S = 5.0
ASK_AGAIN_S = 300.0
"""A restore that the servers dropped leaves the file released and says nothing; asking again is harmless."""
SHOWN = 20
"""Failed files named on the terminal; the JSON has all of them."""
LARGEST_MANIFEST = 512 * 1024 * 1024
STATE = re.compile(r"\((0x[0-9a-fA-F]+)\)")
RELEASED, LOST = 0x04, 0x40
"""HS_RELEASED and HS_LOST of Lustre's lustre_user.h: the data is not on the servers; the copy in S3 is gone."""


class PreloadError(Exception):
    """Nothing can be asked: what was seen, what was wanted, what to do."""


class WantedFile(NamedTuple):
    """One file of the data set."""

    path: str
    size_bytes: int


class BucketLink(NamedTuple):
    """A bucket with a prefix ("" or ending in a slash), and the directory that it is linked to."""

    bucket: str
    prefix: str
    directory: str


Run = Callable[[Sequence[str]], Tuple[int, str, str]]


def run(argv: Sequence[str]) -> Tuple[int, str, str]:
    """Exit status and both outputs; a tool that hangs is ended."""
    try:
        return outputs(argv, CALL_S, LC_ALL="C")
    except FileNotFoundError:
        raise PreloadError(f"saw no {argv[0]}, wanted it on this node; do: run the role that brings it") from None


def link(text: str) -> BucketLink:
    """Read s3://bucket/prefix=/directory. Raises ValueError."""
    found = re.match(r"s3://([a-z0-9][a-z0-9.-]+)(/[^=]*)?=(/.+)\Z", text)
    if not found:
        raise ValueError(f"saw {text!r}, wanted s3://BUCKET/PREFIX=/DIRECTORY")
    prefix = (found.group(2) or "").strip("/")
    return BucketLink(found.group(1), prefix + "/" if prefix else "", found.group(3).rstrip("/"))


def manifest(text: str, where: BucketLink) -> List[WantedFile]:
    """The files that a manifest names. Raises PreloadError for one that is not of this file system."""
    try:
        body = json.loads(text)
        bucket, objects = body["bucket"], body["objects"]
        rows = [(str(one["key"]), int(one["size"])) for one in objects]
    except (ValueError, KeyError, TypeError) as error:
        raise PreloadError(f"saw a manifest that cannot be read ({error!r}), wanted bucket and objects") from None
    if bucket != where.bucket:
        raise PreloadError(f"saw the data of {bucket}, wanted that of {where.bucket}, which is linked here")
    if not rows:
        raise PreloadError("saw a manifest without objects, wanted at least one")
    return [WantedFile(_path(key, where), size) for key, size in rows]


def _path(key: str, where: BucketLink) -> str:
    parts = key[len(where.prefix) :].split("/")
    if not key.startswith(where.prefix) or any(part in ("", ".", "..") for part in parts) or "\0" in key:
        raise PreloadError(f"saw the key {key!r}, wanted one under {where.prefix!r} that names a file")
    return "/".join([where.directory, *parts])


def fetched(address: str, call: Run) -> str:
    """The manifest's text, from a file or from S3."""
    if not address.startswith("s3://"):
        try:
            with open(address, encoding="utf-8") as file:
                return file.read(LARGEST_MANIFEST)
        except (OSError, ValueError) as error:
            raise PreloadError(f"saw no manifest ({error}), wanted {address}") from None
    status, out, err = call(["aws", "s3", "cp", "--only-show-errors", address, "-"])
    if status:
        raise PreloadError(f"saw no manifest at {address} ({err.strip()[-300:]}), wanted it; do: look with aws s3 ls")
    return out


class Preload:
    """Asks for files until all are there, or the deadline has passed."""

    def __init__(self, wanted: Sequence[WantedFile], deadline_s: float, call: Run = run, clock: Any = time) -> None:
        self._call, self._clock = call, clock
        self._end = clock.monotonic() + deadline_s
        self._all = sum(one.size_bytes for one in wanted)
        self.waiting: Dict[str, WantedFile] = {one.path: one for one in wanted}
        self.count, self.there, self.there_bytes = len(self.waiting), 0, 0
        self.failed: Dict[str, str] = {}
        self._began = clock.monotonic()

    def go(self, every_s: float, say: Callable[[str], None]) -> None:
        """Ask, look, tell, until nothing waits."""
        for path, one in list(self.waiting.items()):
            why = _absent(one)
            if why:
                self._drop(path, why)
        self.look()
        asked = -ASK_AGAIN_S
        while self.waiting and self._clock.monotonic() < self._end:
            if self._clock.monotonic() - asked >= ASK_AGAIN_S:
                asked = self._clock.monotonic()
                self.ask()
            say(self.progress())
            self._clock.sleep(max(0.0, min(every_s, self._end - self._clock.monotonic())))
            self.look()
        for path in self.waiting:
            self.failed.setdefault(path, "still in S3 only when the time was over")
        say(self.progress())

    def ask(self) -> None:
        """Request every waiting file; one that the servers refuse is tried alone, to name it."""
        for batch in _batches(list(self.waiting)):
            if self._call(["lfs", "hsm_restore", *batch])[0]:
                for path in batch:
                    status, _, err = self._call(["lfs", "hsm_restore", path])
                    if status:
                        self._drop(path, "lfs hsm_restore: " + (err.strip()[-200:] or f"status {status}"))

    def look(self) -> None:
        """Take what is there off the list. A state that cannot be read is not one of being there."""
        for batch in _batches(list(self.waiting)):
            status, out, _ = self._call(["lfs", "hsm_state", *batch])
            lines = out.splitlines()
            for path in batch:
                flags = _flags(path, lines)
                if flags is None and status:
                    flags = self._alone(path)
                if flags is None:
                    continue
                if flags & LOST:
                    self._drop(path, "lfs hsm_state: lost, S3 has it no more")
                elif not flags & RELEASED:
                    self.there += 1
                    self.there_bytes += self.waiting.pop(path).size_bytes

    def _alone(self, path: str) -> Optional[int]:
        status, out, err = self._call(["lfs", "hsm_state", path])
        if status and status != TIMED_OUT:
            self._drop(path, "lfs hsm_state: " + (err.strip()[-200:] or f"status {status}"))
        return _flags(path, out.splitlines()) if not status else None

    def _drop(self, path: str, why: str) -> None:
        self.waiting.pop(path, None)
        self.failed[path] = why

    def progress(self) -> str:
        """One line."""
        now = self._clock.monotonic()
        gib = f"{self.there_bytes / 2**30:.1f} of {self._all / 2**30:.1f} GiB"
        rest = f"{now - self._began:.0f} s gone, {max(0.0, self._end - now):.0f} s left"
        return f"preload: {self.there} of {self.count} files, {gib}, {len(self.failed)} failed, {rest}"


def _absent(one: WantedFile) -> Optional[str]:
    """Why a file cannot be asked for, None when it can."""
    try:
        # Never through a link: a data set's file is one, and a link may lead off this file system.
        found = os.lstat(one.path)
    except OSError as error:
        return f"not on the file system ({error.strerror}): its import has not come yet, or the key is gone"
    if not stat.S_ISREG(found.st_mode):
        return "not a plain file"
    if found.st_size != one.size_bytes:
        return f"{found.st_size} bytes, the manifest says {one.size_bytes}: its import has not come yet"
    return None


def _flags(path: str, lines: Sequence[str]) -> Optional[int]:
    """State bits of `PATH: (0x0000000d) released exists archived, archive_id:1`, None when it is not said."""
    for line in lines:
        if line.startswith(path + ":"):
            found = STATE.match(line[len(path) + 1 :].strip())
            return int(found.group(1), 16) if found else None
    return None


def _batches(paths: List[str]) -> Iterator[List[str]]:
    for start in range(0, len(paths), BATCH):
        yield paths[start : start + BATCH]


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _say(line: str, file: str) -> None:
    _tell(line)
    if file:
        with open(file, "w", encoding="utf-8") as kept:
            kept.write(line + "\n")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """What the command line does."""
    about = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        "flightline-preload", description=about[0], epilog=about[1], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--manifest", required=True, help="file, or s3:// address that the training input was given")
    parser.add_argument("--link", required=True, type=link, help="s3://BUCKET/PREFIX=/DIRECTORY: what is linked where")
    parser.add_argument("--deadline-min", type=float, default=60.0, help="minutes; default %(default)s")
    parser.add_argument("--every-s", type=float, default=LOOK_EVERY_S, help="seconds between looks; %(default)s")
    parser.add_argument("--progress", default="", help="file that holds the last line of progress, for onlookers")
    given = parser.parse_args(arguments)
    try:
        preload = Preload(manifest(fetched(given.manifest, run), given.link), given.deadline_min * 60)
        preload.go(given.every_s, lambda line: _say(line, given.progress))
    except PreloadError as error:
        _tell(f"flightline-preload: {error}")
        return 2
    except KeyboardInterrupt:
        _tell("flightline-preload: interrupted; what was asked for goes on on the servers")
        return 130
    for path, why in list(preload.failed.items())[:SHOWN]:
        _tell(f"failed: {path}: {why}")
    if len(preload.failed) > SHOWN:
        _tell(f"and {len(preload.failed) - SHOWN} more")
    done = {"files": preload.count, "there": preload.there, "bytes": preload.there_bytes, "failed": preload.failed}
    sys.stdout.write(json.dumps(done, sort_keys=True) + "\n")
    return 1 if preload.failed else 0
