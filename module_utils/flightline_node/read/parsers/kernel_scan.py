"""Find the few interesting lines in a large log without looking at every line.

Three ways, chosen for each needle by the letters of this very log; the answer is always that of a
plain search for every needle, only the time differs:
- a needle with a letter that the log hardly uses: memchr for that letter, shared by every needle that has it;
- else libc's strstr or, where the log has a zero byte, memmem: six and three times as fast as bytes.find here
  (glibc 2.36, AVX-512; strstr compares 16 to 64 places at once), and they let other threads run meanwhile;
- bytes.find where libc has neither.
Needles with a common core (`rror` of "I/O error", "[Hardware Error]", ...) are found by one search for it.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..bundle import Data

CHUNK_BYTES = 1 << 19
"""Fits a core's cache: the later passes over a chunk do not go to memory."""

TASK_CHUNKS = 16
THREADS_FROM_BYTES = 32 << 20
MAX_THREADS = 4
"""A preflight may run beside a job: no more than a few of the node's many cores."""

SAMPLES, SAMPLE_BYTES = 64, 4096
RARE = 5e-5
"""Hits per byte up to which stepping from hit to hit (0.4 us each) beats one more pass (0.2 ns a byte)."""

LINE_BYTES = 2048
LOOK_BACK_BYTES = 1024
"""A kernel line is under 1 KiB (LOG_LINE_MAX) and names its event early; what is further off is not looked at."""

MANY = 16
"""Hits in one chunk from which on the next is near, and bytes.find has it before libc is called."""

SMALL_BYTES = 64 << 10
"""Below this, weighing the letters takes longer than plain searches."""

Find = Callable[[bytes, bytes, int], int]
Hits = List[Tuple[int, int]]


class _Member(NamedTuple):
    """A needle by its number, and where in it the letter or core stands by which it is found."""

    number: int
    needle: bytes
    at: int


class _Letter(NamedTuple):
    """The needles found by one letter, by it and the byte after it: most hits are none. `last`: it ends the needle."""

    members: List[_Member]
    by_pair: Dict[bytes, List[_Member]]
    last: List[_Member]


class _Plan(NamedTuple):
    by_letter: Dict[bytes, _Letter]
    by_core: Dict[bytes, List[_Member]]
    find: Find
    find_text: Find
    """For a chunk without a zero byte."""


def _libc_finds() -> Optional[Tuple[Find, Find]]:
    """(any bytes, bytes without a zero), or None."""
    try:
        libc = ctypes.CDLL(None)
        memmem, strstr = libc.memmem, libc.strstr
    except (AttributeError, OSError):  # no libc by that name, or one without memmem
        return None
    memmem.restype = strstr.restype = ctypes.c_void_p
    memmem.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    strstr.argtypes = (ctypes.c_void_p, ctypes.c_char_p)

    def find(chunk: bytes, needle: bytes, start: int) -> int:
        base = ctypes.cast(ctypes.c_char_p(chunk), ctypes.c_void_p).value or 0
        hit = memmem(base + start, len(chunk) - start, needle, len(needle))
        return hit - base if hit else -1

    def find_text(chunk: bytes, needle: bytes, start: int) -> int:
        # Python ends every bytes object with a zero byte of its own, where strstr stops.
        base = ctypes.cast(ctypes.c_char_p(chunk), ctypes.c_void_p).value or 0
        hit = strstr(base + start, needle)
        return hit - base if hit else -1

    return find, find_text


def _sample(data: Data) -> bytes:
    step = max(SAMPLE_BYTES, len(data) // SAMPLES)
    return b"".join(bytes(data[start : start + SAMPLE_BYTES]) for start in range(0, len(data), step))


def _plan(data: Data, needles: Sequence[bytes], cores: Sequence[bytes]) -> _Plan:
    if len(data) < SMALL_BYTES:
        return _Plan({}, _cores(tuple(needles), tuple(cores)), bytes.find, bytes.find)
    sample = _sample(data)
    share = {letter: sample.count(letter) / max(len(sample), 1) for letter in set(_letters(b"".join(needles)))}
    by_letter: Dict[bytes, List[_Member]] = {}
    by_core: Dict[bytes, List[_Member]] = {}
    for index, needle in enumerate(needles):
        best = min(_letters(needle), key=lambda one: (share[one] > RARE, one not in by_letter, share[one]))
        if share[best] <= RARE:
            by_letter.setdefault(best, []).append(_Member(index, needle, needle.index(best)))
        else:
            core = _core(needle, cores)
            by_core.setdefault(core, []).append(_Member(index, needle, needle.index(core)))
    letters = {letter: _letter(members) for letter, members in by_letter.items()}
    return _Plan(letters, by_core, *(_libc_finds() or (bytes.find, bytes.find)))


def _letter(members: List[_Member]) -> _Letter:
    pairs = {member.needle[member.at : member.at + 2] for member in members}
    last = [member for member in members if member.at == len(member.needle) - 1]
    by_pair = {pair: [one for one in members if one.needle[one.at : one.at + 2] == pair] + last for pair in pairs}
    return _Letter(members, by_pair, last)


def _core(needle: bytes, cores: Sequence[bytes]) -> bytes:
    return next((core for core in cores if core in needle), needle)


@lru_cache(maxsize=2)
def _cores(needles: Tuple[bytes, ...], cores: Tuple[bytes, ...]) -> Dict[bytes, List[_Member]]:
    found: Dict[bytes, List[_Member]] = {}
    for index, needle in enumerate(needles):
        core = _core(needle, cores)
        found.setdefault(core, []).append(_Member(index, needle, needle.index(core)))
    return found


def _letters(text: bytes) -> List[bytes]:
    return [text[i : i + 1] for i in range(len(text))]


def _search(chunk: bytes, find: Find, core: bytes, members: List[_Member], hits: Hits, start: int = 0) -> None:
    at, found = find(chunk, core, start), 0
    while at >= 0:
        for index, needle, offset in members:
            if at >= offset and chunk.startswith(needle, at - offset):
                hits.append((at - offset, index))
        found += 1
        at = chunk.find(core, at + 1) if found > MANY else find(chunk, core, at + 1)


def _step(chunk: bytes, letter: bytes, needles: _Letter, hits: Hits, other: Find) -> None:
    """As _search for one letter; goes over to plain searches where the letter is denser than in the sample."""
    left = int(len(chunk) * RARE * 8) + 8
    at = chunk.find(letter)
    while at >= 0:
        for index, needle, offset in needles.by_pair.get(chunk[at : at + 2], needles.last):
            if at >= offset and chunk.startswith(needle, at - offset):
                hits.append((at - offset, index))
        left -= 1
        if left < 0:
            for member in needles.members:
                _search(chunk, other, member.needle, [member._replace(at=0)], hits, max(0, at + 1 - member.at))
            return
        at = chunk.find(letter, at + 1)


def _scan(data: Data, begin: int, end: int, plan: _Plan, overlap: int) -> Hits:
    """Hits that start in [begin, end), by position."""
    result: Hits = []
    for start in range(begin, end, CHUNK_BYTES):
        chunk = bytes(data[start : start + CHUNK_BYTES + overlap])
        find = plan.find if b"\0" in chunk else plan.find_text
        hits: Hits = []
        for letter, needles in plan.by_letter.items():
            _step(chunk, letter, needles, hits, find)
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
    start = bytes(data[base:position]).rfind(b"\n") + 1
    if start == 0 and base > 0:
        return -1, b""
    line = bytes(data[base + start : position + LINE_BYTES])
    end = line.find(b"\n", position - base - start)
    return base + start, line if end < 0 else line[:end]
