"""power_limit: at, below and far below the default, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(limit):
    return judge_facts("power_limit", gpus.put(gpus.node(), 5, "power.limit_w", limit))


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [(700.0, Status.PASS), (699.0, Status.PASS), (698.9, Status.WARN), (630.0, Status.WARN), (629.9, Status.FAIL)],
)
def test_limit_against_the_default(limit, wanted):
    findings = judge(limit)
    assert status(findings) is wanted
    if wanted is Status.FAIL:
        finding = only(findings, Status.FAIL)
        assert (finding.device["index"], finding.expected, finding.remedy) == (5, 700.0, Remedy.FIX_CONFIG)


def test_site_may_run_lower():
    facts = gpus.put_all(gpus.node(), "power.limit_w", 500.0)
    assert status(judge_facts("power_limit", facts, thresholds={"power_limit.min_percent": 70})) is Status.WARN


@pytest.mark.parametrize("path", ["power.limit_w", "power.default_limit_w", "power.draw_w"])
def test_unreadable_is_unknown(path):
    findings = judge_facts("power_limit", gpus.put(gpus.node(), 5, path, "ERR!"))
    assert only(findings, Status.UNKNOWN).device["index"] == 5


def test_no_default_to_compare_with_never_passes():
    assert status(judge_facts("power_limit", gpus.put_all(gpus.node(), "power.default_limit_w", None))) is Status.WARN


def test_not_available():
    facts = gpus.put_all(gpus.node(), "power.limit_w", None)
    assert status(judge_facts("power_limit", facts)) is Status.UNKNOWN
    assert status(judge_facts("power_limit", facts, "none")) is Status.SKIP
