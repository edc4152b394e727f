"""The quarantine marker: one small file that says that the node is out of service, since when and why.

Of a suspect, which the rule keeps in service (rule.py), it has another name: nothing that asks whether a node may work
finds it there.
Written whole and durably or not at all. It is removed only by `release`, when a preflight has proven the remedy.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

SCHEMA = "flightline-quarantine/1"
BY = "flightline-watch"
DIRECTORY = Path("/var/lib/flightline")
MARKER, RELEASED, STATE, LOCK = "quarantine.json", "released.json", "watch-state.json", "quarantine.lock"
SUSPECT, PROVEN, CLAIM_LOCK = "suspect.json", "proven.json", "claim.lock"
PAUSED = "paused.json"
"""A person's `flightline remediate --pause`: while it is there no program of the node changes its state in Slurm."""
MOST_BYTES = 1 << 20
MAX_FINDINGS = 64
"""More tell nothing more of a node that is out of service already."""
MAX_CLAIMS = 8

Marker = Dict[str, Any]


class MarkerError(ValueError):
    """The marker cannot be read or may not be removed; one sentence that says what was seen and what to do."""


def stamp(at_s: Optional[float] = None) -> str:
    """Now or another moment (seconds since the epoch), RFC 3339 in UTC."""
    moment = datetime.now(timezone.utc) if at_s is None else datetime.fromtimestamp(at_s, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock:
    """The wall clock, but one that never goes back: after a step back a fault must not look older than a proof."""

    def __init__(self) -> None:
        self._ahead_s = time.time() - time.monotonic()

    def stamp(self) -> str:
        """Now, RFC 3339 in UTC."""
        monotonic_s = time.monotonic()
        self._ahead_s = max(self._ahead_s, time.time() - monotonic_s)
        return stamp(self._ahead_s + monotonic_s)


def write_json(path: Path, value: Any, mode: int = 0o644) -> None:
    """Write a file whole and durably. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(str(draft), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        os.fchmod(handle, mode)  # whatever the umask
        os.write(handle, (json.dumps(value, indent=1, sort_keys=True, default=str) + "\n").encode("utf-8"))
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(str(draft), str(path))
    folder = os.open(str(path.parent), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: Path) -> Optional[Dict[str, Any]]:
    """The object in a file; None where there is no file. Raises MarkerError for anything else."""
    try:
        with open(str(path), "rb") as handle:
            found = json.loads(handle.read(MOST_BYTES).decode("utf-8", "replace"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise MarkerError(f"saw: {path} that cannot be read ({error}); wanted: JSON; do: see docs/healing.md") from None
    if not isinstance(found, dict):
        raise MarkerError(f"saw: {path} with {type(found).__name__}; wanted: an object; do: see docs/healing.md")
    return found


def paused(directory: Path = DIRECTORY) -> str:
    """Who paused healing and why, in words; '' where nobody did. A file that cannot be read is a pause still."""
    try:
        found = read_json(directory / PAUSED)
    except MarkerError as error:
        return f"paused, {error}"
    return f"paused by {found.get('by')} at {found.get('at')}: {found.get('why')}" if found is not None else ""


def raw(directory: Path) -> Optional[Dict[str, Any]]:
    """What stands as the marker, whatever its schema. Raises MarkerError."""
    found = read_json(directory / MARKER)
    return read_json(directory / SUSPECT) if found is None else found


def read(directory: Path = DIRECTORY) -> Optional[Marker]:
    """The marker, None where the node has no trouble. Raises MarkerError: one that cannot be read still holds."""
    found, path = raw(directory), directory / MARKER
    if found is not None and found.get("schema") != SCHEMA:
        raise MarkerError(f"saw: {path} with schema {found.get('schema')!r}; wanted: {SCHEMA}; do: see docs/healing.md")
    return found


def is_suspect(marker: Mapping[str, Any]) -> bool:
    """Does the node stay in service, for too many have the same?"""
    return (marker.get("scheduler") or {}).get("state") == "suspect"


def keep(directory: Path, marker: Marker) -> None:
    """Write the marker under its name; that of before is gone after it. Raises OSError."""
    name, other = (SUSPECT, MARKER) if is_suspect(marker) else (MARKER, SUSPECT)
    write_json(directory / name, marker)
    (directory / other).unlink(missing_ok=True)


def beside(mine: Marker, there: Optional[Marker]) -> Marker:
    """One's marker as it is written over the one that is there: what others claim stays, each in its own name.

    A watcher that finds a fault on a node that a training job blames must not unsay the blame, nor the other way round.
    """
    listed = [*((there or {}).get("claims") or []), *(mine.get("claims") or [])]
    if there is not None and there.get("findings"):
        listed.insert(0, {key: there.get(key) for key in ("by", "since", "run", "findings")})
    kept: Dict[str, Any] = {}
    for one in listed:
        if isinstance(one, dict) and one.get("by") not in (None, mine.get("by")):
            kept.setdefault(str(one["by"]), one)
    return {**mine, "claims": list(kept.values())[:MAX_CLAIMS]} if kept else mine


def findings_of(marker: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Every finding of a marker, those of other claims last."""
    claims = [one for one in marker.get("claims") or [] if isinstance(one, dict)]
    lists = [one.get("findings") for one in (marker, *claims)]
    return [one for found in lists if isinstance(found, list) for one in found if isinstance(one, dict)]


def reason(directory: Path = DIRECTORY) -> str:
    """Why the node is in quarantine, one line; empty where it is not, and for a suspect."""
    try:
        marker = read(directory)
    except MarkerError as error:
        return f"quarantine marker: {error}"
    return "" if marker is None or is_suspect(marker) else why(marker)


def why(marker: Marker) -> str:
    """What a marker says, one line."""
    findings = findings_of(marker)
    what = f"{findings[0].get('check')}: {findings[0].get('message', '')}" if findings else "no finding in the marker"
    more = f" (+{len(findings) - 1})" if len(findings) > 1 else ""
    return f"{what}{more}; in quarantine since {marker.get('since')} by {marker.get('by')}, run {marker.get('run')}"


@contextmanager
def locked(directory: Path, name: str = LOCK, most_s: float = math.inf) -> Iterator[None]:
    """One writer at a time: the watcher adds, `release` removes. Raises OSError, also when another has it that long."""
    handle = os.open(str(directory / name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + most_s
    try:
        while most_s < math.inf:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def release(run: str, newest: Optional[int], boot: str, directory: Path = DIRECTORY, judged_at: str = "") -> Marker:
    """Take the node out of quarantine: the remedy is proven by a preflight's run. Returns the marker that was there.

    newest: the last kernel record; what it and those before it say is settled. judged_at: when that preflight looked;
    a trouble seen later is not proven healed. Raises MarkerError, OSError.
    """
    with locked(directory):
        marker = read(directory)
        if marker is None:
            raise MarkerError(
                f"saw: no {directory / MARKER}; wanted: a node in quarantine; do: nothing, it is not in one"
            )
        later = [key for key, one in (marker.get("latched") or {}).items() if _after(str(one.get("last")), judged_at)]
        if later:
            raise MarkerError(
                f"saw: {', '.join(sorted(later))} after {judged_at}; wanted: nothing since the preflight looked; "
                "do: heal it and run the preflight again"
            )
        settled: Dict[str, Any] = {
            "schema": SCHEMA,
            "run": run,
            "at": stamp(),
            "boot_id": boot,
            "seq": newest,
            "was": marker,
        }
        settled["uptime_s"] = time.monotonic()  # the clock of the journal's monotonic stamps
        write_json(directory / RELEASED, settled)
        for name in (MARKER, SUSPECT):
            (directory / name).unlink(missing_ok=True)
        return marker


def _after(moment: str, judged_at: str) -> bool:
    if not judged_at:
        return False
    try:
        return _time(moment) > _time(judged_at)
    except ValueError:
        return True


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00")) if len(text) > 18 else None
    if found is None or found.tzinfo is None:
        raise ValueError(text)
    return found
