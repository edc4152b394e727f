"""Fuzz every parser: `python -m tests.fuzz.run --cases 10000 --seed 1 [--record] [PARSER ...]`.

A parser returns facts or raises ParseError; anything else, or a case slower than the limit,
is a finding: the case is written under .flightline/fuzz/ and the exit status is 1. Seeds are
the fixtures that the parser accepts as they are, and cut-down copies of them: most cases are
made of small seeds, because a small case runs many times faster and reaches the same code.
"""

import argparse
import functools
import gc
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS, Parser
from tests.fuzz.ledger import digest
from tests.fuzz.ledger import write as record
from tests.fuzz.mutate import mutate
from tests.harness import sample, samples

CRASHES = Path(__file__).parents[2] / ".flightline" / "fuzz"
SMALL_BYTES = 1500
SMALL_COPIES = 3
WHOLE_SHARE = 0.02
SLOW_S_PER_MB = 0.1
SLOW_FLOOR_S = 0.5

Seed = tuple[str, bytes]


class Found(NamedTuple):
    """What a batch of cases came to. slowest_s: the parser's own processor time for the slowest case."""

    problems: int
    slowest_s: float


@functools.cache
def seeds(parser: Parser) -> list[Seed]:
    """(file name as the parser knows it, content) of every fixture that parses."""
    return list(_seeds(parser))


def _reads(parser: Parser, file: str, data: bytes) -> bool:
    try:
        parser.parse({file: data})
    except ParseError:
        return False
    return True


def _seeds(parser: Parser) -> Iterator[Seed]:
    for data in map(sample, samples()):
        file = next((file for file in parser.files if _reads(parser, file, data)), None)
        if file:
            yield file, data


def shrink(parser: Parser, seed: Seed, rng: random.Random) -> Seed:
    """The seed less random lines, as long as it parses and is larger than SMALL_BYTES."""
    file, data = seed
    lines = data.split(b"\n")
    chunk = len(lines) // 2
    while chunk and sum(map(len, lines)) > SMALL_BYTES:
        for _ in range(12):
            at = rng.randrange(len(lines))
            left = lines[:at] + lines[at + chunk :]
            if left and _reads(parser, file, b"\n".join(left)):
                lines = left
            if sum(map(len, lines)) <= SMALL_BYTES:
                break
        chunk //= 2
    return file, b"\n".join(lines)


def _small(parser: Parser, whole: list[Seed], rng: random.Random) -> list[Seed]:
    return [shrink(parser, seed, rng) for seed in whole for _ in range(SMALL_COPIES if len(whole) < 50 else 1)]


def _problem(parser: Parser, file: str, data: bytes) -> tuple[str, float]:
    gc.disable()  # a collection of all that the process holds is not the parser's time
    started = time.process_time()
    try:
        facts = parser.parse({file: data})
        problem = "" if isinstance(facts, dict) else f"returned {type(facts).__name__}"
    except ParseError:
        problem = ""
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    took = time.process_time() - started
    gc.enable()
    if took > max(SLOW_FLOOR_S, SLOW_S_PER_MB * len(data) / 1e6):
        problem = problem or f"took {took:.2f} s for {len(data)} bytes"
    return problem, took


def fuzz(parser: Parser, cases: int, seed: int) -> Found:
    """Run the cases."""
    rng = random.Random(f"{parser.name}/{seed}")
    whole = seeds(parser)
    if not whole:
        print(f"{parser.name}: no seed, fuzzing from nothing")
        whole = [(parser.files[0], b"")]
    small = _small(parser, whole, rng)
    problems, slowest = 0, 0.0
    for case in range(cases):
        file, data = rng.choice(whole if rng.random() < WHOLE_SHARE else small)
        data = mutate(data, rng)
        problem, took = _problem(parser, file, data)
        slowest = max(slowest, took)
        if problem:
            problems += 1
            CRASHES.mkdir(parents=True, exist_ok=True)
            (CRASHES / f"{parser.name}-{seed}-{case}").write_bytes(data)
            print(f"{parser.name}: case {case}: {problem}", file=sys.stderr)
    return Found(problems, slowest)


def main() -> int:
    """Fuzz the named parsers, or all."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("parsers", nargs="*", metavar="PARSER")
    arguments.add_argument("--cases", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--record", action="store_true", help="add the counts to docs/fuzz.md")
    given = arguments.parse_args()
    total = 0
    code = {name: digest(name) for name in PARSERS}  # now: the files may change while this runs
    for name in given.parsers or PARSERS:
        started = time.perf_counter()
        found = fuzz(PARSERS[name], given.cases, given.seed)
        took = time.perf_counter() - started
        print(
            f"{name}: {given.cases} cases, seed {given.seed}, {found.problems} found, "
            f"slowest {found.slowest_s:.3f} s, {took:.0f} s",
            flush=True,
        )
        total += found.problems
        if given.record:
            record(name, code[name], given.seed, given.cases, found.problems, found.slowest_s)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
