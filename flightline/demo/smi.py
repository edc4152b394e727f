"""What nvidia-smi prints on a healthy simulated node, in the layout of driver 580.

`@UUID0@`, `@SERIAL0@` and so on stand where a node's own identity goes; materialising a node fills
them in, so that the output of a type is made once however many nodes there are.
"""

from __future__ import annotations

from typing import FrozenSet, List

from .hardware import GpuModel, Machine, ranges

_DEPRECATED = "Requested functionality has been deprecated"
_IDLE_SM_MHZ = 345


def xml(machine: Machine) -> str:
    """`nvidia-smi -q -x`."""
    gpus = "".join(_gpu(machine, index, pci) for index, pci in enumerate(machine.gpu_pci()))
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
\t<timestamp>Fri Nov 20 09:30:00 2026</timestamp>
\t<driver_version>{machine.driver}</driver_version>
\t<cuda_version>{machine.cuda}</cuda_version>
\t<attached_gpus>{machine.gpu_count}</attached_gpus>
{gpus}</nvidia_smi_log>
"""


_GPU = """\t<gpu id="{bus_id}">
\t\t<product_name>{gpu.name}</product_name>
\t\t<product_brand>{brand}</product_brand>
\t\t<product_architecture>{gpu.architecture}</product_architecture>
\t\t<display_mode>{deprecated}</display_mode>
\t\t<display_attached>No</display_attached>
\t\t<display_active>Disabled</display_active>
\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<addressing_mode>{addressing}</addressing_mode>
\t\t<mig_mode>
\t\t\t<current_mig>{mig}</current_mig>
\t\t\t<pending_mig>{mig}</pending_mig>
\t\t</mig_mode>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t\t<accounting_mode>Disabled</accounting_mode>
\t\t<accounting_mode_buffer_size>4000</accounting_mode_buffer_size>
\t\t<driver_model>
\t\t\t<current_dm>N/A</current_dm>
\t\t\t<pending_dm>N/A</pending_dm>
\t\t</driver_model>
\t\t<serial>@SERIAL{index}@</serial>
\t\t<uuid>@UUID{index}@</uuid>
\t\t<minor_number>{index}</minor_number>
\t\t<vbios_version>{gpu.vbios}</vbios_version>
\t\t<multigpu_board>No</multigpu_board>
\t\t<board_id>0x{board}</board_id>
\t\t<board_part_number>N/A</board_part_number>
\t\t<gpu_part_number>{gpu.pci_id}-885-A1</gpu_part_number>
\t\t<gpu_fru_part_number>N/A</gpu_fru_part_number>
\t\t<platformInfo>
\t\t\t<chassis_serial_number>N/A</chassis_serial_number>
\t\t\t<slot_number>N/A</slot_number>
\t\t\t<tray_index>N/A</tray_index>
\t\t\t<host_id>N/A</host_id>
\t\t\t<peer_type>N/A</peer_type>
\t\t\t<module_id>{module}</module_id>
\t\t\t<gpu_fabric_guid>N/A</gpu_fabric_guid>
\t\t</platformInfo>
\t\t<inforom_version>
\t\t\t<img_version>G520.0200.00.05</img_version>
\t\t\t<oem_object>2.1</oem_object>
\t\t\t<ecc_object>7.16</ecc_object>
\t\t\t<pwr_object>N/A</pwr_object>
\t\t</inforom_version>
\t\t<inforom_bbx_flush>
\t\t\t<latest_timestamp>N/A</latest_timestamp>
\t\t\t<latest_duration>N/A</latest_duration>
\t\t</inforom_bbx_flush>
\t\t<gpu_operation_mode>
\t\t\t<current_gom>N/A</current_gom>
\t\t\t<pending_gom>N/A</pending_gom>
\t\t</gpu_operation_mode>
\t\t<c2c_mode>N/A</c2c_mode>
\t\t<gpu_virtualization_mode>
\t\t\t<virtualization_mode>Pass-Through</virtualization_mode>
\t\t\t<host_vgpu_mode>N/A</host_vgpu_mode>
\t\t\t<vgpu_heterogeneous_mode>N/A</vgpu_heterogeneous_mode>
\t\t</gpu_virtualization_mode>
\t\t<gpu_recovery_action>None</gpu_recovery_action>
\t\t<gsp_firmware_version>{gsp}</gsp_firmware_version>
\t\t<ibmnpu>
\t\t\t<relaxed_ordering_mode>N/A</relaxed_ordering_mode>
\t\t</ibmnpu>
{pci}\t\t<fan_speed>N/A</fan_speed>
\t\t<performance_state>P0</performance_state>
{clock_events}\t\t<sparse_operation_mode>N/A</sparse_operation_mode>
{memory}\t\t<compute_mode>Default</compute_mode>
\t\t<utilization>
\t\t\t<gpu_util>0 %</gpu_util>
\t\t\t<memory_util>0 %</memory_util>
\t\t\t<encoder_util>0 %</encoder_util>
\t\t\t<decoder_util>0 %</decoder_util>
\t\t\t<jpeg_util>0 %</jpeg_util>
\t\t\t<ofa_util>0 %</ofa_util>
\t\t</utilization>
\t\t<encoder_stats>
\t\t\t<session_count>0</session_count>
\t\t\t<average_fps>0</average_fps>
\t\t\t<average_latency>0</average_latency>
\t\t</encoder_stats>
\t\t<fbc_stats>
\t\t\t<session_count>0</session_count>
\t\t\t<average_fps>0</average_fps>
\t\t\t<average_latency>0</average_latency>
\t\t</fbc_stats>
\t\t<dram_encryption_mode>
\t\t\t<current_dram_encryption>N/A</current_dram_encryption>
\t\t\t<pending_dram_encryption>N/A</pending_dram_encryption>
\t\t</dram_encryption_mode>
\t\t<ecc_mode>
\t\t\t<current_ecc>Enabled</current_ecc>
\t\t\t<pending_ecc>Enabled</pending_ecc>
\t\t</ecc_mode>
{health}\t\t<processes>
\t\t</processes>
\t\t<accounted_processes>
\t\t</accounted_processes>
\t\t<capabilities>
\t\t\t<egm>disabled</egm>
\t\t</capabilities>
\t</gpu>
"""


def _gpu(machine: Machine, index: int, pci: str) -> str:
    gpu, bus_id = machine.gpu, f"0000{pci}".upper()
    return _GPU.format(
        gpu=gpu,
        index=index,
        module=index + 1,
        bus_id=bus_id,
        board=pci[5:7] + pci[8:10],
        deprecated=_DEPRECATED,
        brand="Tesla" if gpu.name.startswith("Tesla") else "NVIDIA",
        addressing="None" if "nogsp" in gpu.flags else "HMM",
        gsp="N/A" if "nogsp" in gpu.flags else machine.driver,
        mig="Disabled" if "mig" in gpu.flags else "N/A",
        pci=_pci(gpu, pci, bus_id),
        clock_events=_clock_events(),
        memory=_memory(gpu),
        health=_health(machine, index),
    )


def _health(machine: Machine, index: int) -> str:
    gpu = machine.gpu
    temperature = _temperature(gpu, 28 + (index * 3) % 7)
    return (
        _ecc(gpu) + _retired(gpu) + _remapped(gpu) + temperature + _power(gpu, index) + _clocks(gpu) + _fabric(machine)
    )


def _pci(gpu: GpuModel, pci: str, bus_id: str) -> str:
    # Host slots of g4dn and g5 give a x16 part eight lanes: a current width below the maximum is normal there.
    return f"""\t\t<pci>
