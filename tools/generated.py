"""What generators and packers share: their command lines, the block of a file that is theirs, how a file is written."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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


Texts = Callable[[], Mapping[Path, str]]


def generate(name: str, does: str, arguments: Sequence[str] | None, texts: Texts) -> int:
    """A generator's whole run: name each file that is not what it should say, and write it unless --check is given."""
    check = only_check(name, does, arguments)
    try:
        wanted = texts()
    except ValueError as error:
        sys.exit(str(error))
    old = {
        path: text for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    for path, text in old.items():
        sys.stdout.write(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(old))


def put(out: Path, data: bytes) -> Path:
    """Write a package; a file that already has these bytes is left alone. Raises OSError."""
    if not out.is_file() or out.read_bytes() != data:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: somebody may be reading the file that is there.
        draft = out.with_name(f"{out.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(out)
    return out


def out_of(name: str, does: str, metavar: str, example: str, what: str = "the file to write") -> Path:
    """Read a packer's only word: where its package goes."""
    example = f"Example: python -m tools.{name} {example}"
    reader = argparse.ArgumentParser(f"python -m tools.{name}", description=does, epilog=example)
    reader.add_argument("out", metavar=metavar, type=Path, help=what)
    return Path(reader.parse_args().out)
