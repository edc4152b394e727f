"""/proc/mdstat, a section of sysfs.json: the software RAID arrays."""

from __future__ import annotations

import re
from typing import Any, Dict, List

MAX_ARRAYS = 256
_ARRAY = re.compile(r"(md\w{1,32}) : (\w{1,20})((?: \([\w-]{1,40}\))*)(.*)")
_MEMBER = re.compile(r"([\w/!.-]{1,40})\[\d{1,4}\]((?:\([A-Z]\))*)")
_COUNT = re.compile(r"\[(\d{1,4})/(\d{1,4})\] \[[U_]{1,512}\]")
_BUSY = re.compile(r"(recovery|resync|reshape|check|repair) *= *([\d.]{1,8}%)|resync=(?:PENDING|DELAYED)")


def arrays(text: str) -> List[Dict[str, Any]]:
    """[{name state level members[] failed[] wanted up busy text}]; wanted and up only where md counts."""
    found: List[Dict[str, Any]] = []
    for line in text.splitlines():
        head = _ARRAY.match(line)
        if head and len(found) < MAX_ARRAYS:
            found.append(_array(line, head))
        elif found and line[:1] in (" ", "\t"):
            _details(found[-1], line)
    return found


def _array(line: str, head: re.Match[str]) -> Dict[str, Any]:
    members = _MEMBER.findall(head.group(4))
    words = head.group(4).split()
    level = words[0] if words and "[" not in words[0] else None
    return {
        "name": head.group(1),
        "state": head.group(2),
        "level": level,
        "members": [name for name, _ in members],
        "failed": [name for name, flags in members if "(F)" in flags],
        "text": line[:300],
    }


def _details(array: Dict[str, Any], line: str) -> None:
    count, busy = _COUNT.search(line), _BUSY.search(line)
    if count:
        array.update(wanted=int(count.group(1)), up=int(count.group(2)))
    if busy:
        array["busy"] = busy.group(0)
