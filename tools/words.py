"""The command line that the generators share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def only_check(name: str, does: str, arguments: Sequence[str] | None = None) -> bool:
    """Read a generator's words; True for --check. Ends the program for --help and for words that it does not have."""
    example = f"example: .venv/bin/python -m tools.{name} --check"
    reader = argparse.ArgumentParser(prog=f"python -m tools.{name}", description=does, epilog=example)
    reader.add_argument("--check", action="store_true", help="write nothing; say what is old or wrong, with status 1")
    return bool(reader.parse_args(arguments).check)
