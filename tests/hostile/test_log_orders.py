"""Shuffled, reversed, concatenated, truncated and interleaved logs: never a go that the log in its order is not."""

import random
from datetime import datetime, timedelta

import pytest

from .test_carriers import answer, lines

START = datetime(2026, 11, 20, 8)
STAMPS = {
    "dmesg": lambda at, host: f"[{at * 60 + 5:12.6f}] ",
    "dmesg -T": lambda at, host: f"[{START + timedelta(minutes=at):%a %b %d %H:%M:%S %Y}] ",
    "syslog": lambda at, host: f"{START + timedelta(minutes=at):%b %d %H:%M:%S} {host} kernel: ",
    "syslog, uptime": lambda at, host: (
        f"{START + timedelta(minutes=at):%b %d %H:%M:%S} {host} kernel: [{at * 60 % 6000 + 5:12.6f}] "
    ),
    "journal": lambda at, host: f"{(START + timedelta(minutes=at)).isoformat()}+0000 {host} kernel: ",
}

UNTOLD = ("newest part first", "each newest first", "halves exchanged", "quarters exchanged")
"""Without a clock nothing tells these from two boots, of which the fault's was the earlier."""


def log(stamp, at, faults=(), host="gpu-01"):
    """A boot: the kernel's first words, chatter a minute apart, and the faults among it."""
    words = [
        "Linux version 6.8.0-1015-aws (buildd) #16-Ubuntu SMP",
        *(f"audit: type=1400 audit({n}.1:{n}): x" for n in range(20)),
    ]
    words[12:12] = faults
    return [STAMPS[stamp](at + place, host) + text for place, text in enumerate(words)]


def variants(stamp, fault, dice):
    """(name, lines) of one log, told in other orders. Its fault is of its last boot in each."""
    own, older = log(stamp, 100, [fault]), log(stamp, 0)
    shuffled = dice.sample(own, len(own))
    cut = dice.randrange(1, 12)
    yield "reversed", own[::-1]
    yield "shuffled", shuffled
    yield "tail -n shuffled", dice.sample(own[1:], len(own) - 1)
    yield "without its beginning", own[cut:]
    yield "without its end", own[: len(own) - cut + 4]
    yield "halves exchanged", own[12:] + own[:12]
    yield "quarters exchanged", own[16:] + own[8:16] + own[:8]
    yield "newest part first", own + older
    yield "oldest part first", older + own
    yield "each newest first", own[::-1] + older[::-1]
    if stamp not in ("dmesg", "dmesg -T"):
        other = log(stamp, 200, host="gpu-02")
        yield "another machine behind it", own + other
        yield "another machine before it", other + own
        mixed = [line for pair in zip(own, other) for line in pair] + own[len(other) :]
        yield "interleaved with another machine", mixed


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_order_of_its_lines_makes_a_sick_node_good(stamp, seed):
    dice = random.Random(f"{stamp}/{seed}")
    gone = []
    for fault in dice.sample(lines(), 4):
        assert answer("\n".join(log(stamp, 100, [fault])).encode()) == "FAIL"
        for name, told in variants(stamp, fault, dice):
            if stamp == "dmesg" and name in UNTOLD:
                continue
            if answer(("\n".join(told) + "\n").encode()) == "go":
                gone.append(f"{name}: {fault}")
    assert not gone


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_healthy_log_in_its_order_is_a_go(stamp):
    assert answer("\n".join(log(stamp, 100)).encode()) == "go"
    assert answer("\n".join(log(stamp, 100)[::-1]).encode()) == "go"
