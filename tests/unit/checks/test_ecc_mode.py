"""ecc_mode: on, off, pending, boards where it is optional."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, status

from . import gpus


def judge(current, pending, instance_type="p5.48xlarge", **rest):
    facts = gpus.put_all(gpus.put_all(gpus.node(), "ecc_mode", current), "ecc_mode_pending", pending)
    return judge_facts("ecc_mode", facts, instance_type, **rest)


@pytest.mark.parametrize(
    ("current", "pending", "wanted", "remedy"),
    [
        ("Enabled", "Enabled", Status.PASS, Remedy.NONE),
        ("Disabled", "Disabled", Status.FAIL, Remedy.FIX_CONFIG),
        ("Disabled", "Enabled", Status.FAIL, Remedy.RESET_GPU),
        ("Enabled", "Disabled", Status.WARN, Remedy.FIX_CONFIG),
        ("Enabled", "ERR!", Status.UNKNOWN, Remedy.INVESTIGATE),
        ("[Unknown Error]", "Enabled", Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_current_and_pending(current, pending, wanted, remedy):
    findings = judge(current, pending)
    assert {finding.status for finding in findings} == {wanted}
    assert findings[0].remedy is remedy


def test_site_may_expect_it_off():
    assert status(judge("Disabled", "Disabled", expected={"ecc_mode": "Disabled"})) is Status.PASS
    assert status(judge("Enabled", "Enabled", expected={"ecc_mode": "Disabled"})) is Status.FAIL


def test_rtx_boards_warn_unless_expected():
    facts = gpus.put_all(gpus.node(), "name", "NVIDIA RTX PRO 6000 Blackwell Server Edition")
    facts = gpus.put_all(gpus.put_all(facts, "ecc_mode", "Disabled"), "ecc_mode_pending", "Disabled")
    assert status(judge_facts("ecc_mode", facts, "g7e.48xlarge")) is Status.WARN
    assert status(judge_facts("ecc_mode", facts, "g7e.48xlarge", expected={"ecc_mode": "Enabled"})) is Status.FAIL


def test_not_available():
    assert status(judge(None, None)) is Status.UNKNOWN
    assert status(judge(None, None, "none")) is Status.SKIP
    assert status(judge(None, None, "g6f.large")) is Status.SKIP
