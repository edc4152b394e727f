"""numa_affinity: GPUs spread over the nodes, crowded on one, not known."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(numa, instance_type="p5.48xlarge", **rest):
    return judge_facts("numa_affinity", gpus.topo({"NV18": 28}, 8, numa), instance_type, **rest)


def test_spread():
    assert only(judge(["0"] * 4 + ["1"] * 4), Status.PASS).message == "4 GPUs on node 0, 4 GPUs on node 1"


@pytest.mark.parametrize("numa", [["0"] * 8, ["0"] * 6 + ["1"] * 2, ["0"] * 4 + ["2"] * 2 + ["1"] * 2])
def test_crowded_warns(numa):
    assert only(judge(numa), Status.WARN).remedy is Remedy.INVESTIGATE


@pytest.mark.parametrize("cell", [None, "N/A", "0-1"])
def test_not_known_to_the_driver_warns(cell):
    assert "GPU7" in only(judge(["0"] * 4 + ["1"] * 3 + [cell]), Status.WARN).message


def test_nodes_of_gpu_memory_are_no_cpu_nodes():
    """A GB200 has 2 CPU nodes, and 32 more for the memory of its GPUs."""
    cells = ["0,2-17", "0,2-17", "1,18-33", "1,18-33"]
    facts = gpus.topo({"NV18": 6}, 4, cells)
    good = judge_facts("numa_affinity", facts, "p6e-gb200.36xlarge", expected={"numa_nodes": 2})
    assert only(good, Status.PASS).message == "2 GPUs on node 0, 2 GPUs on node 1"
    assert only(judge(["0"] * 4 + ["1"] * 3 + ["0,1"]), Status.WARN)


def test_no_matrix_is_unknown():
    assert status(judge_facts("numa_affinity", gpus.topo({}, 0))) is Status.UNKNOWN


def test_not_printed_or_not_expected():
    facts = gpus.topo({"NV18": 28})
    del facts["nvidia_smi_topo"]["numa_affinity"]
    assert status(judge_facts("numa_affinity", facts)) is Status.SKIP
    assert status(judge(["0"] * 8, "none")) is Status.SKIP
    assert status(judge(["0"] * 8, "none", expected={"numa_nodes": 1})) is Status.PASS


def test_a_gpu_less_on_one_node_is_still_spread():
    facts = gpus.topo({"NV18": 21}, 7, ["0"] * 4 + ["1"] * 3)
    assert status(judge_facts("numa_affinity", facts)) is Status.PASS


@pytest.mark.parametrize(("count", "wanted"), [(1, Status.PASS), (2, Status.WARN)])
def test_as_many_gpus_as_nodes_are_on_a_node_each(count, wanted):
    facts = gpus.topo({"SYS": 1}, count, ["0"] * count)
    assert status(judge_facts("numa_affinity", facts, "none", expected={"numa_nodes": 2})) is wanted
