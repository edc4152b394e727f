"""Facts of healthy GPUs, made by hand after nvidia-smi's documented fields, for the tests of GPU checks."""

import copy
from typing import Any

H100: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "memory_total_mib": 81559,
    "memory_used_mib": 4,
    "temperature_c": 31,
    "temperature_memory_c": 42,
    "temperature_slowdown_c": None,
    "temperature_tlimit_c": 56,
    "temperature_slowdown_tlimit_c": -2,
    "temperature_memory_max_operating_c": 95,
    "ecc_mode": "Enabled",
    "ecc_mode_pending": "Enabled",
    "ecc_uncorrected_volatile": 0,
    "ecc_uncorrected_aggregate": 0,
    "ecc_corrected_volatile": 0,
    "ecc_corrected_aggregate": 3,
    "ecc": {"volatile": {"dram_uncorrectable": 0, "sram_uncorrectable_parity": 0}, "aggregate": {}},
    "sram_threshold_exceeded": False,
    "channel_repair_pending": False,
    "tpc_repair_pending": False,
    "remap": {
        "corrected": 0,
        "uncorrected": 0,
        "pending": False,
        "failure": False,
        "histogram": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
    },
    "retired_pages": None,
    "throttle_active": ["gpu_idle"],
    "recovery_action": "None",
    "reset_required": None,
    "drain_and_reset_recommended": None,
    "fabric_state": "Completed",
    "fabric_status": "Success",
    "fabric_clique_id": 0,
    "fabric_cluster_uuid": "00000000-0000-0000-0000-000000000000",
    "fabric_health": {"bandwidth": "Full", "route_recovery_in_progress": "False", "route_unhealthy": "False"},
    "mig_mode": "Disabled",
    "mig_mode_pending": "Disabled",
    "pcie": {"gen": 1, "gen_max": 5, "width": 16, "width_max": 16, "replays": 0, "replay_rollovers": 0},
    "persistence_mode": "Enabled",
    "compute_mode": "Default",
    "performance_state": "P0",
    "vbios_version": "96.00.A5.00.01",
    "gsp_firmware_version": "580.95.05",
    "inforom": {"image": "G520.0200.00.05", "oem": "2.1", "ecc": "7.16", "power": None},
    "power": {"draw_w": 71.5, "limit_w": 700.0, "default_limit_w": 700.0},
    "clocks": {"sm_mhz": 345, "memory_mhz": 2619},
    "clocks_max": {"sm_mhz": 1980, "memory_mhz": 2619},
    "processes": [],
}
A100 = {
    **H100,
    "name": "NVIDIA A100-SXM4-40GB",
    "memory_total_mib": 40960,
    "temperature_tlimit_c": None,
    "temperature_slowdown_c": 89,
    "fabric_state": None,
    "fabric_status": None,
    "fabric_clique_id": None,
    "fabric_cluster_uuid": None,
    "fabric_health": {"bandwidth": None},
    "gsp_firmware_version": None,
    "power": {"draw_w": 55.1, "limit_w": 400.0, "default_limit_w": 400.0},
    "clocks_max": {"sm_mhz": 1410, "memory_mhz": 1215},
    "pcie": {"gen": 4, "gen_max": 4, "width": 16, "width_max": 16, "replays": 0, "replay_rollovers": 0},
}
T4 = {
    **H100,
    "name": "Tesla T4",
    "memory_total_mib": 15360,
    "temperature_memory_c": None,
    "temperature_memory_max_operating_c": None,
    "temperature_tlimit_c": None,
    "temperature_slowdown_c": 93,
    "sram_threshold_exceeded": None,
    "channel_repair_pending": None,
    "tpc_repair_pending": None,
    "remap": None,
    "retired_pages": {"single_bit": 0, "double_bit": 0, "pending": False},
    "fabric_state": None,
    "fabric_status": None,
    "mig_mode": None,
    "mig_mode_pending": None,
    "power": {"draw_w": 9.1, "limit_w": 70.0, "default_limit_w": 70.0},
    "pcie": {"gen": 1, "gen_max": 3, "width": 8, "width_max": 16, "replays": 0, "replay_rollovers": 0},
}


def node(base: dict[str, Any] = H100, count: int = 8, **top: Any) -> dict[str, Any]:
    """Facts of nvidia_smi and nvlink for a healthy node; `top` goes beside gpus."""
    listed = []
    for index in range(count):
        gpu = copy.deepcopy(base)
        gpu.update(
            index=index, uuid=f"GPU-{index}", serial=f"165{index}", pci_bus_id=f"00000000:{index + 0x53:02X}:00.0"
        )
        listed.append(gpu)
    smi = {"driver_version": "580.95.05", "cuda_version": "13.0", "attached_gpus": count, "gpus": listed, "errors": []}
    return {"nvidia_smi": {**smi, **top}}


def put(facts: dict[str, Any], index: int, path: str, value: Any) -> dict[str, Any]:
    """Set one field ('remap.pending') of one GPU; returns the facts."""
    place, keys = facts["nvidia_smi"]["gpus"][index], path.split(".")
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return facts


def put_all(facts: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set one field of every GPU."""
    for index in range(len(facts["nvidia_smi"]["gpus"])):
        put(facts, index, path, value)
    return facts


def drop_all(facts: dict[str, Any], name: str) -> dict[str, Any]:
    """Take one field away from every GPU, as a driver that does not print it."""
    for gpu in facts["nvidia_smi"]["gpus"]:
        gpu.pop(name, None)
    return facts


def one(index: int, path: str, value: Any) -> dict[str, Any]:
    """A healthy node but for one field of one GPU."""
    return put(node(), index, path, value)


def every(path: str, value: Any) -> dict[str, Any]:
    """A healthy node but for one field of every GPU."""
    return put_all(node(), path, value)


def silent(name: str) -> dict[str, Any]:
    """A healthy node whose driver does not print one field."""
    return drop_all(node(), name)


def nvlink(count: int = 8, links: int = 18, speed: float = 26.562, **errors: Any) -> dict[str, Any]:
    """Facts of nvlink for a healthy node; `errors` are the counters of every GPU."""
    counters = errors or {"replay_errors": 0, "recovery_errors": 0, "crc_errors": 0}
    return {
        "nvlink": {
            "gpus": [
                {
                    "index": index,
                    "links": links,
                    "inactive": 0,
                    "speed_gb_s": speed,
                    "link_speeds": [speed] * links,
                    "errors": dict(counters),
                }
                for index in range(count)
            ],
            "errors": [],
        }
    }


def topo(paths: dict[str, int], count: int = 8, numa: list[str] | None = None) -> dict[str, Any]:
    """Facts of nvidia_smi_topo: number of GPU pairs by path, NUMA node of each GPU."""
    names = [f"GPU{index}" for index in range(count)]
    nodes = numa or ["0"] * (count // 2) + ["1"] * (count - count // 2)
    return {
        "nvidia_smi_topo": {
            "gpus": names,
            "nics": [],
            "gpu_pair_links": paths,
            "pairs": [{"a": "GPU0", "b": f"GPU{n}", "link": path} for n, path in enumerate(paths, 1)],
            "numa_affinity": dict(zip(names, nodes)),
            "errors": [],
        }
    }
