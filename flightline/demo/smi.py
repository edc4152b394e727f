"""What nvidia-smi prints on a healthy simulated node, in the layout of driver 580.

`@UUID0@`, `@SERIAL0@` and so on stand where a node's own identity goes; materialising a node fills
them in, so that the output of a type is made once however many nodes there are.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List

from .hardware import GpuModel, Machine, ranges

_DEPRECATED = "Requested functionality has been deprecated"
_IDLE_SM_MHZ = 345
_Section = Dict[str, Any]
"""Elements in their order: a text, or the section below."""


def xml(machine: Machine) -> str:
    """`nvidia-smi -q -x`."""
    gpus = "".join(
        f'\t<gpu id="{_bus_id(pci)}">\n{_elements(2, _gpu(machine, index, pci))}\t</gpu>\n'
        for index, pci in enumerate(machine.gpu_pci())
    )
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
\t<timestamp>Fri Nov 20 09:30:00 2026</timestamp>
\t<driver_version>{machine.driver}</driver_version>
\t<cuda_version>{machine.cuda}</cuda_version>
\t<attached_gpus>{machine.gpu_count}</attached_gpus>
{gpus}</nvidia_smi_log>
"""


def _elements(depth: int, section: _Section) -> str:
    edge, lines = "\t" * depth, []
    for name, value in section.items():
        inner = f"\n{_elements(depth + 1, value)}{edge}" if isinstance(value, dict) else value
        lines.append(f"{edge}<{name}>{inner}</{name}>\n")
    return "".join(lines)


def _all(value: str, names: str) -> _Section:
    """Elements that say the same."""
    return dict.fromkeys(names.split(), value)


def _absent(names: str) -> _Section:
    return _all("N/A", names)


def _bus_id(pci: str) -> str:
    return f"0000{pci}".upper()


def _gpu(machine: Machine, index: int, pci: str) -> _Section:
    gpu = machine.gpu
    return {
        **_identity(machine, index, pci),
        **_modes(machine),
        "pci": _pci(gpu, pci),
        "fan_speed": "N/A",
        "performance_state": "P0",
        **_clock_events(),
        "sparse_operation_mode": "N/A",
        **_memory(gpu),
        "compute_mode": "Default",
        **_use(),
        "ecc_errors": _ecc(gpu),
        "retired_pages": _retired(gpu),
        "remapped_rows": _remapped(gpu),
        **_temperature(gpu, 28 + (index * 3) % 7),
        **_power(gpu, index),
        **_clocks(gpu),
        "fabric": _fabric(machine),
        "processes": "\n\t\t",
        "accounted_processes": "\n\t\t",
        "capabilities": {"egm": "disabled"},
    }


def _identity(machine: Machine, index: int, pci: str) -> _Section:
    gpu = machine.gpu
    mig = "Disabled" if "mig" in gpu.flags else "N/A"
    return {
        "product_name": gpu.name,
        "product_brand": "Tesla" if gpu.name.startswith("Tesla") else "NVIDIA",
        "product_architecture": gpu.architecture,
        "display_mode": _DEPRECATED,
        "display_attached": "No",
        "display_active": "Disabled",
        "persistence_mode": "Enabled",
        "addressing_mode": "None" if "nogsp" in gpu.flags else "HMM",
        "mig_mode": _all(mig, "current_mig pending_mig"),
        "mig_devices": "\n\t\t\tNone\n\t\t",
        "accounting_mode": "Disabled",
        "accounting_mode_buffer_size": "4000",
        "driver_model": _absent("current_dm pending_dm"),
        "serial": f"@SERIAL{index}@",
        "uuid": f"@UUID{index}@",
        "minor_number": f"{index}",
        "vbios_version": gpu.vbios,
        "multigpu_board": "No",
        "board_id": f"0x{pci[5:7]}{pci[8:10]}",
        "board_part_number": "N/A",
        "gpu_part_number": f"{gpu.pci_id}-885-A1",
        "gpu_fru_part_number": "N/A",
        "platformInfo": {
            **_absent("chassis_serial_number slot_number tray_index host_id peer_type"),
            "module_id": f"{index + 1}",
            "gpu_fabric_guid": "N/A",
        },
    }


def _modes(machine: Machine) -> _Section:
    return {
        "inforom_version": {
            "img_version": "G520.0200.00.05",
            "oem_object": "2.1",
            "ecc_object": "7.16",
            "pwr_object": "N/A",
        },
        "inforom_bbx_flush": _absent("latest_timestamp latest_duration"),
        "gpu_operation_mode": _absent("current_gom pending_gom"),
        "c2c_mode": "N/A",
        "gpu_virtualization_mode": {
            "virtualization_mode": "Pass-Through",
            **_absent("host_vgpu_mode vgpu_heterogeneous_mode"),
        },
        "gpu_recovery_action": "None",
        "gsp_firmware_version": "N/A" if "nogsp" in machine.gpu.flags else machine.driver,
        "ibmnpu": _absent("relaxed_ordering_mode"),
    }


