"""pcie_width: the family's width, the site's, the other GPUs, a type not known."""

from . import gpus
from .table import FAIL, PASS, REBOOT, SKIP, UNKNOWN, WARN, judging, row, table


def judge(instance_type, widths, widest=16, **rest):
    facts = gpus.node(count=len(widths))
    gpus.put_all(facts, "pcie.width_max", widest)
    for index, width in enumerate(widths):
        gpus.put(facts, index, "pcie.width", width)
    return judging("pcie_width", facts, instance_type, **rest)


test_pcie_width = table(
    *(each for instance_type in ["p3dn.24xlarge", "p4d.24xlarge", "p5.48xlarge", "p6-b200.48xlarge"] for each in (
        row("training types have all lanes", judge(instance_type, [16] * 8), PASS),
        row("training types have all lanes", judge(instance_type, [16] * 7 + [8]), FAIL, index=7, measured=8,
            expected=16, remedy=REBOOT),
        row("training types have all lanes", judge(instance_type, [8] * 8), FAIL),
    )),
    *(each
        for instance_type in ["g5.48xlarge", "g4dn.metal", "g6.48xlarge", "g6e.2xlarge", "gr6.4xlarge"]
        for each in (
        row("eight of sixteen is normal here", judge(instance_type, [8] * 8), PASS),
        row("eight of sixteen is normal here", judge(instance_type, [8] * 7 + [4]), FAIL),
    )),
    *(each for instance_type in ["g7e.48xlarge", "g5g.metal", "none"] for each in (
        row("where no good node is known it warns", judge(instance_type, [8] * 8), WARN, every=True),
        row("where no good node is known it warns", judge(instance_type, [16] * 8), PASS),
    )),
    row("narrower than its twins fails anywhere", judge("none", [16, 16, 8, 16]), FAIL, index=2, expected=16),
    row("expected by the site",
        [judge("none", [8] * 4, expected={"pcie_width": 8}),
        judge("p5.48xlarge", [8] * 8, expected={"pcie_width": 8})], PASS),
    row("expected by the site", judge("g5.48xlarge", [8] * 8, expected={"pcie_width": 16}), FAIL),
    *(row("unreadable is unknown", judge("p5.48xlarge", [16, 16, value, 16]), UNKNOWN, index=2)
        for value in ["ERR!", None]),
    row("superchip has no PCIe of its own", judge("p6e-gb200.36xlarge", [None] * 4), SKIP),
    row("superchip has no PCIe of its own", judge("p5.48xlarge", [None] * 8), UNKNOWN),
    row("not printed matters only where the site expects a value", judging("pcie_width", gpus.silent("pcie")), SKIP),
    row("not printed matters only where the site expects a value",
        judging("pcie_width", gpus.silent("pcie"), expected={"pcie_width": 8}), UNKNOWN),
)  # fmt: skip
