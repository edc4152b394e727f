"""Every check without its facts: unreadable is UNKNOWN, not collected blocks a preflight and is skipped offline."""

import pytest

from flightline_node.judge.checks import CHECKS
from flightline_node.model import Status
from tests.harness import BROKEN, judge_facts, status

WHERE: dict[str, dict] = {
    "imex": {"instance_type": "p6e-gb200.36xlarge"},
    "hugepages": {"expected": {"hugepages_2m": 1}},
    "sysctl": {"expected": {"sysctl": {"a": "1"}}},
    "s3": {"options": {"s3_endpoints": ["s3://weights/llama"]}},
}
"""Where those that not every node needs have something to judge."""


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_no_facts_are_no_pass(check):
    where = {"instance_type": "trn1.32xlarge"} if "neuron" in check.tags else WHERE.get(check.id, {})
    for name in (*check.needs, *check.needs_any):
        assert status(judge_facts(check.id, {name: BROKEN}, **where, required=False)) is Status.UNKNOWN
    assert status(judge_facts(check.id, {}, **where)) is Status.UNKNOWN
    assert status(judge_facts(check.id, {}, **where, required=False)) is Status.SKIP