\t\t\t<pci_bus>{pci[5:7].upper()}</pci_bus>
\t\t\t<pci_device>{pci[8:10].upper()}</pci_device>
\t\t\t<pci_domain>0000</pci_domain>
\t\t\t<pci_base_class>3</pci_base_class>
\t\t\t<pci_sub_class>2</pci_sub_class>
\t\t\t<pci_device_id>{gpu.pci_id}10DE</pci_device_id>
\t\t\t<pci_bus_id>{bus_id}</pci_bus_id>
\t\t\t<pci_sub_system_id>16C110DE</pci_sub_system_id>
\t\t\t<pci_gpu_link_info>
\t\t\t\t<pcie_gen>
\t\t\t\t\t<max_link_gen>{gpu.pcie_gen}</max_link_gen>
\t\t\t\t\t<current_link_gen>{gpu.pcie_gen}</current_link_gen>
\t\t\t\t\t<device_current_link_gen>{gpu.pcie_gen}</device_current_link_gen>
\t\t\t\t\t<max_device_link_gen>{gpu.pcie_gen}</max_device_link_gen>
\t\t\t\t\t<max_host_link_gen>{gpu.pcie_gen}</max_host_link_gen>
\t\t\t\t</pcie_gen>
\t\t\t\t<link_widths>
\t\t\t\t\t<max_link_width>16x</max_link_width>
\t\t\t\t\t<current_link_width>{gpu.width}x</current_link_width>
\t\t\t\t</link_widths>
\t\t\t</pci_gpu_link_info>
\t\t\t<pci_bridge_chip>
\t\t\t\t<bridge_chip_type>N/A</bridge_chip_type>
\t\t\t\t<bridge_chip_fw>N/A</bridge_chip_fw>
\t\t\t</pci_bridge_chip>
\t\t\t<replay_counter>0</replay_counter>
\t\t\t<replay_rollover_counter>0</replay_rollover_counter>
\t\t\t<tx_util>485 KB/s</tx_util>
\t\t\t<rx_util>528 KB/s</rx_util>
\t\t\t<atomic_caps_outbound>N/A</atomic_caps_outbound>
\t\t\t<atomic_caps_inbound>N/A</atomic_caps_inbound>
\t\t</pci>
"""


def _clock_events() -> str:
    reasons = (
        ("gpu_idle", "Active"),
        *((name, "Not Active") for name in ("applications_clocks_setting", "sw_power_cap", "hw_slowdown")),
        *((name, "Not Active") for name in ("hw_thermal_slowdown", "hw_power_brake_slowdown", "sync_boost")),
        *((name, "Not Active") for name in ("sw_thermal_slowdown", "display_clocks_setting")),
    )
    lines = [f"\t\t\t<clocks_event_reason_{name}>{said}</clocks_event_reason_{name}>\n" for name, said in reasons]
    counters = [
        f"\t\t\t<clocks_event_reasons_counters_{name}>0 us</clocks_event_reasons_counters_{name}>\n"
        for name in ("sw_power_cap", "sync_boost", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake")
    ]
    return (
        f"\t\t<clocks_event_reasons>\n{''.join(lines)}\t\t</clocks_event_reasons>\n"
        f"\t\t<clocks_event_reasons_counters>\n{''.join(counters)}\t\t</clocks_event_reasons_counters>\n"
    )


def _memory(gpu: GpuModel) -> str:
    reserved = max(gpu.memory // 130, 300)
    return f"""\t\t<fb_memory_usage>
