"""What Ansible printed about a run that never began, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST = 6
STACK_FILE = "inventory/group_vars/aws_ec2/stack.json"
NO_OUTPUTS = f"{STACK_FILE} is not there, where inventory/aws_ec2.yml finds the stack's outputs; run `make outputs`"

_SAID = re.compile(r"(?:\[(?=\w+\]: ))?(?P<tag>ERROR|WARNING)\]?: (?P<text>.+)")
"""`[ERROR]: text`, and `ERROR: text` where Ansible gives up before its display is there."""

_PLACE = re.compile(r"Origin: (/.+:\d+:\d+)")
_ADVICE = "Deprecation warnings can be disabled"
_YAML, _ANY_FILE = "YAML parsing failed", " (in a file of the inventory, its group_vars or host_vars)"
_TRIED = "Failed to parse inventory with"


def why(output: Iterable[str]) -> str:
    """Errors first, then warnings, each with its file and line where Ansible knows them; '' when it said nothing.

    Ansible tries every inventory plugin on every file: where one of them knows the line of the mistake, the others
    only failed because they were not meant.
    """
    said = [entry for entry in _entries(output) if not entry[1].startswith(_ADVICE)]
    if any(STACK_FILE in text for _, text, _ in said):
        return NO_OUTPUTS
    placed = [entry for entry in said if entry[2]]
    if placed:
        said = [entry for entry in said if entry[2] or not entry[1].startswith(_TRIED)]
    said.sort(key=lambda entry: entry[0] != "ERROR")
    texts = dict.fromkeys(_placed(text, place) for _, text, place in said)
    return "; ".join(list(texts)[:MOST])


def _placed(text: str, place: str) -> str:
    if place:
        return f"{text} ({place})"
    return text + (_ANY_FILE if text.startswith(_YAML) else "")


def _entries(output: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """(tag, text, place) of each; the place follows in a line of its own."""
    last: tuple[str, str, str] | None = None
    for line in output:
        match, place = _SAID.match(line), _PLACE.match(line)
        if match:
            if last:
                yield last
            last = (match["tag"], match["text"].strip(), "")
        elif place and last:
            last = (*last[:2], last[2] or place[1])
    if last:
        yield last
