"""What fuzzing was done: tests/fuzz/result.json, and docs/fuzz.md made from it by `python -m tests.fuzz.ledger`.

A batch is kept with a digest of the code it ran on: cases that ran before a parser changed say nothing of it now.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

from flightline_node.read.parsers import PARSERS

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).with_name("result.json")
PAGE = ROOT / "docs" / "fuzz.md"
CODE = ROOT / "module_utils" / "flightline_node" / "read" / "parsers"
_IMPORT = re.compile(r"^\s*from \. import (.+)$|^\s*from \.(\w+) import", re.MULTILINE)
Batch = dict[str, Any]


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


def read() -> dict[str, list[Batch]]:
    """Every batch recorded, by parser."""
    if not RESULT.is_file():
        return {}
    found: dict[str, list[Batch]] = json.loads(RESULT.read_text(encoding="utf-8"))
    return found


def write(parser: str, code: str, seed: int, cases: int, problems: int, slowest_s: float) -> None:
    """Add a batch; the same seed on the same code counts once."""
    kept = read()
    batch: Batch = {"code": code, "seed": seed, "cases": cases, "problems": problems}
    batch.update(slowest_s=round(slowest_s, 4), day=date.today().isoformat())
    same = ("code", "seed")
    others = [old for old in kept.get(parser, []) if any(old[key] != batch[key] for key in same)]
    kept[parser] = [*others, batch]
    part = RESULT.with_suffix(".part")
    lines = [json.dumps(name) + ": [\n  " + ",\n  ".join(map(json.dumps, kept[name])) + "\n ]" for name in sorted(kept)]
    part.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")
    os.replace(part, RESULT)


def _ranges(numbers: list[int]) -> str:
    """'1-5, 9' for [1, 2, 3, 4, 5, 9]."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def _row(name: str, batches: list[Batch]) -> str:
    now = [batch for batch in batches if batch["code"] == digest(name)]
    before = sum(batch["cases"] for batch in batches) - sum(batch["cases"] for batch in now)
    each = sorted({batch["cases"] for batch in now})
    cells = [
        name,
        f"{sum(batch['cases'] for batch in now):,}",
        _ranges([batch["seed"] for batch in now]) or "-",
        " or ".join(f"{cases:,}" for cases in each) or "-",
        str(sum(batch["problems"] for batch in now)),
        f"{1000 * max((batch['slowest_s'] for batch in now), default=0):.0f}",
        f"{before:,}",
    ]
    return "| " + " | ".join(cells) + " |"


def render() -> str:
    """docs/fuzz.md."""
    kept = read()
    head = [
        "# Fuzzing of the parsers",
        "",
        "Written by `python -m tests.fuzz.ledger` from `tests/fuzz/result.json`, which `make fuzz RECORD=1` adds to.",
        "",
        "A case is a fixture, or a cut-down copy of one, with one to four mutations (`tests/fuzz/mutate.py`): cut at any",
        "byte, bits flipped, lines dropped, repeated or exchanged, numbers damaged, other encodings, NUL bytes, terminal",
        "escapes, HTML, entity declarations, deep nesting. A problem is anything but facts or ParseError, or a case that",
        "takes over 0.5 s of processor time. A batch repeats with its seed: `make fuzz CASES=<cases> SEED=<seed>`.",
        "",
        "*Cases* ran on the parser's code as it stands; *before* ran on earlier versions of it and prove nothing of this one.",
        "",
        "| parser | cases | seeds | cases a seed | problems | slowest, ms | before |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    return "\n".join([*head, *(_row(name, kept.get(name, [])) for name in sorted(PARSERS))]) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
