"""A scheduler's command line, and what it refused in words."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from .ports import EdgeError


def ran(
    argv: Sequence[str],
    shown: str,
    timeout_s: float,
    refused: type[EdgeError],
    given: str = "",
    env: Mapping[str, str] | None = None,
) -> str:
    """What it printed. shown: the command in messages. Raises the given kind of EdgeError."""
    tool = shown.partition(" ")[0]
    try:
        done = subprocess.run(argv, input=given.encode(), capture_output=True, timeout=timeout_s, check=False, env=env)
    except FileNotFoundError:
        raise refused(f"{tool}: not found; run this where it and its configuration are") from None
    except subprocess.TimeoutExpired:
        raise refused(f"{shown}: no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise refused(f"{tool}: {error.strerror}") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[:300]
        raise refused(f"{shown}: status {done.returncode}: {said}")
    return done.stdout.decode("utf-8", "replace")
