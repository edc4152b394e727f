"""What a launcher's task on a node has printed: who it is, its answer in frames, how it ended. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flightline_node.tell.frames import MARK, FrameError, join

from .answers import said

NOT_KEPT_RC, BROKEN_RC = 97, 96
"""Statuses of a task: the node keeps no library of this version, or one that cannot be started."""
BEGUN, ENDED = "flightline-begin", "flightline-end"
"""What a task says first, with its node's name, and last, with its status."""


@dataclass(frozen=True)
class HostReply:
    """What came of one host: the node library's answer, or the trouble. lost: it was not reached at all."""

    host: str
    answer: Mapping[str, Any] | None = None
    trouble: str = ""
    lost: bool = False


def heard(host: str, lines: Sequence[str], status: int, most: int) -> HostReply:
    """What came of a host whose task has ended. lines: its frames. status: of its task. most: bytes of an answer."""
    if not lines:
        return HostReply(host, trouble=_ended_with(status))
    try:
        answer = json.loads(join(lines, most))
    except (FrameError, ValueError, RecursionError) as error:
        return HostReply(host, trouble=f"its answer was refused: {said(str(error))}")
    return HostReply(host, answer=answer if isinstance(answer, dict) else {})


def read(host: str, name: str, text: str, most: int) -> HostReply:
    """What came of a host, from the whole output of its task. name: the only one that it is believed."""
    found, frames, status = "", [], -1
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == BEGUN and not found:
            found = rest
        elif word == MARK and status < 0:
            frames.append(line.strip())
        elif word == ENDED and rest.isdigit():
            status = int(rest)
    if found != name:
        return HostReply(host, trouble=f"its output is of {said(found)!r}; wanted {name}")
    if status < 0:
        return HostReply(host, trouble="its answer ends in the middle: it was cut off, or ended at its deadline")
    return heard(host, frames, status, most)


def _ended_with(status: int) -> str:
    if status == NOT_KEPT_RC:
        return (
            "saw no node library of this version on the node; wanted the one that the role flightline_node installs; "
            "do: ansible-playbook playbooks/site.yml --tags flightline_node"
        )
    if status == BROKEN_RC:
        return "the node library on the node cannot be started; do: install it again, --tags flightline_node"
    return f"the node library ended with status {status} and no answer"
