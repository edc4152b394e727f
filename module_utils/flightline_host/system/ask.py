"""Several questions to a host in one module call, where each call costs more than most answers."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from ..host import Host
from ..outcome import Outcome
from . import files, unit_state

_DPKG = ("dpkg-query", "-W", "-f", "${Package}\\t${Version}\\t${db:Status-Abbrev}\\n")
_INSTALLED = "i"


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Answers of commands, what is at paths, which packages are missing, which files and units differ. Reads only."""
    said = {name: _answer(host, argv) for name, argv in wanted["commands"].items()}
    found = {name: _file(host, path) for name, path in wanted["files"].items()}
    facts = {"commands": said, "files": found, "missing": missing(host, wanted["packages"])}
    facts["differ"] = files.differ(host, wanted["written"])
    facts["not_at_boot"] = [name for name in wanted["at_boot"] if not unit_state.is_set_for_boot(host, name)]
    return Outcome(False, {}, {}, facts)


def _answer(host: Host, argv: List[Any]) -> Dict[str, Any]:
    answer = host.ask([str(word) for word in argv])
    return {"rc": answer.rc, "lines": answer.out.splitlines(), "said": answer.said}


def _file(host: Host, path: str) -> Dict[str, Any]:
    """Text and digest of a file; a directory, or what cannot be read, exists and has neither."""
    try:
        data: Optional[bytes] = Path(host.path(path)).read_bytes()
    except OSError:
        data = None
    return {
        "exists": host.exists(path),
        "text": None if data is None else _text(data),
        "sha256": None if data is None else hashlib.sha256(data).hexdigest(),
    }


def _text(data: bytes) -> Optional[str]:
    """None for a program or an archive: nobody reads those by eye, and JSON cannot carry them."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def missing(host: Host, packages: List[str]) -> List[str]:
    """Those that dpkg does not call installed in the wanted version (`name` or `name=pattern`).

    Where there is no dpkg all of them: rpm's names and versions are dnf's to take apart.
    """
    names = {entry: entry.partition("=")[::2] for entry in packages}
    if not names:
        return []
    answer = host.ask([*_DPKG, *sorted({name for name, _ in names.values()})])
    rows = [line.split("\t") for line in answer.out.splitlines() if line.count("\t") == 2]
    have = {name: version for name, version, state in rows if state[1:].strip() == _INSTALLED}
    return [
        entry
        for entry, (name, pattern) in names.items()
        if name not in have or not fnmatchcase(have[name], pattern or "*")
    ]
