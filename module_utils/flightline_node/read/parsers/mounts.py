"""/proc/mounts, mount, findmnt and findmnt -J."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("mounts.txt",)

_ESCAPE = re.compile(r"\\([0-3][0-7]{2})")
_TREE = " |`-\u2502\u251c\u2514\u2500"

Entry = Dict[str, Any]


def parse(files: Mapping[str, Data]) -> Facts:
    """{mounts[]{source mount fstype options[]}} in the order printed; a later entry hides an earlier one."""
    data = t.only(files)
    head = t.decode(data, 4096).lstrip()
    if head.startswith("{"):
        found = list(_json(v.json_object(data)))
    else:
        tree = head.startswith("TARGET")
        found = [entry for entry in (_line(line, tree) for line in v.lines(data)) if entry]
    if not found:
        raise ParseError("no mount in it: not /proc/mounts, mount or findmnt")
    return {"mounts": found}


def _json(document: Dict[str, Any]) -> Iterator[Entry]:
    pending = list(reversed(v.mappings(document.get("filesystems"))))
    while pending:
        row = pending.pop()
        target = v.word(row.get("target"))
        if target:
            source, fstype = v.word(row.get("source")) or "", v.word(row.get("fstype")) or ""
            yield _entry(source, target, fstype, v.word(row.get("options")) or "")
        pending += reversed(v.mappings(row.get("children")))


def _line(line: str, tree: bool) -> Optional[Entry]:
    if tree:
        words = line.lstrip(_TREE).split()
        target = words[0] if len(words) == 4 and words[0].startswith("/") else ""
        return _entry(words[1], target, words[2], words[3]) if target else None
    if line.endswith(")") and " on /" in line and " type " in line:
        source, _, rest = line.partition(" on /")
        mount, _, rest = rest.rpartition(" type ")
        fstype, _, options = rest.partition(" (")
        return _entry(source, "/" + mount, fstype, options[:-1])
    words = line.split()
    if len(words) == 6 and words[1].startswith("/") and words[4].isdigit() and words[5].isdigit():
        return _entry(_plain(words[0]), _plain(words[1]), words[2], _plain(words[3]))
    return None


def _entry(source: str, mount: str, fstype: str, options: str) -> Entry:
    return {"source": source, "mount": mount, "fstype": fstype, "options": options.split(",")}


def _plain(word: str) -> str:
    r"""The kernel writes a space in a path as \040."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), word) if "\\" in word else word
