"""Run a program of the site's own: what it may print and how long it may take is bounded, and who may have written it.

It runs in the process group of its reader, which the runner ends with all that is left of it.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from ..judge.site_checks import DIRECTORY, SiteCheck, SiteProgram, check_of
from ..model import Check, SettingsError
from ..names import SITE, is_site
from ..read import strictjson
from .probes import Probe
from .runner import SYSTEM_PATHS

MOST_BYTES = 64 << 10
READER_S = 0.4
"""How much earlier than its probe's deadline the reader gives a program up, so that it can say so."""


def probes(checks: Iterable[Check]) -> Tuple[Tuple[Probe, ...], Mapping[str, Callable[[str], str]]]:
    """The probes of the programs among some checks, and their readers."""
    programs = [check.program for check in checks if isinstance(check, SiteCheck) and check.program]
    named = {f"site-{one.name}": one for one in programs}
    asked = tuple(
        Probe(key, one.file, reader=key, deadline_s=one.seconds, level=one.level) for key, one in named.items()
    )
    return asked, {key: partial(answer, program=one) for key, one in named.items()}


def answer(root: str, program: SiteProgram) -> str:
    """JSON of how it ended and the beginning of what it said; of one that is not run `refused` says why."""
    path = Path(root, program.path.lstrip("/"))
    refused = _written_by_others(path) or (
        "" if os.access(path, os.X_OK) and path.is_file() else f"{path} is no program"
    )
    return json.dumps({"refused": refused} if refused else _run(path, root, program))


def _written_by_others(path: Path) -> str:
    """Who can write it runs as whoever judges the node: '' where that is nobody but root or the judge."""
    try:
        states = [(one, one.stat()) for one in (path, path.parent)]
    except OSError as error:
        return f"{path}: {error.strerror}"
    open_ = [one for one, state in states if state.st_uid not in (0, os.geteuid()) or state.st_mode & 0o022]
    return f"{open_[0]} can be written by others than root; it was not used" if open_ else ""


def _run(path: Path, root: str, program: SiteProgram) -> Dict[str, Any]:
    env = {"PATH": SYSTEM_PATHS, "LC_ALL": "C", "HOME": "/", "FLIGHTLINE_ROOT": root, "FLIGHTLINE_LEVEL": program.level}
    until = time.monotonic() + program.seconds - min(READER_S, program.seconds / 4)
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        child = subprocess.Popen([str(path)], env=env, cwd="/", **pipes)  # type: ignore[call-overload]
    except OSError as error:
        return {"refused": f"{path}: {error.strerror}"}
    said: Dict[Any, bytes] = {child.stdout: b"", child.stderr: b""}
    open_ = list(said)
    status: Optional[int] = None
    while open_ or status is None:
        for stream in select.select(open_, [], [], 0.02 if status is None else 0)[0] if open_ else ():
            piece = os.read(stream.fileno(), 16384)
            said[stream] += piece
            if not piece:
                open_.remove(stream)
            if len(said[stream]) > MOST_BYTES:
                return {"refused": f"{path} printed more than {MOST_BYTES >> 10} KiB"}
        status = child.poll()
        if status is not None and not select.select(open_, [], [], 0.05)[0]:
            break  # what it left running may hold the pipes: that is not waited for
        if time.monotonic() > until:
            return {"refused": f"{path} gave no answer within {program.seconds:g} s"}
        if not open_:
            time.sleep(0.02)
    out, err = (said[stream].decode("utf-8", "replace") for stream in (child.stdout, child.stderr))
    return {"status": status, "stdout": out, "stderr": err[:2000]}


def found(root: str, directory: str = DIRECTORY) -> List[SiteCheck]:
    """The checks of the node's own directory: NAME or NAME.sh is a program, NAME.json a declaration.

    What cannot be used is a check that says so.
    """
    place = Path(root, directory.lstrip("/"))
    checks: Dict[str, SiteCheck] = {}
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        name, _, suffix = path.name.partition(".")
        if is_site(SITE + name) and suffix == "json":
            checks[name] = _declared(path, name)
        elif is_site(SITE + name) and os.access(path, os.X_OK) and path.is_file():
            checks.setdefault(name, check_of(name, {"program": f"{directory}/{path.name}"}))
    return list(checks.values())


def _declared(path: Path, name: str) -> SiteCheck:
    try:
        if not _written_by_others(path):
            return check_of(name, strictjson.loads(path.read_bytes()[:MOST_BYTES]))
    except (OSError, ValueError, SettingsError):
        pass
    return check_of(name, {"program": str(path)})  # which is no program, and says so
