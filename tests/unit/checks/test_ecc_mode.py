"""ecc_mode: on, off, pending, boards where it is optional."""

import pytest

from tests.harness import status

from . import gpus
from .table import FAIL, FIX_CONFIG, INVESTIGATE, NONE, PASS, RESET_GPU, SKIP, UNKNOWN, WARN, judging, row, table


def judge(current, pending, instance_type="p5.48xlarge", **rest):
    facts = gpus.put_all(gpus.every("ecc_mode", current), "ecc_mode_pending", pending)
    return judging("ecc_mode", facts, instance_type, **rest)


test_ecc_mode = table(
    row("site may expect it off", judge("Disabled", "Disabled", expected={"ecc_mode": "Disabled"}), PASS),
    row("site may expect it off", judge("Enabled", "Enabled", expected={"ecc_mode": "Disabled"}), FAIL),
    row("not available", judge(None, None), UNKNOWN),
    row("not available", [judge(None, None, "none"), judge(None, None, "g6f.large")], SKIP),
)  # fmt: skip


@pytest.mark.parametrize(
    ("current", "pending", "wanted", "remedy"),
    [
        ("Enabled", "Enabled", PASS, NONE),
        ("Disabled", "Disabled", FAIL, FIX_CONFIG),
        ("Disabled", "Enabled", FAIL, RESET_GPU),
        ("Enabled", "Disabled", WARN, FIX_CONFIG),
        ("Enabled", "ERR!", UNKNOWN, INVESTIGATE),
        ("[Unknown Error]", "Enabled", UNKNOWN, INVESTIGATE),
    ],
)
def test_current_and_pending(current, pending, wanted, remedy):
    findings = judge(current, pending)
    assert {finding.status for finding in findings} == {wanted}
    assert findings[0].remedy is remedy


def test_rtx_boards_warn_unless_expected():
    facts = gpus.every("name", "NVIDIA RTX PRO 6000 Blackwell Server Edition")
    facts = gpus.put_all(gpus.put_all(facts, "ecc_mode", "Disabled"), "ecc_mode_pending", "Disabled")
    assert status(judging("ecc_mode", facts, "g7e.48xlarge")) is WARN
    assert status(judging("ecc_mode", facts, "g7e.48xlarge", expected={"ecc_mode": "Enabled"})) is FAIL