def _pci(gpu: GpuModel, pci: str) -> _Section:
    # Host slots of g4dn and g5 give a x16 part eight lanes: a current width below the maximum is normal there.
    generations = "max_link_gen current_link_gen device_current_link_gen max_device_link_gen max_host_link_gen"
    return {
        "pci_bus": pci[5:7].upper(),
        "pci_device": pci[8:10].upper(),
        "pci_domain": "0000",
        "pci_base_class": "3",
        "pci_sub_class": "2",
        "pci_device_id": f"{gpu.pci_id}10DE",
        "pci_bus_id": _bus_id(pci),
        "pci_sub_system_id": "16C110DE",
        "pci_gpu_link_info": {
            "pcie_gen": _all(f"{gpu.pcie_gen}", generations),
            "link_widths": {"max_link_width": "16x", "current_link_width": f"{gpu.width}x"},
        },
        "pci_bridge_chip": _absent("bridge_chip_type bridge_chip_fw"),
        **_all("0", "replay_counter replay_rollover_counter"),
        "tx_util": "485 KB/s",
        "rx_util": "528 KB/s",
        **_absent("atomic_caps_outbound atomic_caps_inbound"),
    }


_REASONS = """
applications_clocks_setting sw_power_cap hw_slowdown hw_thermal_slowdown hw_power_brake_slowdown sync_boost
sw_thermal_slowdown display_clocks_setting
"""
_COUNTED = "sw_power_cap sync_boost sw_therm_slowdown hw_therm_slowdown hw_power_brake"


def _clock_events() -> _Section:
    reasons = {"gpu_idle": "Active", **_all("Not Active", _REASONS)}
    return {
        "clocks_event_reasons": {f"clocks_event_reason_{name}": said for name, said in reasons.items()},
        "clocks_event_reasons_counters": {f"clocks_event_reasons_counters_{name}": "0 us" for name in _COUNTED.split()},
    }


