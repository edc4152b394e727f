"""Floors of NCCL bandwidth: an operator's order holds over all pairs. More nodes, a weaker type, a smaller message: never a higher floor."""

import itertools
import math

import pytest

from flightline_node.know.expected import known_types, resolve
from flightline_node.know.nccl_floor import RankGroup, floor, is_weaker
from flightline_node.read.parsers.nccl_files import COLLECTIVES

GIB = 1 << 30
TYPES = [name for name in known_types() if resolve(name).accelerator == "nvidia_gpu"]
NODES = (1, 2, 3, 4, 8, 16, 64, 500)
SIZES = (*(8 << shift for shift in range(0, 34, 3)), 128 << 20, GIB, 4 * GIB, 8 * GIB, 16 * GIB)


def floors(name, nodes, collective, size):
    """The two figures; None for one rank, which has nobody to send to."""
    expected = resolve(name)
    assert expected.gpu_count
    found = floor(expected, RankGroup(nodes, expected.gpu_count), collective, size)
    return (found.fail_below, found.warn_below) if found and nodes * expected.gpu_count > 1 else None


TABLE = {
    key: found
    for key in itertools.product(TYPES, NODES, COLLECTIVES, sorted(SIZES))
    if (found := floors(*key)) is not None
}


def rising(lower, higher):
    """A hair of rounding is no contradiction."""
    return all(low <= high * (1 + 1e-9) for low, high in zip(lower, higher, strict=True))


@pytest.mark.parametrize("name", TYPES)
def test_more_nodes_or_a_smaller_message_never_ask_for_more(name):
    wrong = []
    for (kind, nodes, collective, size), here in TABLE.items():
        if kind != name:
            continue
        more = [TABLE[kind, many, collective, size] for many in NODES if many > nodes]
        less = [TABLE[kind, nodes, collective, small] for small in SIZES if small < size]
        wrong += [(nodes, collective, size) for other in (*more, *less) if not rising(other, here)]
    assert wrong == []


def test_a_weaker_type_is_never_asked_for_more():
    pairs = [
        (weak, strong) for weak, strong in itertools.permutations(TYPES, 2) if is_weaker(resolve(weak), resolve(strong))
    ]
    assert {("p5.48xlarge", "p5en.48xlarge"), ("p6-b200.48xlarge", "p6-b300.48xlarge")} <= set(pairs)
    wrong = [
        (weak, strong, nodes, collective, size)
        for weak, strong in pairs
        for nodes, collective, size in itertools.product(NODES, COLLECTIVES, SIZES)
        if not rising(
            TABLE.get((weak, nodes, collective, size), (0, 0)),
            TABLE.get((strong, nodes, collective, size), (math.inf, math.inf)),
        )
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "nodes", "size", "least"),
    [
        ("p5en.48xlarge", 2, 8 * GIB, 350),  # as p5, whose NICs and NVLinks carry the same
        ("p6-b200.48xlarge", 3, 8 * GIB, 300),  # what four nodes reach
        ("p6-b300.48xlarge", 1, 8 * GIB, 650),  # what the weaker B200 reaches
        ("p6-b300.48xlarge", 4, 8 * GIB, 300),
        ("p5.48xlarge", 64, 8 * GIB, 186),  # 185 is 38 % of what two nodes reach
    ],
)
def test_a_figure_of_a_weaker_type_or_of_more_nodes_is_a_floor(name, nodes, size, least):
    assert floors(name, nodes, "all_reduce", size)[0] >= least


def test_what_is_no_order_is_none():
    p5, p4d, g6e = (resolve(name) for name in ("p5.48xlarge", "p4d.24xlarge", "g6e.48xlarge"))
    assert is_weaker(p4d, p5) and not is_weaker(p5, p4d) and not is_weaker(p5, g6e)
