"""Does another host answer, as far as this node sees? Its daemon's port first, then an echo (ICMP)."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Dict, Sequence, Tuple

OPEN, KERNEL, SILENT = "open", "kernel", "silent"
"""Its daemon takes connections; its kernel alone answers, by a refusal or an echo; nothing does."""
DEADLINE_S = 3.0
MOST_TARGETS = 64


def reach(targets: Sequence[str], tool: Callable[..., Tuple[int, str]]) -> Dict[str, str]:
    """HOST:PORT -> what answered. tool: runs a program of this node; its status and what it said."""
    asked = list(targets)[:MOST_TARGETS]
    with ThreadPoolExecutor(max(1, len(asked))) as pool:
        return dict(zip(asked, pool.map(lambda one: _answer(one, tool), asked)))


def _answer(target: str, tool: Callable[..., Tuple[int, str]]) -> str:
    host, _, port = target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), DEADLINE_S).close()
    except ConnectionRefusedError:
        return KERNEL
    except (OSError, ValueError):
        echo, _ = tool("ping", "-n", "-c", "1", "-W", str(int(DEADLINE_S)), host)
        return SILENT if echo else KERNEL
    return OPEN
