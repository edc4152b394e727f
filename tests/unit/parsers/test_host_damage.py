"""Damaged outputs of host tools: facts or ParseError, nothing else, and never slow."""

import contextlib
import json
import random
import time

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.harness import FIXTURES

FOLDERS = {
    "df": "df/*.txt",
    "cpuinfo": "lscpu/*.[jt]*",
    "numactl": "numactl/*.txt",
    "lsblk": "lsblk/*.json",
    "chrony": "chrony/*.[tc]*",
    "sysctl": "sysctl/*.txt",
    "lspci": "lspci/*.txt",
    "fio": "fio/*.json",
    "services": "systemctl/*.[jt]*",
    "imds": "imds/*.json",
    "versions": "versions/*.json",
    "loadavg": "proc/*loadavg.txt",
    "uptime": "proc/*uptime.txt",
    "meminfo": "proc/*meminfo.txt",
    "limits": "proc/*limit*.txt",
    "mounts": "proc/*mount*",
    "modules": "proc/*mod*.txt",
}
SCRAPS = (b"\n", b" ", b"9" * 400, b"1e999", b"NaN", b"null", b"{", b"[", b'"', b"%", b":", b"\xff\xfe", b"\x00", b"/")
ROUNDS = 25


def damaged(data: bytes, rng: random.Random) -> bytes:
    broken = bytearray(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(broken) + 1)
        if rng.random() < 0.5:
            broken[at : at + rng.randrange(8)] = rng.choice(SCRAPS)
        elif at < len(broken):
            broken[at] ^= 1 << rng.randrange(8)
    return bytes(broken)


@pytest.mark.parametrize("parser", FOLDERS)
def test_damage(parser):
    rng = random.Random(20261121)
    paths = sorted(FIXTURES.glob(FOLDERS[parser]))
    assert paths
    read = 0
    for path in paths:
        whole = path.read_bytes()
        for _ in range(ROUNDS):
            try:
                facts = PARSERS[parser].parse({PARSERS[parser].files[0]: damaged(whole, rng)})
            except ParseError:
                continue
            json.dumps(facts, allow_nan=False)
            read += 1
    assert read  # the damage must leave some outputs readable, or nothing was tried


@pytest.mark.parametrize(
    "data",
    [b"a" * 3_000_000, b"9" * 3_000_000, b"{" * 200_000, b"x\n" * 90_000, b"a: 1 kB\n" * 90_000, b"/dev/a\n" * 90_000],
    ids=["letters", "digits", "braces", "lines", "pairs", "names"],
)
def test_no_input_is_slow(data):
    for parser in FOLDERS:
        begun = time.process_time()
        with contextlib.suppress(ParseError):
            PARSERS[parser].parse({PARSERS[parser].files[0]: data})
        assert time.process_time() - begun < 3, parser
