"""gpu_model: whole words of the product name, look-alikes, text of an error."""

import pytest

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, UPDATE_SOFTWARE, judging, row, table


def judge(name, instance_type, **rest):
    return judging("gpu_model", gpus.every("name", name), instance_type, **rest)


test_gpu_model = table(
    # "A100-SXM-80GB": early drivers leave out the 4
    *(row("the type's own GPU", judge(name, instance_type), PASS)
        for name, instance_type in [
            ("NVIDIA H100 80GB HBM3", "p5.48xlarge"),
            ("NVIDIA H200", "p5en.48xlarge"),
            ("A100-SXM4-40GB", "p4d.24xlarge"),
            ("NVIDIA A100-SXM4-80GB", "p4de.24xlarge"),
            ("A100-SXM-80GB", "p4de.24xlarge"),
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
        ]),
    row("one other GPU is named", judging("gpu_model", gpus.one(5, "name", "NVIDIA H200")), FAIL, index=5,
        of={"pci": "00000000:58:00.0"}),
    row("error text is unknown", judging("gpu_model", gpus.one(2, "name", "ERR!")), UNKNOWN, index=2),
    row("model given by hand or not known", judge("NVIDIA H100 80GB HBM3", "none"), SKIP),
    row("model given by hand or not known", judge("NVIDIA H100 80GB HBM3", "none", expected={"gpu_model": "H100"}),
        PASS),
    row("model given by hand or not known", judge("NVIDIA H100 80GB HBM3", "none", expected={"gpu_model": "B200"}),
        FAIL),
)  # fmt: skip


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
    assert [finding.status for finding in findings] == [FAIL] * 8
    assert findings[0].remedy is FIX_CONFIG
    assert findings[0].measured == name


def test_nameless_board_needs_a_newer_driver():
    assert judge("NVIDIA Graphics Device", "p5.48xlarge")[0].remedy is UPDATE_SOFTWARE


def test_the_wanted_model_is_named():
    assert judge("NVIDIA H200", "p5.48xlarge")[0].message == "GPU 0: NVIDIA H200, wanted H100-SXM5-80GB"
    words = {"gpu_name_has": ["RTX", "6000"]}
    assert judge("NVIDIA H200", "none", expected=words)[0].message.endswith("wanted RTX 6000")