\t\t\t<total>{gpu.memory} MiB</total>
\t\t\t<reserved>{reserved} MiB</reserved>
\t\t\t<used>1 MiB</used>
\t\t\t<free>{gpu.memory - reserved - 1} MiB</free>
\t\t</fb_memory_usage>
\t\t<bar1_memory_usage>
\t\t\t<total>{gpu.bar1} MiB</total>
\t\t\t<used>1 MiB</used>
\t\t\t<free>{gpu.bar1 - 1} MiB</free>
\t\t</bar1_memory_usage>
\t\t<cc_protected_memory_usage>
\t\t\t<total>0 MiB</total>
\t\t\t<used>0 MiB</used>
\t\t\t<free>0 MiB</free>
\t\t</cc_protected_memory_usage>
"""


_BIT_COUNTERS = (
    "device_memory",
    "register_file",
    "l1_cache",
    "l2_cache",
    "texture_memory",
    "texture_shm",
    "cbu",
    "total",
)


def _lines(depth: int, names: List[str], value: str) -> str:
    return "".join("\t" * depth + f"<{name}>{value}</{name}>\n" for name in names)


def _ecc(gpu: GpuModel) -> str:
    if gpu.architecture == "Volta":  # counts single and double bits per structure
        bits = "".join(
            f"\t\t\t\t<{kind}_bit>\n{_lines(5, list(_BIT_COUNTERS), '0')}\t\t\t\t</{kind}_bit>\n"
            for kind in ("single", "double")
        )
        return (
            f"\t\t<ecc_errors>\n\t\t\t<volatile>\n{bits}\t\t\t</volatile>\n"
            f"\t\t\t<aggregate>\n{bits}\t\t\t</aggregate>\n\t\t</ecc_errors>\n"
        )
    if gpu.architecture == "Turing":
        counts = _lines(4, ["sram_correctable", "sram_uncorrectable", "dram_correctable", "dram_uncorrectable"], "0")
        return (
            f"\t\t<ecc_errors>\n\t\t\t<volatile>\n{counts}\t\t\t</volatile>\n"
            f"\t\t\t<aggregate>\n{counts}\t\t\t</aggregate>\n\t\t</ecc_errors>\n"
        )
    names = "sram_correctable sram_uncorrectable_parity sram_uncorrectable_secded dram_correctable dram_uncorrectable"
    counts = _lines(4, names.split(), "0")
    sources = _lines(4, [f"sram_{part}" for part in ("l2", "sm", "microcontroller", "pcie", "other")], "0")
    blackwell = gpu.architecture == "Blackwell"
    repairs = _lines(3, ["channel_repair_pending", "tpc_repair_pending"], "No" if blackwell else "N/A")
    return f"""\t\t<ecc_errors>
