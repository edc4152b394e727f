"""mig_mode: off, on, expected on, pending, products without it."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, status

from . import gpus


def judge(mode, pending, instance_type="p5.48xlarge", count=8, **rest):
    facts = gpus.node(count=count)
    gpus.put_all(gpus.put_all(facts, "mig_mode", mode), "mig_mode_pending", pending)
    return judge_facts("mig_mode", facts, instance_type, **rest)


@pytest.mark.parametrize(
    ("mode", "pending", "wanted", "remedy"),
    [
        ("Disabled", "Disabled", Status.PASS, Remedy.NONE),
        ("Enabled", "Enabled", Status.FAIL, Remedy.FIX_CONFIG),
        ("Enabled", "Disabled", Status.FAIL, Remedy.RESET_GPU),
        ("Disabled", "Enabled", Status.FAIL, Remedy.FIX_CONFIG),
        ("Disabled", "ERR!", Status.UNKNOWN, Remedy.INVESTIGATE),
        ("ERR!", "Disabled", Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_modes(mode, pending, wanted, remedy):
    findings = judge(mode, pending)
    assert {finding.status for finding in findings} == {wanted}
    assert findings[0].remedy is remedy


def test_expected_on():
    assert status(judge("Enabled", "Enabled", expected={"mig_mode": "Enabled"})) is Status.PASS
    assert status(judge("Disabled", "Disabled", expected={"mig_mode": "Enabled"})) is Status.FAIL
    assert status(judge(None, None, "g5.48xlarge", expected={"mig_mode": "Enabled"})) is Status.UNKNOWN


def test_on_where_nothing_is_expected_warns():
    assert status(judge("Enabled", "Enabled", "none")) is Status.WARN
    assert status(judge("Enabled", "Enabled", "p5.4xlarge", 1)) is Status.WARN


def test_products_without():
    assert status(judge(None, None, "g5.48xlarge")) is Status.SKIP


def test_not_printed_matters_only_where_it_is_wanted():
    facts = gpus.drop_all(gpus.node(), "mig_mode")
    assert status(judge_facts("mig_mode", facts)) is Status.SKIP
    assert status(judge_facts("mig_mode", facts, expected={"mig_mode": "Enabled"})) is Status.UNKNOWN