def _memory(gpu: GpuModel) -> _Section:
    reserved = max(gpu.memory // 130, 300)
    return {
        "fb_memory_usage": {
            "total": f"{gpu.memory} MiB",
            "reserved": f"{reserved} MiB",
            "used": "1 MiB",
            "free": f"{gpu.memory - reserved - 1} MiB",
        },
        "bar1_memory_usage": {"total": f"{gpu.bar1} MiB", "used": "1 MiB", "free": f"{gpu.bar1 - 1} MiB"},
        "cc_protected_memory_usage": _all("0 MiB", "total used free"),
    }


def _use() -> _Section:
    session = _all("0", "session_count average_fps average_latency")
    return {
        "utilization": _all("0 %", "gpu_util memory_util encoder_util decoder_util jpeg_util ofa_util"),
        "encoder_stats": session,
        "fbc_stats": session,
        "dram_encryption_mode": _absent("current_dram_encryption pending_dram_encryption"),
        "ecc_mode": _all("Enabled", "current_ecc pending_ecc"),
    }


_BITS = "device_memory register_file l1_cache l2_cache texture_memory texture_shm cbu total"
_TURING = "sram_correctable sram_uncorrectable dram_correctable dram_uncorrectable"
_LATER = "sram_correctable sram_uncorrectable_parity sram_uncorrectable_secded dram_correctable dram_uncorrectable"
_SOURCES = "sram_l2 sram_sm sram_microcontroller sram_pcie sram_other"


def _ecc(gpu: GpuModel) -> _Section:
    if gpu.architecture == "Volta":  # counts single and double bits per structure
        bits = {f"{kind}_bit": _all("0", _BITS) for kind in ("single", "double")}
        return {"volatile": bits, "aggregate": bits}
    if gpu.architecture == "Turing":
        return {"volatile": _all("0", _TURING), "aggregate": _all("0", _TURING)}
    counts = _all("0", _LATER)
    return {
        "volatile": counts,
        "aggregate": {**counts, "sram_threshold_exceeded": "No"},
        "aggregate_uncorrectable_sram_sources": _all("0", _SOURCES),
        **_all("No" if gpu.architecture == "Blackwell" else "N/A", "channel_repair_pending tpc_repair_pending"),
    }


def _retired(gpu: GpuModel) -> _Section:
    count, answer, pages = ("N/A", "N/A", "N/A") if gpu.banks else ("0", "No", "\n\t\t\t\t")
    retired = {"retired_count": count, "retired_pagelist": pages}
    return {
        "multiple_single_bit_retirement": retired,
        "double_bit_retirement": retired,
        **_all(answer, "pending_blacklist pending_retirement"),
    }


def _remapped(gpu: GpuModel) -> Any:
    if not gpu.banks:
        return "N/A"
    banks = {"max": gpu.banks, **dict.fromkeys(("high", "partial", "low", "none"), 0)}
    return {
        **_all("0", "remapped_row_corr remapped_row_unc"),
        **_all("No", "remapped_row_pending remapped_row_failure"),
        "row_remapper_histogram": {
            f"row_remapper_histogram_{name}": f"{count} bank(s)" for name, count in banks.items()
        },
    }


def _temperature(gpu: GpuModel, temp: int) -> _Section:
    shutdown, slowdown, highest = gpu.temps
    infix, left = ("_tlimit", f"{87 - temp} C") if gpu.tlimit else ("", "N/A")
    hbm = gpu.architecture in ("Volta", "Ampere", "Hopper", "Blackwell") and gpu.memory >= 32768
    return {
        "temperature": {
            "gpu_temp": f"{temp} C",
            "gpu_temp_tlimit": left,
            f"gpu_temp_max{infix}_threshold": f"{shutdown} C",
            f"gpu_temp_slow{infix}_threshold": f"{slowdown} C",
            f"gpu_temp_max_gpu{infix}_threshold": f"{highest} C",
            "gpu_target_temperature": "N/A",
            "memory_temp": f"{temp + 8} C" if hbm else "N/A",
            f"gpu_temp_max_mem{infix}_threshold": ("0 C" if gpu.tlimit else "95 C") if hbm else "N/A",
        },
        "supported_gpu_target_temp": _absent("gpu_target_temp_min gpu_target_temp_max"),
    }


_DRAWS = "average_power_draw instant_power_draw"


def _power(gpu: GpuModel, index: int) -> _Section:
    draw, limit = gpu.power * (10 + index % 3) / 100, f"{gpu.power}.00 W"
    return {
        "gpu_power_readings": {
            "power_state": _DEPRECATED,
            **_all(f"{draw:.2f} W", _DRAWS),
            **_all(limit, "current_power_limit requested_power_limit default_power_limit"),
            "min_power_limit": f"{gpu.power * 2 // 7}.00 W",
            "max_power_limit": limit,
        },
        "gpu_memory_power_readings": _absent(_DRAWS),
        "module_power_readings": {
            "power_state": _DEPRECATED,
            **_absent(_DRAWS),
            **_absent(" ".join(f"{kind}_power_limit" for kind in ("current", "requested", "default", "min", "max"))),
        },
        "power_smoothing": "N/A",
        "power_profiles": _absent("power_profile_requested_profiles power_profile_enforced_profiles"),
    }


def _clocks(gpu: GpuModel) -> _Section:
    applications = _all(_DEPRECATED, "graphics_clock mem_clock")
    return {
        "clocks": {
            **_all(f"{_IDLE_SM_MHZ} MHz", "graphics_clock sm_clock"),
            "mem_clock": f"{gpu.memory_clock} MHz",
            "video_clock": "765 MHz",
        },
        "applications_clocks": applications,
        "default_applications_clocks": applications,
        "deferred_clocks": _absent("mem_clock"),
        "max_clocks": {
            **_all(f"{gpu.sm_clock} MHz", "graphics_clock sm_clock"),
            "mem_clock": f"{gpu.memory_clock} MHz",
            "video_clock": f"{gpu.sm_clock * 9 // 10} MHz",
        },
        "max_customer_boost_clocks": {"graphics_clock": f"{gpu.sm_clock} MHz"},
        "clock_policy": _absent("auto_boost auto_boost_default"),
    }


_FABRIC_HEALTH = {
    "summary": "Healthy",
    "bandwidth": "N/A",
    **_all("False", "route_recovery_in_progress route_unhealthy access_timeout_recovery"),
    "incorrect_configuration": "None",
}


def _fabric(machine: Machine) -> _Section:
    # A100's driver leaves the fabric block to later parts.
    if not machine.switched or machine.gpu.architecture == "Ampere":
        return {**_absent("state status cliqueId clusterUuid"), "health": _absent(" ".join(_FABRIC_HEALTH))}
    return {
        "state": "Completed",
        "status": "Success",
        "cliqueId": "0",
        "clusterUuid": "00000000-0000-0000-0000-000000000000",
        "health": _FABRIC_HEALTH,
    }


_CUBE_MESH = ("01122000", "10210200", "12020010", "21200001", "20000112", "02001021", "00101202", "00012120")
"""NVLinks between the V100s of a p3dn, which has no switch: row and column are GPUs, six links each."""


def topo(machine: Machine, gone: FrozenSet[int] = frozenset()) -> str:
    """`nvidia-smi topo -m`; GPUs after one that is gone move up in the numbering."""
    present = [index for index in range(machine.gpu_count) if index not in gone]
    devices, nodes = machine.efa_devices(), machine.numa_nodes
    count = len(present)
    names = [f"GPU{index}" for index in range(count)] + [f"NIC{index}" for index in range(len(devices))]
    where = [machine.gpu_node(i) for i in present] + [i * nodes // max(len(devices), 1) for i in range(len(devices))]
    per_gpu = max(len(devices) // max(machine.gpu_count, 1), 1)

    def cell(row: int, column: int) -> str:
        if row == column:
            return " X "
        if row < count and column < count and machine.links:
            direct = (
                int(_CUBE_MESH[present[row]][present[column]]) if machine.gpu.architecture == "Volta" else machine.links
            )
            return f"NV{direct}" if direct else "SYS"
        if where[row] != where[column]:
            return "SYS"
        low, high = sorted((row, column))
        if low < count <= high and machine.switched and (high - count) // per_gpu == present[low]:
            return "PIX"
        return "NODE" if machine.switched or nodes > 1 else "PHB"

    lines = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for row, name in enumerate(names):
        cells = "\t".join(cell(row, column) for column in range(len(names)))
        node = where[row]
        tail = f"\t{ranges(machine.node_cpus(node))}\t{node}\t\tN/A" if row < count else ""
        lines.append(f"{name}\t{cells}{tail}")
    legend = _LEGEND + "".join(f"  NIC{index}: {device}\n" for index, device in enumerate(devices))
    return "\n".join(lines) + "\n" + (legend if devices else _LEGEND.split("NIC Legend")[0])


_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

"""


def _rate(machine: Machine) -> str:
    rate = machine.expected.nvlink_gb_s_per_link or {"Volta": 25.781, "Blackwell": 53.125}.get(
        machine.gpu.architecture, 25.0
    )
    return f"{rate:g}"


def _without_nvlink(machine: Machine) -> str:
    """Where no GPU has NVLink, driver 580 prints nothing at all and 595 says so for each GPU."""
    if int(machine.driver.split(".")[0]) < 595:
        return ""
    lines = [f"GPU {i}: {machine.gpu.name} (UUID: @UUID{i}@)" for i in range(machine.gpu_count)]
    return "".join(f"{line}\nDevice does not have or support Nvlink\n" for line in lines)


def nvlink_status(machine: Machine) -> str:
    """`nvidia-smi nvlink -s`."""
    if not machine.links:
        return _without_nvlink(machine)
    lines: List[str] = []
    for index in range(machine.gpu_count):
        lines.append(f"GPU {index}: {machine.gpu.name} (UUID: @UUID{index}@)")
        lines += [f"\t Link {link}: {_rate(machine)} GB/s" for link in range(machine.links)]
    return "\n".join(lines) + "\n"


_LINK_COUNTERS = ("Replay Errors", "Recovery Errors", "CRC Errors")
# NVLink 5 replaced the three counters; field reports give these names and healthy values.
_LINK5_COUNTERS = (
    ("Malformed packet Errors", "0"),
    ("Buffer overrun Errors", "0"),
    ("Rx Errors", "0"),
    ("Rx remote Errors", "0"),
    ("Rx General Errors", "0"),
    ("Local link integrity Errors", "0"),
    ("Tx discards", "0"),
    ("Link recovery successful events", "0"),
    ("Link recovery failed events", "0"),
    ("Total link recovery events", "0"),
    ("Effective Errors", "0"),
    ("Effective BER", "15e-255"),
    ("Symbol Errors", "0"),
    ("Symbol BER", "15e-255"),
)


def nvlink_errors(machine: Machine) -> str:
    """`nvidia-smi nvlink -e`."""
    if not machine.links:
        return _without_nvlink(machine)
    newer = machine.gpu.architecture == "Blackwell"
    counters = _LINK5_COUNTERS if newer else tuple((name, "0") for name in _LINK_COUNTERS)
    lines: List[str] = []
    for index in range(machine.gpu_count):
        lines.append(f"GPU {index}: {machine.gpu.name} (UUID: @UUID{index}@)")
        for link in range(machine.links):
            lines += [f"\t Link {link}: {name}: {value}" for name, value in counters] + [""]
    return "\n".join(lines) + "\n"
