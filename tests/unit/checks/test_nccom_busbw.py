"""nccom_busbw: every type and number of nodes has a floor, healthy examples lie above it, a crawl below."""

import pytest

from flightline_node.know.expected import known_types, resolve
from flightline_node.know.neuron import busbw_floor
from tests.harness import only, status

from .neurons import TRN1, node
from .table import FAIL, PASS, SKIP, UNKNOWN, judging, row, table

MIB = 1 << 20
NEURON = [name for name in known_types() if resolve(name).has_neuron]


def run(busbw, size=512 * MIB, **more):
    base = {"operation": "all_reduce", "ranks": 32, "nodes": 1, "checked": True, "rc": 0, "rows": 3, "complete": True}
    return {**base, "said": [], "wrong": [], "largest": {"bytes": size, "busbw_gb_s": busbw}, **more}


def judge(one, instance_type=TRN1, **more):
    return judging("nccom_busbw", node(nccom_test={"runs": [one]}), instance_type, **more)


test_nccom_busbw = table(
    *(row("the guides examples pass", judge(run(busbw, nodes=nodes), instance_type), PASS)
        for instance_type, busbw, nodes in [
            ("trn1.2xlarge", 40.69, 1), ("inf2.xlarge", 40.69, 1), (TRN1, 103.89, 1), (TRN1, 47.09, 2),
            ("trn2.48xlarge", 103.89, 1),
        ]),
    row("slow", judge(run(12.0)), FAIL, measured=12.0, expected=19.2, unit="GB/s", says="NeuronLink"),
    row("the site may raise the floor", judge(run(100.0), thresholds={"nccom_busbw.scale_percent": 600}), FAIL),
    *(row("what is no measurement", judge(one), wanted)
        for one, wanted in [
            (run(0.0), FAIL), (run(1.0, size=MIB), SKIP), (run(1.0, operation="sendrecv"), SKIP),
            (run(90.0, operation=None), PASS), (run(90.0, complete=False), UNKNOWN),
            (run(90.0, largest=None), UNKNOWN),
        ]),
    row("without a type only nothing at all fails", judge(run(2.0), "none"), SKIP),
    row("without a type only nothing at all fails", judge(run(0.0), "none"), FAIL),
    row("ranks of one device are not held to a link they do not cross",
        judge(run(30.0, size=32 * MIB, ranks=2), "trn2.48xlarge"), PASS),
    row("ranks of one device are not held to a link they do not cross",
        judge({**run(30.0, size=32 * MIB, ranks=2), "ranks": 64}, "trn2.48xlarge"), FAIL),
    row("ranks of one device are not held to a link they do not cross",
        judge({**run(30.0, size=32 * MIB, ranks=2), "largest": {"bytes": 32 * MIB, "busbw_gb_s": 9.0}},
        "trn2.48xlarge"), FAIL, says="cores of one device"),
    row("why there is no floor is said", judge(run(2.0), "none"), SKIP, ends="; needs an instance type"),
    row("why there is no floor is said", judge(run(2.0, nodes=2), "inf2.xlarge"), SKIP,
        ends="no figure for 2 nodes of inf2.xlarge"),
)  # fmt: skip


@pytest.mark.parametrize("name", NEURON)
def test_every_type_has_a_floor(name):
    floor, basis = busbw_floor(resolve(name), 1) or (0.0, "")
    assert floor > 5
    assert basis
    finding = only(judge(run(2.0), name), FAIL)
    assert (finding.measured, finding.expected) == (2.0, floor)
    assert (busbw_floor(resolve(name), 2) is not None) == bool(resolve(name).efa_count)


def test_no_floor_for_other_types():
    assert busbw_floor(resolve("p5.48xlarge"), 1) is None
    assert busbw_floor(resolve("none"), 1) is None


def test_the_floor_itself_is_enough_and_each_number_of_nodes_has_its_own():
    for nodes in (1, 2):
        floor, basis = busbw_floor(resolve(TRN1), nodes) or (0.0, "")
        assert status(judge(run(floor, nodes=nodes))) is PASS
        assert basis in only(judge(run(floor * 0.99, nodes=nodes)), FAIL).message
    assert busbw_floor(resolve(TRN1), 1) != busbw_floor(resolve(TRN1), 2)
    assert (busbw_floor(resolve(TRN1), 1) or (0.0, ""))[0] == only(judge(run(1.0, nodes=None)), FAIL).expected
