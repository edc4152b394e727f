"""pcie_replays: few, many, rollovers, unreadable."""

from . import gpus
from .table import PASS, UNKNOWN, WARN, judging, row, table

test_pcie_replays = table(
    *(row("count", judging("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replays", count)), wanted, index=6)
        for count, wanted in [(321, WARN), (100000, WARN)]),
    *(row("count", judging("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replays", count)), wanted)
        for count, wanted in [(0, PASS), (320, PASS)]),
    *(each
        for gen, most in [(None, 80), (3, 80), (4, 160), (6, 640)]
        for facts in [gpus.put_all(gpus.node(), "pcie.gen_max", gen)]
        for each in (
        row("the limit follows the generation", judging("pcie_replays", gpus.put(facts, 6, "pcie.replays", most)),
            PASS),
        row("the limit follows the generation", judging("pcie_replays",
            gpus.put(facts, 6, "pcie.replays", most + 1)), WARN),
    )),
    *(each for facts in [gpus.put_all(gpus.node(), "pcie.replays", 500)] for each in (
        row("a count that all GPUs share is no fault unless it is very high", judging("pcie_replays", facts), PASS),
        row("a count that all GPUs share is no fault unless it is very high",
            judging("pcie_replays", gpus.put(facts, 6, "pcie.replays", 5001)), WARN, expected=5000),
        row("a count that all GPUs share is no fault unless it is very high",
            judging("pcie_replays", gpus.put_all(gpus.node(), "pcie.replays", 250000)), WARN,
            statuses=(WARN,) * 8),
    )),
    row("rollovers warn", judging("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replay_rollovers", 1)), WARN),
    *(row("unreadable is unknown", judging("pcie_replays", gpus.put(gpus.node(), 6, path, "[Unknown Error]")),
        UNKNOWN, index=6)
        for path in ["pcie.replays", "pcie.replay_rollovers"]),
)  # fmt: skip
