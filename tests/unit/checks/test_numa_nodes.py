"""numa_nodes: as the type has, too few, NUMA off, numactl not there, nodes of GPU memory."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

TWO = {"nodes": 2, "per_node": [{"node": 0, "cpus": [0], "size_mib": 9}, {"node": 1, "cpus": [1], "size_mib": 9}]}


def test_two_nodes():
    assert only(judge_facts("numa_nodes", {"numactl": TWO}), Status.PASS).measured == 2


def test_one_node():
    finding = only(judge_facts("numa_nodes", {"numactl": {"nodes": 1}}), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (1, 2, Remedy.FIX_CONFIG)


def test_numa_off():
    off = {"error": "No NUMA available on this system"}
    assert "No NUMA" in only(judge_facts("numa_nodes", {"numactl": off}), Status.FAIL).message
    assert status(judge_facts("numa_nodes", {"numactl": off}, "none", expected={"numa_nodes": 1})) is Status.UNKNOWN


def test_lscpu_stands_in_for_numactl():
    assert status(judge_facts("numa_nodes", {"cpuinfo": {"numa_nodes": 2}})) is Status.PASS
    assert status(judge_facts("numa_nodes", {"numactl": BROKEN, "cpuinfo": {"numa_nodes": 1}})) is Status.FAIL
    assert status(judge_facts("numa_nodes", {"numactl": BROKEN, "cpuinfo": {"cpus": 4}})) is Status.UNKNOWN


def test_nodes_without_cpus_do_not_count():
    per_node = [*TWO["per_node"], {"node": 2, "cpus": [], "size_mib": 188416}]
    assert status(judge_facts("numa_nodes", {"numactl": {"nodes": 3, "per_node": per_node}})) is Status.PASS


def test_node_without_memory():
    per_node = [TWO["per_node"][0], {"node": 1, "cpus": [1], "size_mib": 0}]
    finding = only(judge_facts("numa_nodes", {"numactl": {"nodes": 2, "per_node": per_node}}), Status.FAIL)
    assert finding.device == {"name": "node 1"}


def test_unknown_and_skip():
    assert status(judge_facts("numa_nodes", {"numactl": TWO}, "g6.48xlarge")) is Status.SKIP


@pytest.mark.parametrize("per_node", [TWO["per_node"][:1], [{"node": 0}, {"node": 1}]])
def test_a_list_of_nodes_that_is_cut_or_without_cpus_leaves_the_count(per_node):
    assert only(judge_facts("numa_nodes", {"numactl": {"nodes": 2, "per_node": per_node}}), Status.PASS).measured == 2
