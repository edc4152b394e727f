"""Fuzz every parser: `python -m tests.fuzz.run --cases 10000 --seed 1 [PARSER ...]`.

A parser returns facts or raises ParseError; anything else, or a case slower than the limit,
is a finding: the case is written under .flightline/fuzz/ and the exit status is 1. Seeds are
the fixtures that the parser accepts as they are.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from flightline_node.model import ParseError
from flightline_node.parsers import PARSERS, Parser
from tests.fuzz.mutate import mutate

FIXTURES = Path(__file__).parents[1] / "unit" / "fixtures"
CRASHES = Path(__file__).parents[2] / ".flightline" / "fuzz"
MAX_SEED_BYTES = 400_000
SLOW_S_PER_MB = 0.1
SLOW_FLOOR_S = 0.5


def seeds(parser: Parser) -> list[tuple[str, bytes]]:
    """(file name as the parser knows it, content) of every fixture that parses."""
    return list(_seeds(parser))


def _seeds(parser: Parser) -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.rglob("*")):
        if not path.is_file() or path.name == "README.md" or path.stat().st_size > MAX_SEED_BYTES:
            continue
        data = path.read_bytes()
        for file in parser.files:
            try:
                parser.parse({file: data})
            except ParseError:
                continue
            yield file, data
            break


def fuzz(parser: Parser, cases: int, seed: int) -> tuple[int, float]:
    """Run the cases; returns how many found something, and the slowest case in seconds."""
    found, slowest = 0, 0.0
    grown = seeds(parser)
    if not grown:
        print(f"{parser.name}: no seed, fuzzing from nothing")
        grown = [(parser.files[0], b"")]
    rng = random.Random(f"{parser.name}/{seed}")
    for case in range(cases):
        file, data = rng.choice(grown)
        data = mutate(data, rng)
        started = time.perf_counter()
        try:
            facts = parser.parse({file: data})
            problem = "" if isinstance(facts, dict) else f"returned {type(facts).__name__}"
        except ParseError:
            problem = ""
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        took = time.perf_counter() - started
        slowest = max(slowest, took)
        if took > max(SLOW_FLOOR_S, SLOW_S_PER_MB * len(data) / 1e6):
            problem = problem or f"took {took:.2f} s for {len(data)} bytes"
        if problem:
            found += 1
            CRASHES.mkdir(parents=True, exist_ok=True)
            (CRASHES / f"{parser.name}-{seed}-{case}").write_bytes(data)
            print(f"{parser.name}: case {case}: {problem}", file=sys.stderr)
    return found, slowest


def main() -> int:
    """Fuzz the named parsers, or all."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("parsers", nargs="*", metavar="PARSER")
    arguments.add_argument("--cases", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    total = 0
    for name in given.parsers or PARSERS:
        started = time.perf_counter()
        found, slowest = fuzz(PARSERS[name], given.cases, given.seed)
        took = time.perf_counter() - started
        print(f"{name}: {given.cases} cases, seed {given.seed}, {found} found, slowest {slowest:.3f} s, {took:.0f} s")
        total += found
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
