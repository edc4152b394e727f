"""mig_mode: off, on, expected on, pending, products without it."""

import pytest

from flightline_node.model import Remedy

from . import gpus
from .table import FAIL, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(mode, pending, instance_type="p5.48xlarge", count=8, **rest):
    facts = gpus.node(count=count)
    gpus.put_all(gpus.put_all(facts, "mig_mode", mode), "mig_mode_pending", pending)
    return judging("mig_mode", facts, instance_type, **rest)


test_mig_mode = table(
    row("expected on", judge("Enabled", "Enabled", expected={"mig_mode": "Enabled"}), PASS),
    row("expected on", judge("Disabled", "Disabled", expected={"mig_mode": "Enabled"}), FAIL),
    row("expected on", judge(None, None, "g5.48xlarge", expected={"mig_mode": "Enabled"}), UNKNOWN),
    row("on where nothing is expected warns",
        [judge("Enabled", "Enabled", "none"), judge("Enabled", "Enabled", "p5.4xlarge", 1)], WARN),
    row("products without", judge(None, None, "g5.48xlarge"), SKIP),
    row("not printed matters only where it is wanted", judging("mig_mode", gpus.silent("mig_mode")), SKIP),
    row("not printed matters only where it is wanted",
        judging("mig_mode", gpus.silent("mig_mode"), expected={"mig_mode": "Enabled"}), UNKNOWN),
)  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "pending", "wanted", "remedy"),
    [
        ("Disabled", "Disabled", PASS, Remedy.NONE),
        ("Enabled", "Enabled", FAIL, Remedy.FIX_CONFIG),
        ("Enabled", "Disabled", FAIL, Remedy.RESET_GPU),
        ("Disabled", "Enabled", FAIL, Remedy.FIX_CONFIG),
        ("Disabled", "ERR!", UNKNOWN, Remedy.INVESTIGATE),
        ("ERR!", "Disabled", UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_modes(mode, pending, wanted, remedy):
    findings = judge(mode, pending)
    assert {finding.status for finding in findings} == {wanted}
    assert findings[0].remedy is remedy
