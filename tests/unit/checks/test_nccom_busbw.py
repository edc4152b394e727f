"""nccom_busbw: every type and number of nodes has a floor, healthy examples lie above it, a crawl below."""

import pytest

from flightline_node.know.expected import known_types, resolve
from flightline_node.know.neuron import busbw_floor
from flightline_node.model import Status
from tests.harness import judge_facts, only, status

from .neurons import TRN1, node

MIB = 1 << 20
NEURON = [name for name in known_types() if resolve(name).has_neuron]


def run(busbw, size=512 * MIB, **more):
    base = {"operation": "all_reduce", "ranks": 32, "nodes": 1, "checked": True, "rc": 0, "rows": 3, "complete": True}
    return {**base, "said": [], "wrong": [], "largest": {"bytes": size, "busbw_gb_s": busbw}, **more}


def judge(one, instance_type=TRN1, **more):
    return judge_facts("nccom_busbw", node(nccom_test={"runs": [one]}), instance_type, **more)


@pytest.mark.parametrize("name", NEURON)
def test_every_type_has_a_floor(name):
    floor, basis = busbw_floor(resolve(name), 1)
    assert floor > 5
    assert basis
    finding = only(judge(run(2.0), name), Status.FAIL)
    assert (finding.measured, finding.expected) == (2.0, floor)
    assert (busbw_floor(resolve(name), 2) is not None) == bool(resolve(name).efa_count)


def test_no_floor_for_other_types():
    assert busbw_floor(resolve("p5.48xlarge"), 1) is None
    assert busbw_floor(resolve("none"), 1) is None


@pytest.mark.parametrize(
    ("instance_type", "busbw", "nodes"),
    [
        ("trn1.2xlarge", 40.69, 1),
        ("inf2.xlarge", 40.69, 1),
        (TRN1, 103.89, 1),
        (TRN1, 47.09, 2),
        ("trn2.48xlarge", 103.89, 1),
    ],
)
def test_the_guides_examples_pass(instance_type, busbw, nodes):
    assert status(judge(run(busbw, nodes=nodes), instance_type)) is Status.PASS


def test_slow():
    finding = only(judge(run(12.0)), Status.FAIL)
    assert (finding.measured, finding.expected, finding.unit) == (12.0, 19.2, "GB/s")
    assert "NeuronLink" in finding.message


def test_the_site_may_raise_the_floor():
    assert status(judge(run(100.0), thresholds={"nccom_busbw.scale_percent": 600})) is Status.FAIL


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (run(0.0), Status.FAIL),
        (run(1.0, size=MIB), Status.SKIP),
        (run(1.0, operation="sendrecv"), Status.SKIP),
        (run(90.0, operation=None), Status.PASS),
        (run(90.0, complete=False), Status.UNKNOWN),
        (run(90.0, largest=None), Status.UNKNOWN),
    ],
)
def test_what_is_no_measurement(one, wanted):
    assert status(judge(one)) is wanted


def test_without_a_type_only_nothing_at_all_fails():
    assert status(judge(run(2.0), "none")) is Status.SKIP
    assert status(judge(run(0.0), "none")) is Status.FAIL


def test_ranks_of_one_device_are_not_held_to_a_link_they_do_not_cross():
    two = run(30.0, size=32 * MIB, ranks=2)
    assert status(judge(two, "trn2.48xlarge")) is Status.PASS
    assert status(judge({**two, "ranks": 64}, "trn2.48xlarge")) is Status.FAIL
    slow = only(judge({**two, "largest": {"bytes": 32 * MIB, "busbw_gb_s": 9.0}}, "trn2.48xlarge"), Status.FAIL)
    assert "cores of one device" in slow.message


def test_the_floor_itself_is_enough_and_each_number_of_nodes_has_its_own():
    for nodes in (1, 2):
        floor, basis = busbw_floor(resolve(TRN1), nodes)
        assert status(judge(run(floor, nodes=nodes))) is Status.PASS
        assert basis in only(judge(run(floor * 0.99, nodes=nodes)), Status.FAIL).message
    assert busbw_floor(resolve(TRN1), 1) != busbw_floor(resolve(TRN1), 2)
    assert busbw_floor(resolve(TRN1), 1)[0] == only(judge(run(1.0, nodes=None)), Status.FAIL).expected


def test_why_there_is_no_floor_is_said():
    assert only(judge(run(2.0), "none"), Status.SKIP).message.endswith("; needs an instance type")
    assert only(judge(run(2.0, nodes=2), "inf2.xlarge"), Status.SKIP).message.endswith(
        "no figure for 2 nodes of inf2.xlarge"
    )
