"""Mutations of tool outputs: what truncation, broken disks, wrong locales and hostile names do to text."""

import random
from collections.abc import Callable

HOSTILE = (
    b"\x00",
    b"\x1b[31mred\x1b[0m",
    b"<script>alert(1)</script>",
    b"&lol9;",
    b'<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d SYSTEM "file:///etc/passwd">]>',
    b"\xff\xfe",
    b"\xf0\x9f\x92\xa9",
    b"9" * 400,
    b"-1",
    b"1e999",
    b"NaN",
    b"[N/A]",
    b"ERR!",
    b"{" * 2000,
    b"[" * 2000,
    b"\r\n",
    b"\t" * 50,
    b"A" * 5000,
)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _cut_start(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def _flip(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(HOSTILE) + data[at:]


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def _drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _repeat_line(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    at = rng.randrange(len(lines))
    return b"\n".join(lines[:at] + [lines[at]] * rng.choice((2, 3, 50)) + lines[at:])


def _swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _number(data: bytes, rng: random.Random) -> bytes:
    digits = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        return _flip(data, rng)
    at = rng.choice(digits)
    return data[:at] + rng.choice((b"", b"x", b"-", b".", b"99999999999999999999", b"N/A")) + data[at + 1 :]


def _encode(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "latin-1", "utf-7")), "replace")


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _cut,
    _cut_start,
    _flip,
    _flip,
    _insert,
    _insert,
    _drop_line,
    _repeat_line,
    _swap_lines,
    _number,
    _number,
    _encode,
)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four random mutations of a seed."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = rng.choice(MUTATIONS)(data, rng)
    return data
