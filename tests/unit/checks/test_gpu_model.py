"""gpu_model: whole words of the product name, look-alikes, text of an error."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(name, instance_type, **rest):
    return judge_facts("gpu_model", gpus.put_all(gpus.node(), "name", name), instance_type, **rest)


@pytest.mark.parametrize(
    ("name", "instance_type"),
    [
        ("NVIDIA H100 80GB HBM3", "p5.48xlarge"),
        ("NVIDIA H200", "p5en.48xlarge"),
        ("A100-SXM4-40GB", "p4d.24xlarge"),
        ("NVIDIA A100-SXM4-80GB", "p4de.24xlarge"),
        ("A100-SXM-80GB", "p4de.24xlarge"),  # early drivers leave out the 4
        ("NVIDIA B200", "p6-b200.48xlarge"),
        ("NVIDIA B300 SXM6 AC", "p6-b300.48xlarge"),
        ("NVIDIA GB200", "p6e-gb200.36xlarge"),
        ("NVIDIA A10G", "g5.48xlarge"),
        ("Tesla T4", "g4dn.metal"),
        ("NVIDIA T4G", "g5g.metal"),
        ("Tesla V100-SXM2-32GB", "p3dn.24xlarge"),
        ("NVIDIA L4", "g6.48xlarge"),
        ("NVIDIA L40S", "g6e.48xlarge"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "g7e.48xlarge"),
    ],
)
def test_the_type_s_own_gpu(name, instance_type):
    assert status(judge(name, instance_type)) is Status.PASS


@pytest.mark.parametrize(
    ("name", "instance_type"),
    [
        ("NVIDIA L40S", "g6.48xlarge"),
        ("NVIDIA L4", "g6e.48xlarge"),
        ("NVIDIA H100 PCIe", "p5.48xlarge"),
        ("NVIDIA H100 NVL", "p5.48xlarge"),
        ("NVIDIA H200", "p5.48xlarge"),
        ("NVIDIA GB200", "p6-b200.48xlarge"),
        ("NVIDIA A100-SXM4-80GB", "p4d.24xlarge"),
        ("NVIDIA A100-PCIE-40GB", "p4d.24xlarge"),
        ("NVIDIA A100 80GB PCIe", "p4de.24xlarge"),
        ("NVIDIA A100-SXM4-40GB", "p4de.24xlarge"),
        ("NVIDIA T4G", "g4dn.metal"),
        ("NVIDIA A10", "g5.48xlarge"),
    ],
)
def test_a_look_alike_fails(name, instance_type):
    findings = judge(name, instance_type)
    assert [finding.status for finding in findings] == [Status.FAIL] * 8
    assert findings[0].remedy is Remedy.FIX_CONFIG
    assert findings[0].measured == name


def test_one_other_gpu_is_named():
    finding = only(judge_facts("gpu_model", gpus.put(gpus.node(), 5, "name", "NVIDIA H200")), Status.FAIL)
    assert finding.device["index"] == 5
    assert finding.device["pci"] == "00000000:58:00.0"


def test_nameless_board_needs_a_newer_driver():
    assert judge("NVIDIA Graphics Device", "p5.48xlarge")[0].remedy is Remedy.UPDATE_SOFTWARE


def test_error_text_is_unknown():
    assert only(judge_facts("gpu_model", gpus.put(gpus.node(), 2, "name", "ERR!")), Status.UNKNOWN).device["index"] == 2


def test_model_given_by_hand_or_not_known():
    assert status(judge("NVIDIA H100 80GB HBM3", "none")) is Status.SKIP
    assert status(judge("NVIDIA H100 80GB HBM3", "none", expected={"gpu_model": "H100"})) is Status.PASS
    assert status(judge("NVIDIA H100 80GB HBM3", "none", expected={"gpu_model": "B200"})) is Status.FAIL


def test_the_wanted_model_is_named():
    assert judge("NVIDIA H200", "p5.48xlarge")[0].message == "GPU 0: NVIDIA H200, wanted H100-SXM5-80GB"
    words = {"gpu_name_has": ["RTX", "6000"]}
    assert judge("NVIDIA H200", "none", expected=words)[0].message.endswith("wanted RTX 6000")
