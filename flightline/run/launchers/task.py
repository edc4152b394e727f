"""What came of the task that a launcher started on a node."""

from __future__ import annotations

import json
from collections.abc import Sequence

from flightline_node.tell.frames import FrameError, join

from .. import kept
from ..answers import most_bytes, said
from ..calls import Call
from . import HostReply


def heard(call: Call, lines: Sequence[str], status: int) -> HostReply:
    """What came of a host whose task has ended. lines: its frames. status: of its task."""
    if not lines:
        return HostReply(call.host, trouble=_ended_with(status))
    try:
        answer = json.loads(join(lines, most_bytes(bool(call.params.get("return_bundle")))))
    except (FrameError, ValueError, RecursionError) as error:
        return HostReply(call.host, trouble=f"its answer was refused: {said(str(error))}")
    return HostReply(call.host, answer=answer if isinstance(answer, dict) else {})


def _ended_with(status: int) -> str:
    if status == kept.NOT_KEPT_RC:
        return (
            "saw no node library of this version on the node; wanted the one that the role flightline_node installs; "
            "do: ansible-playbook playbooks/site.yml --tags flightline_node"
        )
    if status == kept.BROKEN_RC:
        return "the node library on the node cannot be started; do: install it again, --tags flightline_node"
    return f"the node library ended with status {status} and no answer"
