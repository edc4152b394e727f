"""numa_affinity: GPUs spread over the nodes, crowded on one, not known."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

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


def test_no_matrix_is_unknown():
    assert status(judge_facts("numa_affinity", gpus.topo({}, 0))) is Status.UNKNOWN
    assert status(judge_facts("numa_affinity", {"nvidia_smi_topo": BROKEN})) is Status.UNKNOWN


def test_not_printed_or_not_expected():
    facts = gpus.topo({"NV18": 28})
    del facts["nvidia_smi_topo"]["numa_affinity"]
    assert status(judge_facts("numa_affinity", facts)) is Status.SKIP
    assert status(judge(["0"] * 8, "none")) is Status.SKIP
    assert status(judge(["0"] * 8, "none", expected={"numa_nodes": 1})) is Status.PASS
