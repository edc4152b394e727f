"""What the tools share: a generator's command line and its block of a file, and how files and packages are written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


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


def differing(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """The files that say something else than they should -> what they should say."""
    return {path: text for path, text in wanted.items() if path.read_text(encoding="utf-8") != text}


def settled(old: Mapping[Path, str], check: bool) -> int:
    """Name the files that are old and write them, or with check only name them; the exit status."""
    for path, text in old.items():
        sys.stdout.write(f"{os.path.relpath(path, ROOT)}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(old))


def packed(out: Path, data: bytes) -> Path:
    """Write a package; a file that already has these bytes is left alone. Raises OSError."""
    if not out.is_file() or out.read_bytes() != data:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: somebody may be reading the file that is there.
        draft = out.with_name(f"{out.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(out)
    return out
