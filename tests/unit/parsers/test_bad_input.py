"""Every parser on broken input: facts or ParseError, within a second for 10 MB and ten times the input's size in memory."""

import functools
import json
import random
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.fuzz.mutate import HOSTILE, mutate
from tests.fuzz.run import seeds, shrink

S_PER_MB, FLOOR_S = 0.1, 0.6
"""The floor is for what a busy machine adds; a parser that is quadratic takes minutes."""
MEMORY_FACTOR, FLOOR_BYTES = 10, 2 << 20
MANY = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def facts_or_parse_error(name, data):
    """Every file name of the parser; what comes back must be JSON, as the run store takes it."""
    for file in PARSERS[name].files[:2]:
        try:
            facts = PARSERS[name].parse({file: data})
        except ParseError as error:
            assert str(error).strip()
            continue
        json.dumps(facts, allow_nan=False)


@functools.cache
def small(name):
    """A cut-down fixture, the same on every run."""
    return shrink(PARSERS[name], max(seeds(PARSERS[name]), key=lambda seed: len(seed[1])), random.Random(name))[1]


@pytest.mark.parametrize("name", PARSERS)
def test_cut_off_at_every_byte(name):
    data = small(name)[:800]
    for end in range(len(data)):
        facts_or_parse_error(name, data[:end])


@pytest.mark.parametrize("name", PARSERS)
def test_any_bytes_and_any_text(name):
    @MANY
    @given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(str.encode)))
    def check(data):
        facts_or_parse_error(name, data)

    check()


@pytest.mark.parametrize("name", PARSERS)
def test_fixtures_mutated_and_with_pieces_of_each_other(name):
    whole = [data for _, data in seeds(PARSERS[name])][:6]

    @MANY
    @given(st.sampled_from(whole), st.sampled_from(whole), st.sampled_from(HOSTILE), st.integers(0, 10**6))
    def check(one, other, hostile, number):
        dice = random.Random(number)
        at, end = dice.randrange(len(one) + 1), dice.randrange(len(other) + 1)
        facts_or_parse_error(name, one[:at] + hostile + other[end:])
        facts_or_parse_error(name, mutate(one, dice))

    check()


def floods(seed, size=400_000):
    """So many bytes of what a broken tool, a full disk or an attacker can make of an output."""
    half = seed[: len(seed) // 2]
    yield "its own lines", (seed + b"\n") * (size // (len(seed) + 1) + 1)
    yield "one long line", seed + b"\n" + b"A" * size
    yield "one long value", half + b"x " * (size // 2) + seed[len(half) :]
    yield "digits", seed + b"\n" + b"9" * size
    yield "empty lines", seed + b"\n" * size
    yield "blanks", seed + b" \t" * (size // 2)
    yield "brackets", b"[" * size
    yield "objects", b'{"a":' * (size // 5)
    yield "escapes", seed + b"\x1b[31m" * (size // 5)


def seconds(name, data):
    """CPU time of one reading, as each of the parser's first two files takes its share."""
    started = time.process_time()
    facts_or_parse_error(name, data)
    return (time.process_time() - started) / len(PARSERS[name].files[:2])


@pytest.mark.parametrize("name", PARSERS)
def test_a_flood_is_not_slow(name):
    slow = []
    for what, data in floods(small(name)):
        limit = FLOOR_S + S_PER_MB * len(data) / 1e6
        # The machine's own speed varies; what is slow three times is slow.
        tries = (seconds(name, data) for _ in range(3))
        took = next((one for one in tries if one <= limit), None)
        if took is None:
            slow.append(f"{what}: over {limit:.2f} s")
    assert slow == []


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize("flood", ["its own lines", "one long value", "objects"])
def test_a_flood_does_not_fill_the_memory(name, flood):
    data = dict(floods(small(name), 150_000))[flood]  # tracing makes everything four times as slow
    tracemalloc.start()
    try:
        facts_or_parse_error(name, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < FLOOR_BYTES + MEMORY_FACTOR * len(data)


@pytest.mark.parametrize("name", PARSERS)
def test_a_line_of_20_megabytes(name):
    data = small(name) + b"\n" + b"A" * 20_000_000
    started = time.process_time()
    for file in PARSERS[name].files[:1]:
        try:
            assert isinstance(PARSERS[name].parse({file: data}), dict)
        except ParseError as error:
            assert len(str(error)) < 1000
    assert time.process_time() - started < 2
