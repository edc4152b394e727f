"""What the generators share: their command line, and the block of a file that is theirs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence


def only_check(name: str, does: str, arguments: Sequence[str] | None = None) -> bool:
    """Read a generator's words; True for --check. Ends the program for --help and for words that it does not have."""
    example = f"example: .venv/bin/python -m tools.{name} --check"
    reader = argparse.ArgumentParser(prog=f"python -m tools.{name}", description=does, epilog=example)
    reader.add_argument("--check", action="store_true", help="write nothing; say what is old or wrong, with status 1")
    return bool(reader.parse_args(arguments).check)


def renewed(name: object, text: str, tool: str, block: Iterable[str]) -> str:
    """A file's text with the tool's block made anew. Raises ValueError when the marks are not there, once each."""
    lines = text.splitlines()
    marks = (f"{edge}: made by python -m tools.{tool}" for edge in ("begin", "end"))
    begin, end = ([at for at, line in enumerate(lines) if mark in line] for mark in marks)
    if len(begin) != 1 or len(end) != 1 or begin > end:
        raise ValueError(f"saw {name} with {len(begin)} and {len(end)} marks; wanted one block; do: git diff {name}")
    return "\n".join([*lines[: begin[0] + 1], *block, *lines[end[0] :]]) + "\n"
