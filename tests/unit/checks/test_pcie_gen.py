"""pcie_gen: reachable generation, idle downshift, load, the site's expectation."""

from . import gpus
from .table import FAIL, PASS, REBOOT, SKIP, UNKNOWN, WARN, judging, row, table

test_pcie_gen = table(
    row("idle downshift is no fault", judging("pcie_gen", gpus.node()), PASS, says="5"),
    row("lower than its twins fails", judging("pcie_gen", gpus.put(gpus.node(), 4, "pcie.gen_max", 4)), FAIL,
        index=4, measured=4, expected=5, remedy=REBOOT),
    row("expected generation", judging("pcie_gen", gpus.node(), expected={"pcie_gen": 5}), PASS),
    row("expected generation", judging("pcie_gen", gpus.node(gpus.T4), "none", expected={"pcie_gen": 4}), FAIL),
    *(each for facts in [gpus.put(gpus.node(), 4, "power.draw_w", 690.0)] for each in (
        row("low under load warns", judging("pcie_gen", facts), WARN, index=4, measured=1, expected=5),
        row("low under load warns", judging("pcie_gen", gpus.put(facts, 4, "pcie.gen", 5)), PASS),
    )),
    *(row("unreadable is unknown", judging("pcie_gen", gpus.put(gpus.node(), 4, "pcie.gen_max", value)), UNKNOWN,
        index=4)
        for value in ["ERR!", None]),
    row("not printed matters only where the site expects a value",
        judging("pcie_gen", gpus.drop_all(gpus.node(), "pcie")), SKIP),
    row("not printed matters only where the site expects a value",
        judging("pcie_gen", gpus.drop_all(gpus.node(), "pcie"), expected={"pcie_gen": 8}), UNKNOWN),
)  # fmt: skip