\t\t\t<volatile>
{counts}\t\t\t</volatile>
\t\t\t<aggregate>
{counts}\t\t\t\t<sram_threshold_exceeded>No</sram_threshold_exceeded>
\t\t\t</aggregate>
\t\t\t<aggregate_uncorrectable_sram_sources>
{sources}\t\t\t</aggregate_uncorrectable_sram_sources>
{repairs}\t\t</ecc_errors>
"""


def _retired(gpu: GpuModel) -> str:
    count, answer, pages = ("N/A", "N/A", "N/A") if gpu.banks else ("0", "No", "\n\t\t\t\t")
    return f"""\t\t<retired_pages>
\t\t\t<multiple_single_bit_retirement>
\t\t\t\t<retired_count>{count}</retired_count>
\t\t\t\t<retired_pagelist>{pages}</retired_pagelist>
\t\t\t</multiple_single_bit_retirement>
\t\t\t<double_bit_retirement>
\t\t\t\t<retired_count>{count}</retired_count>
\t\t\t\t<retired_pagelist>{pages}</retired_pagelist>
\t\t\t</double_bit_retirement>
\t\t\t<pending_blacklist>{answer}</pending_blacklist>
\t\t\t<pending_retirement>{answer}</pending_retirement>
\t\t</retired_pages>
"""


_HISTOGRAM = ("max", "high", "partial", "low", "none")


def _remapped(gpu: GpuModel) -> str:
    if not gpu.banks:
        return "\t\t<remapped_rows>N/A</remapped_rows>\n"
    counts = ((f"row_remapper_histogram_{name}", gpu.banks * (name == "max")) for name in _HISTOGRAM)
    banks = "".join(f"\t\t\t\t<{name}>{count} bank(s)</{name}>\n" for name, count in counts)
    return f"""\t\t<remapped_rows>
\t\t\t<remapped_row_corr>0</remapped_row_corr>
\t\t\t<remapped_row_unc>0</remapped_row_unc>
\t\t\t<remapped_row_pending>No</remapped_row_pending>
\t\t\t<remapped_row_failure>No</remapped_row_failure>
\t\t\t<row_remapper_histogram>
{banks}\t\t\t</row_remapper_histogram>
\t\t</remapped_rows>
"""


def _temperature(gpu: GpuModel, temp: int) -> str:
    shutdown, slowdown, highest = gpu.temps
    infix, left = ("_tlimit", f"{87 - temp} C") if gpu.tlimit else ("", "N/A")
    infix_mem = f"gpu_temp_max_mem{infix}_threshold"
    hbm = gpu.architecture in ("Volta", "Ampere", "Hopper", "Blackwell") and gpu.memory >= 32768
    return f"""\t\t<temperature>
\t\t\t<gpu_temp>{temp} C</gpu_temp>
\t\t\t<gpu_temp_tlimit>{left}</gpu_temp_tlimit>
\t\t\t<gpu_temp_max{infix}_threshold>{shutdown} C</gpu_temp_max{infix}_threshold>
\t\t\t<gpu_temp_slow{infix}_threshold>{slowdown} C</gpu_temp_slow{infix}_threshold>
\t\t\t<gpu_temp_max_gpu{infix}_threshold>{highest} C</gpu_temp_max_gpu{infix}_threshold>
\t\t\t<gpu_target_temperature>N/A</gpu_target_temperature>
\t\t\t<memory_temp>{f"{temp + 8} C" if hbm else "N/A"}</memory_temp>
\t\t\t<{infix_mem}>{("0 C" if gpu.tlimit else "95 C") if hbm else "N/A"}</{infix_mem}>
\t\t</temperature>
\t\t<supported_gpu_target_temp>
\t\t\t<gpu_target_temp_min>N/A</gpu_target_temp_min>
\t\t\t<gpu_target_temp_max>N/A</gpu_target_temp_max>
\t\t</supported_gpu_target_temp>
"""


def _power(gpu: GpuModel, index: int) -> str:
    draw = gpu.power * (10 + index % 3) / 100
    limits = [f"{kind}_power_limit" for kind in ("current", "requested", "default", "min", "max")]
    return f"""\t\t<gpu_power_readings>
