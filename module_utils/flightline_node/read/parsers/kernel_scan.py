"""Find the few interesting lines in a large log without looking at every line.

Three ways, chosen for each needle by the letters of this very log; the answer is always that of a
plain search for every needle, only the time differs:
- a needle with a letter, or two that stand together, that the log hardly uses: one search for them (memchr, strstr),
  shared by every needle that has them;
- else libc's strstr or, where the log has a zero byte, memmem: six and three times as fast as bytes.find here
  (glibc 2.36, AVX-512; strstr compares 16 to 64 places at once, and looks closer where a text's first two letters are:
  so a search begins at a needle's rarest two), and they let other threads run meanwhile;
- bytes.find where libc has neither.
Needles with a common core (`rror` of "I/O error", "[Hardware Error]", ...) are found by one search for it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from functools import lru_cache
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..bundle import Data

CHUNK_BYTES = 1 << 19
"""Fits a core's cache: the later passes over a chunk do not go to memory."""

TASK_CHUNKS = 16
THREADS_FROM_BYTES = 32 << 20
MAX_THREADS = 4
"""A preflight may run beside a job: no more than a few of the node's many cores."""

SAMPLES, SAMPLE_BYTES = 64, 2048
RARE = 5e-5
"""Hits per byte that cost as much as one more pass: 0.4 us each, over 0.02 ns a byte."""

LINE_BYTES = 2048
LOOK_BACK_BYTES = 1024
"""A kernel line is under 1 KiB (LOG_LINE_MAX) and names its event early; what is further off is not looked at."""

MANY = 16
"""Hits in one chunk from which on the next is near, and bytes.find has it before libc is called."""

SMALL_BYTES = 8 << 20
"""Below this, weighing the letters takes longer than plain searches."""

Find = Callable[[bytes, int], int]
"""Of a needle from a place on in one chunk: its place, or -1."""
Finder = Callable[[bytes], Find]
Hits = List[Tuple[int, int]]


class _Member(NamedTuple):
    """A needle by its number, and where in it the letter or core stands by which it is found."""

    number: int
    needle: bytes
    at: int


class _Rare(NamedTuple):
    """The needles found by a rare text, by it and the byte after it: most hits are none. `last`: it ends the needle."""

    members: List[_Member]
    by_next: Dict[bytes, List[_Member]]
    last: List[_Member]


class _Plan(NamedTuple):
    by_rare: Dict[bytes, _Rare]
    by_core: Dict[bytes, List[_Member]]
    find: Finder
    find_text: Finder
    """For a chunk without a zero byte."""


def _plain(chunk: bytes) -> Find:
    return chunk.find


@lru_cache(maxsize=1)
def _libc_finds() -> Tuple[Finder, Finder]:
    """For a chunk of any bytes, for one without a zero byte."""
    try:
        libc = ctypes.CDLL(None)
        memmem, strstr = libc.memmem, libc.strstr
    except (AttributeError, OSError):  # no libc by that name, or one without memmem
        return _plain, _plain
    memmem.restype = strstr.restype = ctypes.c_void_p
    memmem.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    strstr.argtypes = (ctypes.c_void_p, ctypes.c_char_p)

    def any_bytes(chunk: bytes) -> Find:
        base, size = ctypes.cast(ctypes.c_char_p(chunk), ctypes.c_void_p).value or 0, len(chunk)

        def find(needle: bytes, start: int) -> int:
            hit = memmem(base + start, size - start, needle, len(needle))
            return hit - base if hit else -1

        return find

    def text(chunk: bytes) -> Find:
        base = ctypes.cast(ctypes.c_char_p(chunk), ctypes.c_void_p).value or 0

        def find(needle: bytes, start: int) -> int:
            # Python ends every bytes object with a zero byte of its own, where strstr stops.
            hit = strstr(base + start, needle)
            return hit - base if hit else -1

        return find

    return any_bytes, text


