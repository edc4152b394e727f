"""What the node's own programs share: their tools with a deadline, and lines for the journal."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Callable, Sequence, Tuple

from ..watch import tool

TIMED_OUT, NOT_FOUND = 124, 127
"""Statuses as timeout(1) and the shell say them."""


def ran(argv: Sequence[str], deadline_s: float, path: str = "") -> Tuple[int, str]:
    """Status and text of a tool; TIMED_OUT and NOT_FOUND with the reason. path: '' for this program's own PATH."""
    try:
        said = tool.run(argv, path or os.environ.get("PATH", os.defpath), deadline_s)
    except OSError as error:
        return NOT_FOUND, f"{argv[0]}: {error.strerror or error}"
    if said.status is None:
        return TIMED_OUT, f"{argv[0]}: no end within {deadline_s:g} s"
    return said.status, said.text


def outputs(argv: Sequence[str], deadline_s: float, **environment: str) -> Tuple[int, str, str]:
    """Status and both outputs of a tool, however long. Raises FileNotFoundError where it is not there."""
    env = {**os.environ, **environment}
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=deadline_s, check=False, env=env)
    except subprocess.TimeoutExpired:
        return TIMED_OUT, "", f"{argv[0]}: no answer in {deadline_s:g} s"
    return ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")


def journal(program: str) -> Callable[[str], None]:
    """Says a line of this program, for the journal or the terminal."""

    def say(line: str) -> None:
        sys.stderr.write(f"{program}: {line}\n")
        sys.stderr.flush()

    return say