\t\t\t<power_state>{_DEPRECATED}</power_state>
\t\t\t<average_power_draw>{draw:.2f} W</average_power_draw>
\t\t\t<instant_power_draw>{draw:.2f} W</instant_power_draw>
\t\t\t<current_power_limit>{gpu.power}.00 W</current_power_limit>
\t\t\t<requested_power_limit>{gpu.power}.00 W</requested_power_limit>
\t\t\t<default_power_limit>{gpu.power}.00 W</default_power_limit>
\t\t\t<min_power_limit>{gpu.power * 2 // 7}.00 W</min_power_limit>
\t\t\t<max_power_limit>{gpu.power}.00 W</max_power_limit>
\t\t</gpu_power_readings>
\t\t<gpu_memory_power_readings>
\t\t\t<average_power_draw>N/A</average_power_draw>
\t\t\t<instant_power_draw>N/A</instant_power_draw>
\t\t</gpu_memory_power_readings>
\t\t<module_power_readings>
\t\t\t<power_state>{_DEPRECATED}</power_state>
{_lines(3, ["average_power_draw", "instant_power_draw", *limits], "N/A")}\t\t</module_power_readings>
\t\t<power_smoothing>N/A</power_smoothing>
\t\t<power_profiles>
\t\t\t<power_profile_requested_profiles>N/A</power_profile_requested_profiles>
\t\t\t<power_profile_enforced_profiles>N/A</power_profile_enforced_profiles>
\t\t</power_profiles>
"""


def _clocks(gpu: GpuModel) -> str:
    return f"""\t\t<clocks>
\t\t\t<graphics_clock>{_IDLE_SM_MHZ} MHz</graphics_clock>
\t\t\t<sm_clock>{_IDLE_SM_MHZ} MHz</sm_clock>
\t\t\t<mem_clock>{gpu.memory_clock} MHz</mem_clock>
\t\t\t<video_clock>765 MHz</video_clock>
\t\t</clocks>
\t\t<applications_clocks>
\t\t\t<graphics_clock>{_DEPRECATED}</graphics_clock>
\t\t\t<mem_clock>{_DEPRECATED}</mem_clock>
\t\t</applications_clocks>
\t\t<default_applications_clocks>
\t\t\t<graphics_clock>{_DEPRECATED}</graphics_clock>
\t\t\t<mem_clock>{_DEPRECATED}</mem_clock>
\t\t</default_applications_clocks>
\t\t<deferred_clocks>
\t\t\t<mem_clock>N/A</mem_clock>
\t\t</deferred_clocks>
\t\t<max_clocks>
\t\t\t<graphics_clock>{gpu.sm_clock} MHz</graphics_clock>
\t\t\t<sm_clock>{gpu.sm_clock} MHz</sm_clock>
\t\t\t<mem_clock>{gpu.memory_clock} MHz</mem_clock>
\t\t\t<video_clock>{gpu.sm_clock * 9 // 10} MHz</video_clock>
\t\t</max_clocks>
\t\t<max_customer_boost_clocks>
\t\t\t<graphics_clock>{gpu.sm_clock} MHz</graphics_clock>
\t\t</max_customer_boost_clocks>
\t\t<clock_policy>
\t\t\t<auto_boost>N/A</auto_boost>
\t\t\t<auto_boost_default>N/A</auto_boost_default>
\t\t</clock_policy>
"""


_FABRIC_HEALTH = {
    "bandwidth": "N/A",
    "route_recovery_in_progress": "False",
    "route_unhealthy": "False",
    "access_timeout_recovery": "False",
    "incorrect_configuration": "None",
}


def _fabric(machine: Machine) -> str:
    if (
        not machine.switched or machine.gpu.architecture == "Ampere"
    ):  # A100's driver leaves the fabric block to later parts
        health = f"\t\t\t<health>\n{_lines(4, ['summary', *_FABRIC_HEALTH], 'N/A')}\t\t\t</health>\n"
        return (
            f"\t\t<fabric>\n{_lines(3, ['state', 'status', 'cliqueId', 'clusterUuid'], 'N/A')}{health}\t\t</fabric>\n"
        )
    health = "".join(f"\t\t\t\t<{name}>{answer}</{name}>\n" for name, answer in _FABRIC_HEALTH.items())
    return f"""\t\t<fabric>
\t\t\t<state>Completed</state>
\t\t\t<status>Success</status>
\t\t\t<cliqueId>0</cliqueId>
\t\t\t<clusterUuid>00000000-0000-0000-0000-000000000000</clusterUuid>
\t\t\t<health>
\t\t\t\t<summary>Healthy</summary>
{health}\t\t\t</health>
\t\t</fabric>
"""


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
