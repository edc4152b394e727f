"""The search for needles finds what a plain search finds, whatever the log's letters and where the chunks end."""

import random

import pytest

from flightline_node.read.parsers import kernel_scan
from flightline_node.read.parsers.kernel_events import CORES, NEEDLES


@pytest.fixture
def weighed(monkeypatch):
    """As a log that is large enough to have its letters weighed."""
    monkeypatch.setattr(kernel_scan, "SMALL_BYTES", 0)


def plain(data):
    found = []
    for number, needle in enumerate(NEEDLES):
        at = data.find(needle)
        while at >= 0:
            found.append((at, number))
            at = data.find(needle, at + 1)
    return sorted(found)


@pytest.mark.parametrize("letters", [b"abc \n", b"NVRM: XidBUGIOFerror#\n", bytes(range(256))])
@pytest.mark.parametrize("libc", [True, False])
@pytest.mark.parametrize("small_bytes", [0, 10_000])
def test_same_as_a_plain_search(monkeypatch, letters, libc, small_bytes):
    monkeypatch.setattr(kernel_scan, "SMALL_BYTES", small_bytes)
    monkeypatch.setattr(kernel_scan, "CHUNK_BYTES", 997)
    monkeypatch.setattr(kernel_scan, "THREADS_FROM_BYTES", 60_000)
    if not libc:
        monkeypatch.setattr(kernel_scan, "_libc_finds", lambda: (kernel_scan._plain, kernel_scan._plain))
    dice = random.Random(3)
    for size in (1, 500, 5000, 80_000):
        data = bytearray(dice.choices(letters, k=size))
        for _ in range(size // 60):
            needle, at = dice.choice(NEEDLES), dice.randrange(size)
            data[at : at + len(needle)] = needle
        assert list(kernel_scan.occurrences(bytes(data), NEEDLES, CORES)) == plain(bytes(data))


@pytest.mark.parametrize("at", [0, 1, 300_000, -1])
@pytest.mark.usefixtures("weighed")
def test_a_zero_byte_ends_no_search(at):
    """strstr stops at one; memmem takes its place in the chunk that has it."""
    data = bytearray(b"a line of varied EXTRMISBGUL letters\n" * 20_000)
    data[500_000:500_000] = b"NVRM: Xid BUG: I/O error"
    data[at] = 0
    assert list(kernel_scan.occurrences(bytes(data), NEEDLES, CORES)) == plain(bytes(data))


@pytest.mark.usefixtures("weighed")
def test_a_letter_denser_than_the_sample_says_is_still_found():
    data = b"quiet line\n" * 60_000 + b"XXXXXXXX" * 20_000 + b": SXid (" + b"quiet line\n" * 60_000
    assert list(kernel_scan.occurrences(data, NEEDLES, CORES)) == plain(data)


def test_line_at():
    data = b"one\ntwo three\nfour"
    assert kernel_scan.line_at(data, 8) == (4, b"two three")
    assert kernel_scan.line_at(data, 15) == (14, b"four")
    assert kernel_scan.line_at(b"x" * 10_000, 9000) == (-1, b"")
