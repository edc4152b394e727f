"""Write an adoption and take it back. What is about to change is in the manifest, on disk, before anything changes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from ..model import SettingsError
from .plan import Plan, Written
from .slurm_conf import without

STATE = "/var/lib/flightline"
LOGS = "/var/log/flightline"
MANIFEST = f"{STATE}/adopted.json"
SCHEMA = "flightline-adopted/1"
DRAFT = ".flightline-new"
Manifest = Dict[str, Any]


def manifest() -> Optional[Manifest]:
    """What an adoption has written here, or began to; None where there was none. Raises SettingsError."""
    try:
        found = json.loads(Path(MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise SettingsError(f"{MANIFEST}: saw {error}, wanted JSON; do: look at it, it says what was written") from None
    return dict(found)


def differing(plan: Plan) -> List[Written]:
    """The files that are not as they should be."""
    return [one for one in plan.files if not _as_wanted(one)]


def _as_wanted(one: Written) -> bool:
    try:
        state, data = os.stat(one.path), Path(one.path).read_bytes()
    except OSError:
        return False
    return data == one.data and (one.edits or (stat.S_IMODE(state.st_mode), state.st_uid) == (one.mode, 0))


def write(plan: Plan, part: str) -> List[str]:
    """Write what differs; its paths. Raises OSError."""
    wanted = differing(plan)
    known = manifest() or {"schema": SCHEMA, "files": {}, "directories": [], "units": {}, "state": _names(STATE)}
    for one in plan.files:
        if one in wanted and one.path not in known["files"]:
            was = None if one.edits else _state(one.path)
            known["files"][one.path] = {"part": part, "edits": one.edits, "was": was}
    places = [*(os.path.dirname(one.path) for one in wanted), STATE, LOGS]
    known["directories"] += [place for place in _missing(places) if place not in known["directories"]]
    if plan.units:
        known["units"][part] = list(plan.units)
    if wanted:
        _keep(known)
    for place in known["directories"]:
        os.makedirs(place, mode=0o755, exist_ok=True)
    for one in wanted:
        if one.edits:
            _replace(one.path, one.data, os.stat(one.path))
        else:
            _replace(one.path, one.data, None, one.mode)
    return [one.path for one in wanted]


def remove(part: str) -> List[str]:
    """Take back what a part wrote; what was there before comes back to the byte. Raises OSError."""
    known = manifest()
    if known is None:  # it may have been killed before the first word of it stood
        with contextlib.suppress(OSError):
            os.unlink(MANIFEST + DRAFT)
        return []
    mine = {path: entry for path, entry in known["files"].items() if entry["part"] == part}
    changed = [path for path, entry in mine.items() if _undo(path, entry)]
    known["files"] = {path: entry for path, entry in known["files"].items() if path not in mine}
    known["units"].pop(part, None)
    if known["files"]:
        _keep(known)
        return changed
    # The watcher's marker and cursors go with it; a directory that has something of somebody else's stays, and logs do.
    for name in {*_names(STATE)} - {*known["state"], os.path.basename(MANIFEST)}:
        path = os.path.join(STATE, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    os.unlink(MANIFEST)
    for place in sorted(known["directories"], key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(place)
    return changed


def _undo(path: str, entry: Dict[str, Any]) -> bool:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + DRAFT)
    try:
        now = Path(path).read_bytes()
    except FileNotFoundError:
        now = None
    was = entry["was"]
    if entry["edits"]:
        then = now and without(now.decode("latin-1")).encode("latin-1")
        if now is not None and then is not None and then != now:
            _replace(path, then, os.stat(path))
        return then != now
    if was is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return now is not None
    data = base64.b64decode(was["data"])
    _replace(path, data, None, was["mode"], was["uid"], was["gid"])
    return now != data


def _names(place: str) -> List[str]:
    return os.listdir(place) if os.path.isdir(place) else []


def _state(path: str) -> Optional[Dict[str, Any]]:
    try:
        state, data = os.stat(path), Path(path).read_bytes()
    except FileNotFoundError:
        return None
    mode = stat.S_IMODE(state.st_mode)
    return {"data": base64.b64encode(data).decode(), "mode": mode, "uid": state.st_uid, "gid": state.st_gid}


def _missing(places: Sequence[str]) -> List[str]:
    """Directories that have to be made, the outer ones first."""
    found: List[str] = []
    for place in places:
        chain = [str(one) for one in (Path(place), *Path(place).parents) if not one.exists()]
        found += [one for one in reversed(chain) if one not in found]
    return found


def _keep(known: Manifest) -> None:
    os.makedirs(STATE, mode=0o755, exist_ok=True)
    _replace(MANIFEST, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode(), None, 0o644)


def _replace(
    path: str, data: bytes, like: Optional[os.stat_result], mode: int = 0o644, uid: int = 0, gid: int = 0
) -> None:
    """The whole file or the old one, whatever happens meanwhile."""
    draft = path + DRAFT
    with open(draft, "wb") as stream:
        stream.write(data)
        os.fchmod(stream.fileno(), stat.S_IMODE(like.st_mode) if like else mode)
        os.fchown(stream.fileno(), like.st_uid if like else uid, like.st_gid if like else gid)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, path)
