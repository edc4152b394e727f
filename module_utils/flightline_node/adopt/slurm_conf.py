"""A slurm.conf that somebody else wrote: what it sets, and our settings in it, which can be taken out to the byte.

A setting that we replace stays as a comment of ours, and what replaces it stands in one block at the end. Slurm takes
the last of several values, and newer versions take Prolog several times: so the old line cannot simply stay. Source:
slurm.conf(5), and Slurm 22.05, src/common/parse_config.c.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, NamedTuple

from ..model import SettingsError

MARK = "#flightline-adopt# "
BEGIN = "# begin: flightline adopt; flightline adopt --remove takes it out"
END = "# end: flightline adopt"
_UNENDED = " (no line ended before)"
OURS = ("Prolog", "HealthCheckProgram", "HealthCheckInterval", "SchedulerParameters")
READ = (*OURS, "ClusterName", "PrologEpilogTimeout", "PrologFlags", "SlurmctldParameters")
_SETTING = re.compile(r"^\s*(?P<key>\w+)\s*=\s*(?P<value>.*?)\s*$")
_COMMENT = re.compile(r"(?<!\\)#.*$")
_SECOND = re.compile(r"\s\w+\s*=")
_INCLUDE = re.compile(r"^\s*include\s+(?P<path>\S+)", re.IGNORECASE)
_KEYS = {key.lower(): key for key in READ}


class SlurmConf(NamedTuple):
    """The files as they were before us, by path, the first the one that Slurm reads; and the values that count."""

    files: Mapping[str, str]
    values: Mapping[str, str]


def read(path: str) -> SlurmConf:
    """A slurm.conf with what it includes. Raises OSError, and SettingsError for lines that cannot be put aside."""
    files: Dict[str, str] = {}
    values: Dict[str, str] = {}
    _take(path, files, values)
    return SlurmConf(files, values)


def _take(path: str, files: Dict[str, str], values: Dict[str, str]) -> None:
    if path in files:
        return
    # Latin 1 has a character for every byte: what is not touched comes back as it was.
    files[path] = text = without(Path(path).read_bytes().decode("latin-1"))
    for key, value, included in _lines(text, path):
        if key:
            values[key] = value
        elif included:
            named = included.replace("%c", values.get("ClusterName", ""))
            where = os.path.join(os.path.dirname(next(iter(files))), named)
            if os.path.isfile(where):
                _take(where, files, values)


def _lines(text: str, path: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(_split(text), 1):
        bare = _COMMENT.sub("", line)
        setting, include = _SETTING.match(bare), _INCLUDE.match(bare)
        if include:
            yield "", "", include["path"]
        elif setting and setting["key"].lower() in _KEYS:
            if setting["value"].endswith("\\") or _SECOND.search(_unquoted(setting["value"])):
                raise SettingsError(
                    f"{path}: saw line {number} set more than {setting['key']}, or go on below; wanted it on a line of "
                    "its own; do: write it so, and adopt again"
                )
            yield _KEYS[setting["key"].lower()], setting["value"].strip("\"'"), ""


def _unquoted(value: str) -> str:
    return re.sub(r"\"[^\"]*\"", "", value)


def with_settings(text: str, settings: Mapping[str, str], main: bool) -> str:
    """A file of ours from one that was not: old lines put aside; in the main file the new ones at its end."""
    lines = [_aside(line, settings) for line in _split(text)]
    if not (main and settings):
        return "".join(lines)
    ended = not text or text.endswith("\n")
    block = [f"{BEGIN}{'' if ended else _UNENDED}", *(f"{key}={value}" for key, value in settings.items()), END]
    return "".join(lines) + ("" if ended else "\n") + "".join(f"{line}\n" for line in block)


def _aside(line: str, settings: Mapping[str, str]) -> str:
    found = _SETTING.match(_COMMENT.sub("", line))
    known = found and _KEYS.get(found["key"].lower()) in settings
    return MARK + line if known else line


def without(text: str) -> str:
    """The file as it was: what with_settings wrote is taken out, what others wrote since stays."""
    kept: List[str] = []
    inside = unended = last = False
    for line in _split(text):
        bare = line.rstrip("\r\n")
        last = inside and bare == END
        if bare in (BEGIN, BEGIN + _UNENDED):
            inside, unended = True, bare != BEGIN
        elif last:
            inside = False
        elif not inside:
            kept.append(line[len(MARK) :] if line.startswith(MARK) else line)
    found = "".join(kept)
    return found[:-1] if unended and last else found


def _split(text: str) -> List[str]:
    """Lines with their ends; only a line feed ends one, whatever bytes of a longer character look like."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
