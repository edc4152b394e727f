"""gpu_topology: NVSwitch, cube mesh and PCIe machines, missing links, cut matrices."""

import pytest

from tests.harness import only

from . import gpus
from .table import FAIL, PASS, REBOOT, SKIP, UNKNOWN, WARN, changed, judging, row, table

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch NVML library version: 535.161"


def judge(paths, instance_type="p5.48xlarge", count=8, **rest):
    return judging("gpu_topology", gpus.topo(paths, count), instance_type, **rest)


test_gpu_topology = table(
    *(row("good nodes", judge(paths, instance_type, count), PASS, count=1)
        for paths, instance_type, count in [
            ({"NV18": 28}, "p5.48xlarge", 8),
            ({"NV18": 28}, "p6-b300.48xlarge", 8),
            ({"NV12": 28}, "p4d.24xlarge", 8),
            ({"NV18": 6}, "p6e-gb200.36xlarge", 4),
            ({"NV1": 8, "NV2": 8, "SYS": 12}, "p3dn.24xlarge", 8),
            ({"PHB": 28}, "g5.48xlarge", 8),
            ({"NODE": 12, "SYS": 16}, "g6e.48xlarge", 8),
            ({"NV18": 28}, "none", 8),
            ({"SYS": 1}, "none", 2),
        ]),
    row("evidence names the pair", judge({"NV18": 27, "SYS": 1}), FAIL, evidence=("GPU0 GPU2 SYS",)),
    row("no GPU is named for one pair or for all",
        [judge({"NV18": 27, "SYS": 1}),
        judging("gpu_topology", changed(gpus.topo({"SYS": 28}),
        {"nvidia_smi_topo.pairs": [{"a": f"GPU{a}", "b": f"GPU{b}", "link": "SYS"} for a in range(8)
        for b in range(a + 1, 8)]}))], FAIL, device={}),
    *(row("cut or strange matrix is unknown", judge(paths), UNKNOWN)
        for paths in [{}, {"NV18": 21}, {"NV18": 27, "ERR": 1}]),
    row("fewer GPUs than the type has is unknown", judge({"NV18": 21}, count=7), UNKNOWN),
    row("mixture without a type warns", judge({"NV4": 1, "NODE": 2}, "none", 3), WARN),
    row("one GPU or none", judge({}, "g5.xlarge", 1), SKIP),
    row("one GPU or none", judge({}, "none", 0), UNKNOWN),
    row("the driver was updated under its libraries, and no matrix came",
        judging("gpu_topology", changed(gpus.topo({}, 0), {"nvidia_smi_topo.errors": [MISMATCH]}), "none"),
        FAIL, reason="no_gpu", evidence=(MISMATCH,)),
    row("the PCIe matrix says nothing about NVLink",
        judging("gpu_topology", changed(gpus.topo({"SYS": 28}, 8), {"nvidia_smi_topo.pcie_only": True}),
        "p5.48xlarge"), UNKNOWN, says="topo -mp"),
    row("the PCIe matrix says nothing about NVLink",
        judging("gpu_topology", changed(gpus.topo({"SYS": 28}, 8), {"nvidia_smi_topo.pcie_only": True}),
        "g5.48xlarge"), PASS),
    row("the only GPU of an unknown machine has no pairs", judge({}, "none", 1), SKIP, message="one GPU: no pairs"),
)  # fmt: skip


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
    finding = only(judge(paths, instance_type), FAIL)
    assert finding.remedy is REBOOT
    assert finding.evidence


def test_the_gpu_that_is_in_every_bad_pair_is_named():
    facts = gpus.topo({"NV18": 21, "NODE": 3, "SYS": 4})
    facts["nvidia_smi_topo"]["pairs"] = [
        {"a": f"GPU{a}", "b": f"GPU{b}", "link": ("NODE" if max(a, b) < 4 else "SYS") if 2 in (a, b) else "NV18"}
        for a in range(8)
        for b in range(a + 1, 8)
    ]
    finding = only(judging("gpu_topology", facts, "p6-b200.48xlarge"), FAIL)
    assert (finding.device, len(finding.evidence)) == ({"index": 2}, 7) and "GPU 2" in finding.message
    finding = only(judging("gpu_topology", {**facts, **gpus.node()}, "p6-b200.48xlarge"), FAIL)
    assert finding.device["uuid"] == "GPU-2"


def test_what_was_read_of_a_cut_matrix_is_shown():
    message = only(judge({"NV18": 21}), UNKNOWN).message
    assert message == "topology of 7 of 28 GPU pairs could not be read: 21 x NV18"
    assert only(judge({}), UNKNOWN).message.endswith("could not be read: no GPU pair")
