"""No GPU check may hold back a healthy node, and none may pass one without GPUs."""

import copy

import pytest

from flightline_node.judge.checks import CHECKS
from flightline_node.model import BLOCKING
from tests.harness import status

from . import gpus
from .table import SKIP, UNKNOWN, judging, row, table

SMI_CHECKS = sorted(
    check.id
    for check in CHECKS.values()
    if "nvidia_smi" in check.needs and "gpu" in check.tags and check.id != "gpu_count"
)


def variant(base, **changes):
    return {**copy.deepcopy(base), **changes}


B300 = variant(
    gpus.H100,
    name="NVIDIA B300 SXM6 AC",
    memory_total_mib=275040,
    gsp_firmware_version="595.91.07",
    pcie={"gen": 6, "gen_max": 6, "width": 16, "width_max": 16, "replays": 0, "replay_rollovers": 0},
    power={"draw_w": 180.0, "limit_w": 1100.0, "default_limit_w": 1100.0},
)
A10G = variant(
    gpus.T4,
    name="NVIDIA A10G",
    memory_total_mib=23028,
    temperature_slowdown_c=95,
    remap=gpus.H100["remap"],
    retired_pages={"single_bit": None, "double_bit": None, "pending": None},
    pcie={"gen": 1, "gen_max": 4, "width": 8, "width_max": 16, "replays": 0, "replay_rollovers": 0},
)
L4 = variant(A10G, name="NVIDIA L4", memory_total_mib=23034, mig_mode=None)
RTX = variant(
    A10G, name="NVIDIA RTX PRO 6000 Blackwell Server Edition", memory_total_mib=97887, ecc_mode="Disabled",
    ecc_mode_pending="Disabled", ecc_uncorrected_volatile=None, ecc_corrected_volatile=None, mig_mode="Disabled",
    mig_mode_pending="Disabled",
)  # fmt: skip
GB200 = variant(
    B300, name="NVIDIA GB200", memory_total_mib=189471, gsp_firmware_version="580.95.05", fabric_clique_id=32766,
    fabric_cluster_uuid="b2daed23-0000-0000-0000-000000000000",
    pcie={"gen": None, "gen_max": None, "width": None, "width_max": None, "replays": None, "replay_rollovers": None},
)  # fmt: skip
L4_SHARE = dict.fromkeys(gpus.H100)
L4_SHARE.update(name="NVIDIA L4-3Q", memory_total_mib=3072, memory_used_mib=0, persistence_mode="Enabled", processes=[])
V100 = variant(gpus.T4, name="Tesla V100-SXM2-32GB", memory_total_mib=32510, temperature_slowdown_c=87)
V100["pcie"] = {**gpus.T4["pcie"], "width": 16}
OLD_DRIVER = ("recovery_action", "reset_required", "drain_and_reset_recommended", "sram_threshold_exceeded",
              "channel_repair_pending", "tpc_repair_pending", "gsp_firmware_version", "fabric_state", "fabric_status",
              "fabric_health", "temperature_tlimit_c")  # fmt: skip
A100_450 = {key: value for key, value in gpus.A100.items() if key not in OLD_DRIVER}
NODES = {
    "p5.48xlarge": (gpus.H100, 8, "580.95.05"),
    "p4d.24xlarge": (gpus.A100, 8, "580.95.05"),
    "p6-b300.48xlarge": (B300, 8, "595.91.07"),
    "g4dn.12xlarge": (gpus.T4, 4, "580.95.05"),
    "g5.48xlarge": (A10G, 8, "580.95.05"),
    "g6.xlarge": (L4, 1, "580.95.05"),
    "g7e.48xlarge": (RTX, 8, "580.95.05"),
    "p3dn.24xlarge": (V100, 8, "580.95.05"),
    "p5.4xlarge": (gpus.H100, 1, "580.95.05"),
    "p6e-gb200.36xlarge": (GB200, 4, "580.95.05"),
    "g6f.large": (L4_SHARE, 1, "580.95.05"),
    "none": (gpus.H100, 1, "580.95.05"),
}


test_gpu_healthy_nodes = table(
    *(row("no GPU is unknown", judging(check_id, gpus.node(count=0)), UNKNOWN)
        for check_id in [name for name in SMI_CHECKS if name not in ("driver_version", "cuda_version")]),
    *(row("type without GPU is skipped", judging(check_id, gpus.node(), "trn1.32xlarge"), SKIP)
        for check_id in SMI_CHECKS),
)  # fmt: skip


@pytest.mark.parametrize("check_id", SMI_CHECKS)
@pytest.mark.parametrize("instance_type", NODES)
def test_healthy_node_is_not_held_back(check_id, instance_type):
    base, count, driver = NODES[instance_type]
    facts = gpus.node(base, count, driver_version=driver, cuda_version="13.2")
    if base["gsp_firmware_version"]:
        gpus.put_all(facts, "gsp_firmware_version", driver)
    findings = judging(check_id, facts, instance_type)
    assert findings
    assert not [finding for finding in findings if finding.status in BLOCKING]


@pytest.mark.parametrize("check_id", SMI_CHECKS)
def test_old_driver_prints_less(check_id):
    facts = gpus.node(A100_450, 8, driver_version="450.80.02", cuda_version="11.0")
    assert status(judging(check_id, facts, "p4d.24xlarge")) not in BLOCKING


@pytest.mark.parametrize("check_id", [name for name in SMI_CHECKS if name not in ("driver_version", "cuda_version")])
def test_gpu_without_any_field_never_passes(check_id):
    facts = {"nvidia_smi": {"gpus": [{"index": index} for index in range(8)], "errors": []}}
    assert status(judging(check_id, facts)) in (UNKNOWN, SKIP)


@pytest.mark.parametrize("check_id", [name for name in SMI_CHECKS if name not in ("driver_version", "cuda_version")])
def test_one_gpu_printing_only_errors_is_never_passed_over(check_id):
    facts = gpus.node()
    lost = facts["nvidia_smi"]["gpus"][3]
    for key in lost:
        if key not in ("index", "pci_bus_id"):
            lost[key] = "GPU is lost"
    findings = judging(check_id, facts)
    assert any(finding.device.get("index") == 3 for finding in findings if finding.status in BLOCKING)


@pytest.mark.parametrize(
    ("check", "path"),
    [
        ("gpu_vbios", "vbios_version"),
        ("ecc_corrected", "ecc_corrected_volatile"),
        ("power_limit", "power.limit_w"),
        ("pcie_width", "pcie.width"),
        ("pcie_gen", "pcie.gen_max"),
        ("gpu_processes", "processes"),
    ],
)
def test_a_field_that_no_gpu_prints_does_not_block_and_one_that_is_not_available_does(check, path):
    def without(path):
        facts = gpus.node()
        for gpu in facts["nvidia_smi"]["gpus"]:
            target, *rest = path.split(".")
            if rest:
                gpu[target].pop(rest[0], None)
            else:
                gpu.pop(target, None)
        return facts

    assert status(judging(check, without(path))) is SKIP
    assert status(judging(check, gpus.every(path, None))) is UNKNOWN
    one = without(path)
    one["nvidia_smi"]["gpus"][0] = gpus.node()["nvidia_smi"]["gpus"][0]
    assert status(judging(check, one)) is UNKNOWN
