"""pcie_gen: reachable generation, idle downshift, load, the site's expectation."""

from functools import partial

from . import gpus
from .table import FAIL, PASS, REBOOT, SKIP, UNKNOWN, WARN, judging, row, table

judge = partial(judging, "pcie_gen")

test_pcie_gen = table(
    row("idle downshift is no fault", judge(gpus.node()), PASS, says="5"),
    row("lower than its twins fails", judge(gpus.one(4, "pcie.gen_max", 4)), FAIL, index=4, measured=4, expected=5,
        remedy=REBOOT),
    row("expected generation", judge(gpus.node(), expected={"pcie_gen": 5}), PASS),
    row("expected generation", judge(gpus.node(gpus.T4), "none", expected={"pcie_gen": 4}), FAIL),
    *(each for facts in [gpus.one(4, "power.draw_w", 690.0)] for each in (
        row("low under load warns", judge(facts), WARN, index=4, measured=1, expected=5),
        row("low under load warns", judge(gpus.put(facts, 4, "pcie.gen", 5)), PASS),
    )),
    *(row("unreadable is unknown", judge(gpus.one(4, "pcie.gen_max", value)), UNKNOWN, index=4)
        for value in ["ERR!", None]),
    row("not printed matters only where the site expects a value", judge(gpus.silent("pcie")), SKIP),
    row("not printed matters only where the site expects a value", judge(gpus.silent("pcie"), expected={"pcie_gen": 8}),
        UNKNOWN),
)  # fmt: skip