def _sample(data: Data) -> bytes:
    step = max(SAMPLE_BYTES, len(data) // SAMPLES)
    return b"".join(bytes(data[start : start + SAMPLE_BYTES]) for start in range(0, len(data), step))


def _plan(data: Data, needles: Sequence[bytes], cores: Sequence[bytes]) -> _Plan:
    if len(data) < SMALL_BYTES:
        return _Plan({}, _cores(tuple(needles), tuple(cores)), *_libc_finds())
    sample, by_rare, by_core = _sample(data), {}, {}  # type: bytes, Dict[bytes, _Rare], Dict[bytes, List[_Member]]
    shares, left = _shares(sample), (1 << len(needles)) - 1
    # What a text costs, in passes: one letter is found in half the time of two; then its hits, most of which are none.
    costs = {text: len(text) / 2 + shares(text) / RARE for text in _texts(tuple(needles))}
    texts = {text: found for text, found in _texts(tuple(needles)).items() if costs[text] < bin(found).count("1")}
    while texts:
        text = max(texts, key=lambda one: bin(texts[one] & left).count("1") - costs[one])
        if bin(texts[text] & left).count("1") <= costs[text]:
            break
        by_rare[text] = _rare(text, [(n, needles[n]) for n in range(len(needles)) if texts[text] & left & 1 << n])
        left &= ~texts[text]
    for index, needle in enumerate(needles):
        if left >> index & 1:
            core = _core(needle, cores)
            starts = sorted(range(len(core) - 1), key=lambda place: shares(core[place : place + 2]))
            at = next((place for place in starts if sample.count(core[place:]) <= RARE * len(sample)), 0)
            by_core.setdefault(core[at:], []).append(_Member(index, needle, needle.index(core) + at))
    return _Plan(by_rare, by_core, *_libc_finds())


def _shares(sample: bytes) -> Callable[[bytes], float]:
    """Hits per byte of a letter, or of two that stand together."""
    pairs = Counter(memoryview(sample[: len(sample) // 2 * 2]).cast("H"))
    letters: Dict[bytes, int] = {}

    def share(text: bytes) -> float:
        if len(text) == 2:
            return 2 * pairs[int.from_bytes(text, sys.byteorder)] / max(len(sample), 1)
        if text not in letters:
            letters[text] = sample.count(text)
        return letters[text] / max(len(sample), 1)

    return share


@lru_cache(maxsize=2)
def _texts(needles: Tuple[bytes, ...]) -> Dict[bytes, int]:
    """Every letter and every two letters of the needles, with the needles that have them, as bits."""
    found: Dict[bytes, int] = {}
    for index, needle in enumerate(needles):
        for text in {needle[at : at + size] for size in (1, 2) for at in range(len(needle) + 1 - size)}:
            found[text] = found.get(text, 0) | 1 << index
    return found


def _rare(text: bytes, needles: List[Tuple[int, bytes]]) -> _Rare:
    members = [_Member(index, needle, needle.index(text)) for index, needle in needles]
    size = len(text) + 1
    last = [one for one in members if one.at == len(one.needle) - len(text)]
    heads = {one.needle[one.at : one.at + size] for one in members}
    return _Rare(members, {h: [m for m in members if m.needle.startswith(h, m.at)] + last for h in heads}, last)


def _core(needle: bytes, cores: Sequence[bytes]) -> bytes:
    return next((core for core in cores if core in needle), needle)


@lru_cache(maxsize=2)
def _cores(needles: Tuple[bytes, ...], cores: Tuple[bytes, ...]) -> Dict[bytes, List[_Member]]:
    found: Dict[bytes, List[_Member]] = {}
    for index, needle in enumerate(needles):
        core = _core(needle, cores)
        found.setdefault(core, []).append(_Member(index, needle, needle.index(core)))
    return found


def _search(chunk: bytes, find: Find, core: bytes, members: List[_Member], hits: Hits, start: int = 0) -> None:
    at, found = find(core, start), 0
    while at >= 0:
        for index, needle, offset in members:
            if at >= offset and chunk.startswith(needle, at - offset):
                hits.append((at - offset, index))
        found += 1
        at = chunk.find(core, at + 1) if found > MANY else find(core, at + 1)


def _step(chunk: bytes, text: bytes, needles: _Rare, hits: Hits, find: Find) -> None:
    """As _search for a rare text; goes over to plain searches where it is denser than in the sample."""
    left, size = int(len(chunk) * RARE * 16) + 8, len(text) + 1
    step = chunk.find if size == 2 else find
    at = step(text, 0)
    while at >= 0:
        for index, needle, offset in needles.by_next.get(chunk[at : at + size], needles.last):
            if at >= offset and chunk.startswith(needle, at - offset):
                hits.append((at - offset, index))
        left -= 1
        if left < 0:
            for member in needles.members:
                _search(chunk, find, member.needle, [member._replace(at=0)], hits, max(0, at + 1 - member.at))
            return
        at = step(text, at + 1)


def _scan(data: Data, begin: int, end: int, plan: _Plan, overlap: int) -> Hits:
    """Hits that start in [begin, end), by position."""
    result: Hits = []
    for start in range(begin, end, CHUNK_BYTES):
        chunk = bytes(data[start : start + CHUNK_BYTES + overlap])
        find = (plan.find if b"\0" in chunk else plan.find_text)(chunk)
        hits: Hits = []
        for text, needles in plan.by_rare.items():
            _step(chunk, text, needles, hits, find)
        for core, members in plan.by_core.items():
            _search(chunk, find, core, members, hits)
        if hits:
            result += [(start + at, index) for at, index in sorted(hits) if at < min(CHUNK_BYTES, end - start)]
    return result


def occurrences(
    data: Data, needles: Sequence[bytes], cores: Sequence[bytes] = (), begin: int = 0, end: Optional[int] = None
) -> Iterator[Tuple[int, int]]:
    """(position, index of the needle) of every occurrence of every needle that starts in [begin, end), by position."""
    end = len(data) if end is None else end
    plan, overlap, size = _plan(data, needles, cores), max(map(len, needles)) - 1, CHUNK_BYTES * TASK_CHUNKS
    spans = [(start, min(start + size, end)) for start in range(begin, end, size)]
    threads = min(MAX_THREADS, os.cpu_count() or 1)
    if end - begin < THREADS_FROM_BYTES or threads == 1:
        for span in spans:
            yield from _scan(data, *span, plan, overlap)
        return
    from concurrent.futures import ThreadPoolExecutor  # a small log pays neither its time nor its memory

    with ThreadPoolExecutor(threads) as pool:
        for at in range(0, len(spans), threads * 4):  # a few at a time: a storm's hits must not pile up
            batch = [pool.submit(_scan, data, *span, plan, overlap) for span in spans[at : at + threads * 4]]
            for task in batch:
                yield from task.result()


def line_at(data: Data, position: int) -> Tuple[int, bytes]:
    """(start, bytes) of the line around a position; (-1, b"") when its start is too far away."""
    base = max(0, position - LOOK_BACK_BYTES)
    start = data.rfind(b"\n", base, position) + 1
    if start == 0 and base > 0:
        return -1, b""
    end = data.find(b"\n", position, position + LINE_BYTES)
    return start, bytes(data[start : end if end >= 0 else position + LINE_BYTES])
