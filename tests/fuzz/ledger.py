"""What fuzzing was done: the table in docs/fuzz.md, a row a parser.

A row has a digest of the code it ran on: cases that ran before a parser changed say nothing of it now.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from flightline_node.read.parsers import PARSERS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "fuzz.md"
CODE = ROOT / "module_utils" / "flightline_node" / "read" / "parsers"
_IMPORT = re.compile(r"^\s*from \. import (.+)$|^\s*from \.(\w+) import", re.MULTILINE)


def _modules(name: str, seen: set[str]) -> set[str]:
    """The parser's module and those of its folder that it imports, directly or not."""
    path = CODE / f"{name}.py"
    if name in seen or name == "__init__" or not path.is_file():
        return seen
    seen.add(name)
    for several, one in _IMPORT.findall(path.read_text(encoding="utf-8")):
        for imported in [one, *several.split(",")]:
            words = imported.split()
            _modules(words[0] if words else "", seen)
    return seen


def digest(parser: str) -> str:
    """Twelve hexadecimal digits for the parser's code as it stands."""
    parts = sorted(_modules(parser, set()))
    return hashlib.sha256(b"".join((CODE / f"{part}.py").read_bytes() for part in parts)).hexdigest()[:12]


@dataclass(frozen=True)
class Row:
    """What one parser was given. before: cases on earlier code of it."""

    code: str = "-"
    cases: int = 0
    seeds: str = "-"
    problems: int = 0
    slowest_ms: int = 0
    day: str = "-"
    before: int = 0

    @classmethod
    def of(cls, cells: list[str]) -> Row:
        """A row of the page."""
        code, cases, seeds, problems, slowest, day, before = cells
        numbers = [int(cell.replace(",", "")) for cell in (cases, problems, slowest, before)]
        return cls(code, numbers[0], seeds, numbers[1], numbers[2], day, numbers[3])

    def on(self, code: str) -> Row:
        """The row as it counts for this code: cases on other code prove nothing of it."""
        return self if self.code == code else Row(before=self.before + self.cases)

    def with_batch(self, code: str, seed: int, cases: int, problems: int, slowest_s: float, day: str) -> Row:
        """With one more batch; a seed counts once on the same code."""
        row = self.on(code)
        if seed in _numbers(row.seeds):
            return row
        slowest = max(row.slowest_ms, round(1000 * slowest_s))
        seeds = _ranges([*_numbers(row.seeds), seed])
        return Row(code, row.cases + cases, seeds, row.problems + problems, slowest, day, row.before)

    def line(self, name: str) -> str:
        """The page's line."""
        cells = (name, self.code, f"{self.cases:,}", self.seeds, self.problems, self.slowest_ms, self.day)
        return "| " + " | ".join(map(str, cells)) + f" | {self.before:,} |"


def read() -> dict[str, Row]:
    """Every parser's row of the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.is_file() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {name: Row.of(cells) for name, *cells in rows if name in PARSERS}


def write(parser: str, code: str, seed: int, cases: int, problems: int, slowest_s: float) -> None:
    """Add a batch to the page."""
    rows = read()
    today = date.today().isoformat()
    rows[parser] = rows.get(parser, Row()).with_batch(code, seed, cases, problems, slowest_s, today)
    part = PAGE.with_suffix(".part")
    part.write_text(render(rows), encoding="utf-8")
    os.replace(part, PAGE)


def _numbers(ranges: str) -> list[int]:
    """[1, 2, 3, 9] for '1-3, 9'."""
    spans = [span.split("-") for span in ranges.split(", ") if span != "-"]
    return [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]


def _ranges(numbers: list[int]) -> str:
    """'1-5, 9' for [1, 2, 3, 4, 5, 9]."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def render(rows: Mapping[str, Row]) -> str:
    """docs/fuzz.md."""
    head = [
        "# Fuzzing of the parsers",
        "",
        "`make fuzz RECORD=1` adds to this table; `python -m tests.fuzz.ledger` moves what ran on other code to *before*.",
        "",
        "A case is a fixture, or a cut-down copy of one, with one to four mutations (`tests/fuzz/mutate.py`): cut at any",
        "byte, bits flipped, lines dropped, repeated or exchanged, numbers damaged, other encodings, NUL bytes, terminal",
        "escapes, HTML, entity declarations, deep nesting. A problem is anything but facts or ParseError, or a case that",
        "takes over 0.5 s of processor time. A batch repeats with its seed: `make fuzz CASES=<cases> SEED=<seed>`.",
        "",
        "*Cases* ran on the code of the digest *code*; *before* ran on earlier versions of it and prove nothing of this one.",
        "",
        "| parser | code | cases | seeds | problems | slowest, ms | day | before |",
        "|---|---|--:|---|--:|--:|---|--:|",
    ]
    return "\n".join([*head, *(rows.get(name, Row()).line(name) for name in sorted(PARSERS))]) + "\n"


def main() -> int:
    """Write the page for the code as it stands."""
    rows = {name: row.on(digest(name)) for name, row in read().items()}
    PAGE.write_text(render(rows), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
