"""neuron_memory: a device with less than the type's, one of another size, one that does not say."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from .neurons import TRN1, node

GIB = 1 << 30


def judge(facts, instance_type=TRN1, **more):
    return judge_facts("neuron_memory", facts, instance_type, **more)


def test_healthy():
    measures = {}
    assert "32768 MiB" in only(judge(node(), measures=measures), Status.PASS).message
    assert len(measures["neuron_memory"]["values"]) == 16


@pytest.mark.parametrize(
    ("size", "wanted", "remedy"),
    [
        (28 * GIB, Status.FAIL, Remedy.REPLACE),
        (31 * GIB, Status.PASS, Remedy.NONE),
        (96 * GIB, Status.FAIL, Remedy.FIX_CONFIG),
        (0, Status.FAIL, Remedy.REPLACE),
        (None, Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_one_device(size, wanted, remedy):
    facts = node()
    facts["neuron_ls"]["devices"][2]["memory_bytes"] = size
    finding = only(judge(facts), wanted)
    assert finding.remedy is remedy


def test_without_a_type_only_none_at_all_fails():
    facts = node()
    assert status(judge(facts, "none")) is Status.PASS
    facts["neuron_ls"]["devices"][2]["memory_bytes"] = 0
    assert status(judge(facts, "none")) is Status.FAIL


def test_no_device_no_pass():
    assert status(judge(node(neuron_ls={"devices": []}))) is Status.UNKNOWN


def test_twice_the_size_at_a_tolerance_of_half_is_still_the_type_s():
    facts = node()
    facts["neuron_ls"]["devices"][2]["memory_bytes"] = 64 * GIB
    assert status(judge(facts, thresholds={"neuron_memory.tolerance_percent": 50})) is Status.PASS
