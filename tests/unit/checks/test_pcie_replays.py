"""pcie_replays: few, many, rollovers, unreadable."""

from functools import partial

from . import gpus
from .table import PASS, UNKNOWN, WARN, judging, row, table

judge = partial(judging, "pcie_replays")

test_pcie_replays = table(
    *(row("count", judge(gpus.one(6, "pcie.replays", count)), wanted, index=6)
        for count, wanted in [(321, WARN), (100000, WARN)]),
    *(row("count", judge(gpus.one(6, "pcie.replays", count)), wanted) for count, wanted in [(0, PASS), (320, PASS)]),
    *(each
        for gen, most in [(None, 80), (3, 80), (4, 160), (6, 640)]
        for facts in [gpus.every("pcie.gen_max", gen)]
        for each in (
        row("the limit follows the generation", judge(gpus.put(facts, 6, "pcie.replays", most)), PASS),
        row("the limit follows the generation", judge(gpus.put(facts, 6, "pcie.replays", most + 1)), WARN),
    )),
    *(each for facts in [gpus.every("pcie.replays", 500)] for each in (
        row("a count that all GPUs share is no fault unless it is very high", judge(facts), PASS),
        row("a count that all GPUs share is no fault unless it is very high",
            judge(gpus.put(facts, 6, "pcie.replays", 5001)), WARN, expected=5000),
        row("a count that all GPUs share is no fault unless it is very high", judge(gpus.every("pcie.replays", 250000)),
            WARN, statuses=(WARN,) * 8),
    )),
    row("rollovers warn", judge(gpus.one(6, "pcie.replay_rollovers", 1)), WARN),
    *(row("unreadable is unknown", judge(gpus.one(6, path, "[Unknown Error]")), UNKNOWN, index=6)
        for path in ["pcie.replays", "pcie.replay_rollovers"]),
)  # fmt: skip
