"""persistence_mode: on, off, expected off, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def test_on():
    assert status(judge_facts("persistence_mode", gpus.node())) is Status.PASS
    assert status(judge_facts("persistence_mode", gpus.node(), "none")) is Status.PASS


@pytest.mark.parametrize(("expected", "wanted"), [(None, Status.WARN), ({"persistence_mode": "Enabled"}, Status.FAIL)])
def test_off_warns_and_fails_where_the_site_expects_it(expected, wanted):
    facts = gpus.put(gpus.node(), 0, "persistence_mode", "Disabled")
    finding = only(judge_facts("persistence_mode", facts, expected=expected), wanted)
    assert (finding.device["index"], finding.remedy) == (0, Remedy.FIX_CONFIG)


def test_site_may_expect_it_off():
    facts = gpus.put_all(gpus.node(), "persistence_mode", "Disabled")
    assert status(judge_facts("persistence_mode", facts, expected={"persistence_mode": "Disabled"})) is Status.PASS


@pytest.mark.parametrize("value", [None, "[Unknown Error]", "GPU is lost"])
def test_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 3, "persistence_mode", value)
    assert only(judge_facts("persistence_mode", facts), Status.UNKNOWN).device["index"] == 3
    assert (
        status(judge_facts("persistence_mode", gpus.put_all(gpus.node(), "persistence_mode", None))) is Status.UNKNOWN
    )
