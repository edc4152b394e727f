"""One table: every type's row gives every expectation that the checks make of it."""

import json

import pytest

from flightline_node.know import hardware as instance_types
from flightline_node.know import links, nccl
from flightline_node.know.expected import known_types, lacking, resolve
from flightline_node.know.nccl_floor import RankGroup, floor, group_of
from flightline_node.model import SettingsError
from flightline_node.read.parsers.nccl_files import COLLECTIVES

GIB = 1 << 30
ROWS = [json.loads(line) for line in instance_types.TABLE.splitlines()]
NVIDIA = [row["instance_type"] for row in ROWS if row["accelerator"] == "nvidia_gpu"]
NODES = (1, 2, 3, 4, 16, 500)
SIZES = (8, 1 << 10, 1 << 20, 128 << 20, GIB, 16 * GIB)

# What good nodes were seen to give: nodes, collective, size, GB/s. Sources: know/hardware.py; OCI's gate for the B300;
# the old p4d stack of NVIDIA/nccl 527, slow but whole, is held to the floor and not to a gate.
HEALTHY = [
    ("p4d.24xlarge", 1, "all_reduce", GIB, 230.8), ("p4d.24xlarge", 4, "all_reduce", GIB, 29.6),
    ("p4de.24xlarge", 2, "all_reduce", GIB, 76.8), ("p5.48xlarge", 2, "all_reduce", 16 * GIB, 480),
    ("p5.48xlarge", 2, "all_reduce", 128 << 20, 289), ("p5.48xlarge", 2, "all_reduce", 2 * GIB, 438),
    ("p5.48xlarge", 2, "alltoall", GIB, 51), ("p5en.48xlarge", 1, "all_gather", 16 * GIB, 361),
    ("p5en.48xlarge", 4, "all_reduce", 4 * GIB, 310), ("p5en.48xlarge", 1, "all_reduce", 16 * GIB, 482),
    ("p6-b200.48xlarge", 1, "all_reduce", 8 * GIB, 682), ("p6-b200.48xlarge", 4, "all_reduce", 128 << 20, 198),
    ("p6-b200.48xlarge", 2, "all_reduce", 8 * GIB, 523), ("p6-b300.48xlarge", 1, "all_reduce", 8 * GIB, 800),
    ("p6-b300.48xlarge", 2, "alltoall", 56 << 20, 104), ("p6-b300.48xlarge", 32, "alltoall", 56 << 20, 54.7),
    ("p6-b300.48xlarge", 2, "all_reduce", 64 * GIB, 751), ("g5.48xlarge", 1, "all_reduce", 8 * GIB, 5),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance_type"])
def test_every_row_has_what_its_kind_of_accelerator_needs(row):
    assert lacking(row) == []


@pytest.mark.parametrize("name", ["network_gbps", "gpu_pcie_gen", "nvlink_gb_s", "gpu_tflops", "gpu_generation"])
def test_a_row_with_a_hole_is_refused(monkeypatch, name):
    row = next(row for row in ROWS if row["instance_type"] == "p6-b300.48xlarge")
    text = json.dumps({key: value for key, value in row.items() if key != name}, separators=(",", ":"))
    monkeypatch.setattr("flightline_node.know.expected.TABLE", text)
    with pytest.raises(SettingsError, match=f"lacks {name}"):
        resolve("p6-b300.48xlarge")


@pytest.mark.parametrize("name", NVIDIA)
def test_every_gpu_type_has_every_rate(name):
    expected = resolve(name)
    for rate in (links.pcie_gb_s, links.peer_gb_s, links.inside_gb_s, links.network_gb_s):
        value = rate(expected)
        assert value is not None
        assert value > 0, (rate, value)
    printed = (expected.nvlink_links_per_gpu or 0) * (expected.nvlink_gb_s_per_link or 0)
    assert printed == pytest.approx(expected.nvlink_gb_s or 0, rel=0.07)


def test_no_type_of_other_makers_is_given_a_gpus_links():
    others = set(known_types()) - set(NVIDIA)
    assert others
    assert not [name for name in others if nccl.ceiling(name, 1, "all_reduce")]


@pytest.mark.parametrize("name", NVIDIA)
def test_every_type_node_count_collective_and_size_has_a_floor(name):
    expected = resolve(name)
    assert expected.gpu_count
    for collective in COLLECTIVES:
        for nodes in NODES:
            group = RankGroup(nodes, expected.gpu_count)
            if group.ranks < 2:
                continue
            floors = [floor(expected, group, collective, size) for size in SIZES]
            assert all(found and 0 < found.fail_below <= found.warn_below for found in floors), (collective, nodes)
            most = nccl.ceiling(name, nodes, collective) or 0.0
            assert floors[-1].fail_below < most


@pytest.mark.parametrize("name", NVIDIA)
def test_a_part_of_the_gpus_has_a_lower_floor(name):
    expected = resolve(name)
    assert expected.gpu_count
    for ranks, hosts in ((2, 1), (2, 2), (3, 2)):
        if ranks / hosts < expected.gpu_count:
            group = group_of(ranks, hosts, expected.gpu_count)
            assert floor(expected, group, "all_reduce", GIB).fail_below > 0


@pytest.mark.parametrize(("name", "nodes", "collective", "size", "busbw"), HEALTHY)
def test_what_good_nodes_gave_is_above_the_floor(name, nodes, collective, size, busbw):
    expected = resolve(name)
    assert busbw >= floor(expected, RankGroup(nodes, expected.gpu_count or 0), collective, size).fail_below


@pytest.mark.parametrize(
    ("ranks", "hosts", "group"),
    [(8, 1, (1, 8)), (64, 8, (8, 8)), (8, 8, (8, 1)), (20, 2, (3, 6)), (4, 1, (1, 4)), (16, 1, (2, 8)), (3, 2, (2, 1))],
)
def test_groups(ranks, hosts, group):
    found = group_of(ranks, hosts, 8)
    assert (found.nodes, found.gpus) == group


def test_the_basis_says_where_the_floor_comes_from():
    expected = resolve("g6e.48xlarge")
    assert floor(expected, RankGroup(1, 8), "all_reduce", GIB).basis == "16% of the 15.8 GB/s of its PCIe"
    near = floor(resolve("p5e.48xlarge"), RankGroup(2, 8), "all_reduce", 8 * GIB).basis
    assert near.startswith("from the figure of 2 node(s) of p5.48xlarge")
