"""Files, directories and links as they are wanted, all of a role in one module call.

Each module call costs a node a Python interpreter; of the time that a second run took, most went into asking for one
file at a time.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..host import Host, Problem
from ..outcome import Outcome

FILE, DIRECTORY, LINK, ABSENT = "file", "directory", "link", "absent"
STATES = (FILE, DIRECTORY, LINK, ABSENT)
ENTRY_SPEC: Dict[str, Dict[str, Any]] = {
    "path": {"type": "str", "required": True},
    "state": {"type": "str", "choices": list(STATES), "default": FILE},
    "content": {"type": "str", "default": ""},
    "source": {"type": "str", "default": ""},
    "target": {"type": "str", "default": ""},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "mode": {"type": "str", "default": ""},
    "validate": {"type": "list", "elements": "str", "default": []},
}
"""One path, as the modules take it."""
_KINDS = ((stat.S_ISLNK, LINK), (stat.S_ISDIR, DIRECTORY), (stat.S_ISREG, FILE))


class PathState(NamedTuple):
    """What is at a path; a mode, owner and content only where they can be compared."""

    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    content: bytes = b""
    target: str = ""


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Look at every path, then change what differs, in the order given."""
    before: Dict[str, Any] = {}
    after: Dict[str, Any] = {}
    for entry in wanted["files"]:
        found = look(host, entry["path"])
        differs = _differences(host, found, entry)
        if not differs:
            continue
        before[entry["path"]] = _shown(found, differs)
        after[entry["path"]] = {name: _of(host, entry, name) for name in differs}
        if not check:
            _make(host, found, entry)
    return Outcome(bool(after), before, after, {"changed": sorted(after)})


def differ(host: Host, entries: Sequence[Mapping[str, Any]]) -> List[str]:
    """The paths that `ensure` would change, or would say something about."""
    found = []
    for entry in entries:
        try:
            differs = ensure(host, {"files": [entry]}, check=True).changed
        except (Problem, OSError):
            differs = True
        found += [entry["path"]] if differs else []
    return found


def look(host: Host, path: str) -> PathState:
    """What is there now, links not followed."""
    place = Path(host.path(path))
    try:
        status = place.lstat()
    except FileNotFoundError:
        return PathState(ABSENT)
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "something else")
    content = place.read_bytes() if kind == FILE else b""
    target = os.readlink(str(place)) if kind == LINK else ""
    return PathState(kind, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, content, target)


def _differences(host: Host, found: PathState, entry: Mapping[str, Any]) -> List[str]:
    """Names of what is not as wanted."""
    if found.kind != entry["state"]:
        return ["kind", *(["content"] if entry["state"] == FILE else [])]
    if entry["state"] == ABSENT:
        return []
    if entry["state"] == LINK:
        return [] if found.target == entry["target"] else ["target"]
    differs = ["content"] if entry["state"] == FILE and found.content != _content(host, entry) else []
    differs += [] if found.mode == _mode(entry) else ["mode"]
    differs += [] if _uid(entry) in (None, found.uid) else ["owner"]
    return differs + ([] if _gid(entry) in (None, found.gid) else ["group"])


def _make(host: Host, found: PathState, entry: Mapping[str, Any]) -> None:
    place = Path(host.path(entry["path"]))
    wrong_kind = found.kind not in (ABSENT, entry["state"])
    if wrong_kind and found.kind == DIRECTORY and entry["state"] != ABSENT:
        do = "look what it is for, and remove it"
        raise Problem(f"{entry['path']} is a directory", f"a {entry['state']} there", do)
    if entry["state"] == ABSENT or wrong_kind:
        shutil.rmtree(place) if found.kind == DIRECTORY else place.unlink()
    if entry["state"] == DIRECTORY:
        place.mkdir(parents=True, exist_ok=True)
        _own(place, entry)
    elif entry["state"] == LINK:
        _link(place, entry["target"])
    elif entry["state"] == FILE:
        _write(host, place, entry)


def _link(place: Path, target: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink():
        place.unlink()
    place.symlink_to(target)


def _write(host: Host, place: Path, entry: Mapping[str, Any]) -> None:
    """Replace the file whole, with owner and mode: nobody ever reads half of it, or reads it too early."""
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=str(place.parent), prefix=".flightline-")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_content(host, entry))
        _own(scratch, entry)
        _validate(host, scratch, entry)
        scratch.replace(place)
    except (OSError, Problem):
        scratch.unlink()
        raise


def _validate(host: Host, scratch: Path, entry: Mapping[str, Any]) -> None:
    if entry["validate"]:
        answer = host.ask([word.replace("%s", str(scratch)) for word in entry["validate"]])
        if answer.rc != 0:
            said = answer.said.replace(str(scratch), entry["path"])
            raise Problem(
                f"{entry['validate'][0]} refuses {entry['path']}: {said}",
                "a file that it takes; the old one stays",
                "correct the variables that it is made of",
            )


def _own(place: Path, entry: Mapping[str, Any]) -> None:
    status = place.stat()
    uid, gid = _uid(entry), _gid(entry)
    if (uid, gid) != (None, None) and (uid, gid) != (status.st_uid, status.st_gid):
        os.chown(str(place), -1 if uid is None else uid, -1 if gid is None else gid)
    place.chmod(_mode(entry))


def _content(host: Host, entry: Mapping[str, Any]) -> bytes:
    """The wanted bytes: given, or those of another file of the host."""
    if not entry["source"]:
        return str(entry["content"] or "").encode()
    try:
        return Path(host.path(entry["source"])).read_bytes()
    except FileNotFoundError:
        raise Problem(f"no {entry['source']}", f"what {entry['path']} is a copy of", "run the whole role") from None


def _mode(entry: Mapping[str, Any]) -> int:
    return int(entry["mode"] or ("0755" if entry["state"] == DIRECTORY else "0644"), 8)


def _uid(entry: Mapping[str, Any]) -> Optional[int]:
    try:
        return pwd.getpwnam(entry["owner"]).pw_uid if entry["owner"] else None
    except KeyError:
        raise _nobody("user", entry["owner"], entry["path"]) from None


def _gid(entry: Mapping[str, Any]) -> Optional[int]:
    try:
        return grp.getgrnam(entry["group"]).gr_gid if entry["group"] else None
    except KeyError:
        raise _nobody("group", entry["group"], entry["path"]) from None


def _nobody(what: str, name: str, path: str) -> Problem:
    return Problem(f"no {what} {name}", f"{path} given to it", "install the package that makes it, or correct the name")


def _shown(found: PathState, differs: List[str]) -> Dict[str, Any]:
    """The side of the diff that goes away."""
    every: Dict[str, Any] = {
        "kind": found.kind,
        "mode": f"{found.mode:04o}",
        "owner": found.uid,
        "group": found.gid,
        "content": found.content.decode("utf-8", "replace"),
        "target": found.target,
    }
    return {name: every[name] for name in differs}


def _of(host: Host, entry: Mapping[str, Any], name: str) -> Any:
    """The other side of the diff."""
    every: Dict[str, Any] = {
        "kind": entry["state"],
        "mode": f"{_mode(entry):04o}",
        "owner": _uid(entry),
        "group": _gid(entry),
        "target": entry["target"],
    }
    return _content(host, entry).decode("utf-8", "replace") if name == "content" else every[name]
