"""gpu_topology: NVSwitch, cube mesh and PCIe machines, missing links, cut matrices."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(paths, instance_type="p5.48xlarge", count=8, **rest):
    return judge_facts("gpu_topology", gpus.topo(paths, count), instance_type, **rest)


@pytest.mark.parametrize(
    ("paths", "instance_type", "count"),
    [
        ({"NV18": 28}, "p5.48xlarge", 8),
        ({"NV18": 28}, "p6-b300.48xlarge", 8),
        ({"NV12": 28}, "p4d.24xlarge", 8),
        ({"NV18": 6}, "p6e-gb200.36xlarge", 4),
        ({"NV1": 8, "NV2": 8, "SYS": 12}, "p3dn.24xlarge", 8),
        ({"PHB": 28}, "g5.48xlarge", 8),
        ({"NODE": 12, "SYS": 16}, "g6e.48xlarge", 8),
        ({"NV18": 28}, "none", 8),
        ({"SYS": 1}, "none", 2),
    ],
)
def test_good_nodes(paths, instance_type, count):
    assert only(judge(paths, instance_type, count), Status.PASS)


@pytest.mark.parametrize(
    ("paths", "instance_type"),
    [
        ({"NV18": 21, "SYS": 7}, "p5.48xlarge"),
        ({"NV18": 27, "PHB": 1}, "p5.48xlarge"),
        ({"NV18": 21, "NV17": 7}, "p5.48xlarge"),
        ({"NV18": 26, "PIX": 2}, "p5.48xlarge"),
        ({"NV12": 28}, "p5.48xlarge"),
        ({"NODE": 12, "SYS": 16}, "p4d.24xlarge"),
        ({"NV1": 8, "NV2": 7, "SYS": 13}, "p3dn.24xlarge"),
        ({"PHB": 28}, "p3dn.24xlarge"),
    ],
)
def test_pairs_without_their_links_fail(paths, instance_type):
    finding = only(judge(paths, instance_type), Status.FAIL)
    assert finding.remedy is Remedy.REBOOT
    assert finding.evidence


def test_evidence_names_the_pair():
    assert only(judge({"NV18": 27, "SYS": 1}), Status.FAIL).evidence == ("GPU0 GPU2 SYS",)


def test_the_gpu_that_is_in_every_bad_pair_is_named():
    facts = gpus.topo({"NV18": 21, "NODE": 3, "SYS": 4})
    facts["nvidia_smi_topo"]["pairs"] = [
        {"a": f"GPU{a}", "b": f"GPU{b}", "link": ("NODE" if max(a, b) < 4 else "SYS") if 2 in (a, b) else "NV18"}
        for a in range(8)
        for b in range(a + 1, 8)
    ]
    finding = only(judge_facts("gpu_topology", facts, "p6-b200.48xlarge"), Status.FAIL)
    assert (finding.device, len(finding.evidence)) == ({"index": 2}, 7) and "GPU 2" in finding.message
    finding = only(judge_facts("gpu_topology", {**facts, **gpus.node()}, "p6-b200.48xlarge"), Status.FAIL)
    assert finding.device["uuid"] == "GPU-2"


def test_no_gpu_is_named_for_one_pair_or_for_all():
    assert only(judge({"NV18": 27, "SYS": 1}), Status.FAIL).device == {}
    facts = gpus.topo({"SYS": 28})
    facts["nvidia_smi_topo"]["pairs"] = [
        {"a": f"GPU{a}", "b": f"GPU{b}", "link": "SYS"} for a in range(8) for b in range(a + 1, 8)
    ]
    assert only(judge_facts("gpu_topology", facts), Status.FAIL).device == {}


@pytest.mark.parametrize("paths", [{}, {"NV18": 21}, {"NV18": 27, "ERR": 1}])
def test_cut_or_strange_matrix_is_unknown(paths):
    assert status(judge(paths)) is Status.UNKNOWN


def test_fewer_gpus_than_the_type_has_is_unknown():
    assert status(judge({"NV18": 21}, count=7)) is Status.UNKNOWN


def test_mixture_without_a_type_warns():
    assert status(judge({"NV4": 1, "NODE": 2}, "none", 3)) is Status.WARN


def test_one_gpu_or_none():
    assert status(judge({}, "g5.xlarge", 1)) is Status.SKIP
    assert status(judge({}, "none", 0)) is Status.UNKNOWN


def test_the_pcie_matrix_says_nothing_about_nvlink():
    facts = gpus.topo({"SYS": 28}, 8)
    facts["nvidia_smi_topo"]["pcie_only"] = True
    assert "topo -mp" in only(judge_facts("gpu_topology", facts, "p5.48xlarge"), Status.UNKNOWN).message
    assert status(judge_facts("gpu_topology", facts, "g5.48xlarge")) is Status.PASS


def test_the_only_gpu_of_an_unknown_machine_has_no_pairs():
    assert only(judge({}, "none", 1), Status.SKIP).message == "one GPU: no pairs"


def test_what_was_read_of_a_cut_matrix_is_shown():
    message = only(judge({"NV18": 21}), Status.UNKNOWN).message
    assert message == "topology of 7 of 28 GPU pairs could not be read: 21 x NV18"
    assert only(judge({}), Status.UNKNOWN).message.endswith("could not be read: no GPU pair")
