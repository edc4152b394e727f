"""Ceilings of small messages' latency: one order over all pairs, above every published figure, and none that is made up."""

import itertools
import math

import pytest

from flightline_node.know.expected import resolve
from flightline_node.know.nccl_floor import RankGroup, is_weaker
from flightline_node.know.nccl_latency import ceiling

from .test_floors import NODES, TYPES


def most(name, nodes, collective="all_reduce", gpus=None):
    found = ceiling(resolve(name), RankGroup(nodes, gpus or resolve(name).gpu_count or 0), collective)
    return (found.warn_above, found.fail_above) if found else (math.inf, math.inf)


def test_more_nodes_are_never_given_less_time_nor_a_stronger_type_more():
    given = {(name, nodes): most(name, nodes) for name in TYPES for nodes in NODES}
    assert all(given[name, few] <= given[name, many] for name in TYPES for few, many in itertools.pairwise(NODES))
    weaker = [(a, b) for a, b in itertools.permutations(TYPES, 2) if is_weaker(resolve(a), resolve(b))]
    assert weaker and all(given[strong, nodes] <= given[weak, nodes] for weak, strong in weaker for nodes in NODES)


@pytest.mark.parametrize(
    ("name", "nodes", "seen_us"),
    [
        ("p4de.24xlarge", 2, 165), ("p4d.24xlarge", 2, 182), ("p5.48xlarge", 1, 17), ("p5.48xlarge", 2, 75),
        ("p6-b200.48xlarge", 2, 57),
    ],
)  # fmt: skip
def test_what_good_nodes_were_seen_to_take_is_no_warning_and_ten_times_it_is_a_fault(name, nodes, seen_us):
    warn, fail = most(name, nodes)
    assert seen_us < warn < fail < 10 * seen_us


@pytest.mark.parametrize(
    "group",
    [("g6e.48xlarge", 2), ("p3dn.24xlarge", 1), ("p5.48xlarge", 2, "alltoall"), ("p5.48xlarge", 2, "all_reduce", 4)],
)
def test_where_nothing_is_published_there_is_no_ceiling(group):
    assert most(*group) == (math.inf, math.inf)
