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
    log = f"""
nvidia_smi_log
 timestamp = Fri Nov 20 09:30:00 2026
 driver_version = {machine.driver}
 cuda_version = {machine.cuda}
 attached_gpus = {machine.gpu_count}
{gpus}"""
    return f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n{_elements(log)}'


def _elements(outline: str) -> str:
    """An outline as XML, a blank for each depth: `names = value`; a name alone holds the deeper lines; `: ` is text."""
    lines: List[str] = []
    held: List[str] = []

    def close(depth: int) -> None:
        while len(held) > depth:
            lines.append("\t" * (len(held) - 1) + f"</{held.pop()}>")

    for line in filter(None, outline.splitlines()):
        said = line.lstrip(" ")
        depth = len(line) - len(said)
        close(depth)
        names, is_leaf, value = said.partition(" = ")
        if is_leaf:
            lines += ["\t" * depth + f"<{name}>{value}</{name}>" for name in names.split()]
        elif said.startswith(": "):
            lines.append("\t" * depth + said[2:])
        else:
            lines.append("\t" * depth + f"<{said}>")
            held.append(said.split()[0])
    close(0)
    return "\n".join(lines) + "\n"


_GPU = """
 gpu id="{bus_id}"
  product_name = {gpu.name}
  product_brand = {brand}
  product_architecture = {gpu.architecture}
  display_mode = {deprecated}
  display_attached = No
  display_active = Disabled
  persistence_mode = Enabled
  addressing_mode = {addressing}
  mig_mode
   current_mig pending_mig = {mig}
  mig_devices
   : None
  accounting_mode = Disabled
  accounting_mode_buffer_size = 4000
  driver_model
   current_dm pending_dm = N/A
  serial = @SERIAL{index}@
  uuid = @UUID{index}@
  minor_number = {index}
  vbios_version = {gpu.vbios}
  multigpu_board = No
  board_id = 0x{board}
  board_part_number = N/A
  gpu_part_number = {gpu.pci_id}-885-A1
  gpu_fru_part_number = N/A
  platformInfo
   chassis_serial_number slot_number tray_index host_id peer_type = N/A
   module_id = {module}
   gpu_fabric_guid = N/A
  inforom_version
   img_version = G520.0200.00.05
   oem_object = 2.1
   ecc_object = 7.16
   pwr_object = N/A
  inforom_bbx_flush
   latest_timestamp latest_duration = N/A
  gpu_operation_mode
   current_gom pending_gom = N/A
  c2c_mode = N/A
  gpu_virtualization_mode
   virtualization_mode = Pass-Through
   host_vgpu_mode vgpu_heterogeneous_mode = N/A
  gpu_recovery_action = None
  gsp_firmware_version = {gsp}
  ibmnpu
   relaxed_ordering_mode = N/A
{pci}
  fan_speed = N/A
  performance_state = P0
  clocks_event_reasons
   clocks_event_reason_gpu_idle = Active
   {clock_events} = Not Active
  clocks_event_reasons_counters
   {clock_counters} = 0 us
  sparse_operation_mode = N/A
{memory}
  compute_mode = Default
  utilization
   gpu_util memory_util encoder_util decoder_util jpeg_util ofa_util = 0 %
  encoder_stats
   session_count average_fps average_latency = 0
  fbc_stats
   session_count average_fps average_latency = 0
  dram_encryption_mode
   current_dram_encryption pending_dram_encryption = N/A
  ecc_mode
   current_ecc pending_ecc = Enabled
{health}
  processes
  accounted_processes
  capabilities
   egm = disabled
"""
_EVENTS = (
    "applications_clocks_setting sw_power_cap hw_slowdown hw_thermal_slowdown hw_power_brake_slowdown sync_boost"
    " sw_thermal_slowdown display_clocks_setting"
)
_COUNTED = "sw_power_cap sync_boost sw_therm_slowdown hw_therm_slowdown hw_power_brake"


def _each(form: str, names: str) -> str:
    return " ".join(form.format(name) for name in names.split())


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
        clock_events=_each("clocks_event_reason_{}", _EVENTS),
        clock_counters=_each("clocks_event_reasons_counters_{}", _COUNTED),
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
    return f"""
  pci
   pci_bus = {pci[5:7].upper()}
   pci_device = {pci[8:10].upper()}
   pci_domain = 0000
   pci_base_class = 3
   pci_sub_class = 2
   pci_device_id = {gpu.pci_id}10DE
   pci_bus_id = {bus_id}
   pci_sub_system_id = 16C110DE
   pci_gpu_link_info
    pcie_gen
     max_link_gen current_link_gen device_current_link_gen max_device_link_gen max_host_link_gen = {gpu.pcie_gen}
    link_widths
     max_link_width = 16x
     current_link_width = {gpu.width}x
   pci_bridge_chip
    bridge_chip_type bridge_chip_fw = N/A
   replay_counter replay_rollover_counter = 0
   tx_util = 485 KB/s
   rx_util = 528 KB/s
   atomic_caps_outbound atomic_caps_inbound = N/A
"""


def _memory(gpu: GpuModel) -> str:
    reserved = max(gpu.memory // 130, 300)
    return f"""
  fb_memory_usage
   total = {gpu.memory} MiB
   reserved = {reserved} MiB
   used = 1 MiB
   free = {gpu.memory - reserved - 1} MiB
  bar1_memory_usage
   total = {gpu.bar1} MiB
   used = 1 MiB
   free = {gpu.bar1 - 1} MiB
  cc_protected_memory_usage
   total used free = 0 MiB
"""


_BIT_COUNTERS = "device_memory register_file l1_cache l2_cache texture_memory texture_shm cbu total"


def _ecc(gpu: GpuModel) -> str:
    if gpu.architecture == "Volta":  # counts single and double bits per structure
        counts = f"    single_bit\n     {_BIT_COUNTERS} = 0\n    double_bit\n     {_BIT_COUNTERS} = 0"
    elif gpu.architecture == "Turing":
        counts = "    sram_correctable sram_uncorrectable dram_correctable dram_uncorrectable = 0"
    else:
        counts = (
            "    sram_correctable sram_uncorrectable_parity sram_uncorrectable_secded dram_correctable"
            " dram_uncorrectable = 0"
        )
    errors = f"  ecc_errors\n   volatile\n{counts}\n   aggregate\n{counts}\n"
    if gpu.architecture in ("Volta", "Turing"):
        return errors
    sources = _each("sram_{}", "l2 sm microcontroller pcie other")
    return f"""{errors}
    sram_threshold_exceeded = No
   aggregate_uncorrectable_sram_sources
    {sources} = 0
   channel_repair_pending tpc_repair_pending = {"No" if gpu.architecture == "Blackwell" else "N/A"}
"""


def _retired(gpu: GpuModel) -> str:
    count, answer, pages = ("N/A", "N/A", " = N/A") if gpu.banks else ("0", "No", "")
    return f"""
  retired_pages
   multiple_single_bit_retirement
    retired_count = {count}
    retired_pagelist{pages}
   double_bit_retirement
    retired_count = {count}
    retired_pagelist{pages}
   pending_blacklist pending_retirement = {answer}
"""


def _remapped(gpu: GpuModel) -> str:
    if not gpu.banks:
        return "  remapped_rows = N/A\n"
    return f"""
  remapped_rows
   remapped_row_corr remapped_row_unc = 0
   remapped_row_pending remapped_row_failure = No
   row_remapper_histogram
    row_remapper_histogram_max = {gpu.banks} bank(s)
    {_each("row_remapper_histogram_{}", "high partial low none")} = 0 bank(s)
"""


def _temperature(gpu: GpuModel, temp: int) -> str:
    shutdown, slowdown, highest = gpu.temps
    infix, left = ("_tlimit", f"{87 - temp} C") if gpu.tlimit else ("", "N/A")
    hbm = gpu.architecture in ("Volta", "Ampere", "Hopper", "Blackwell") and gpu.memory >= 32768
    return f"""
  temperature
   gpu_temp = {temp} C
   gpu_temp_tlimit = {left}
   gpu_temp_max{infix}_threshold = {shutdown} C
   gpu_temp_slow{infix}_threshold = {slowdown} C
   gpu_temp_max_gpu{infix}_threshold = {highest} C
   gpu_target_temperature = N/A
   memory_temp = {f"{temp + 8} C" if hbm else "N/A"}
   gpu_temp_max_mem{infix}_threshold = {("0 C" if gpu.tlimit else "95 C") if hbm else "N/A"}
  supported_gpu_target_temp
   gpu_target_temp_min gpu_target_temp_max = N/A
"""


def _power(gpu: GpuModel, index: int) -> str:
    draw = gpu.power * (10 + index % 3) / 100
    return f"""
  gpu_power_readings
   power_state = {_DEPRECATED}
   average_power_draw instant_power_draw = {draw:.2f} W
   current_power_limit requested_power_limit default_power_limit = {gpu.power}.00 W
   min_power_limit = {gpu.power * 2 // 7}.00 W
   max_power_limit = {gpu.power}.00 W
  gpu_memory_power_readings
   average_power_draw instant_power_draw = N/A
  module_power_readings
   power_state = {_DEPRECATED}
   average_power_draw instant_power_draw = N/A
   {_each("{}_power_limit", "current requested default min max")} = N/A
  power_smoothing = N/A
  power_profiles
   power_profile_requested_profiles power_profile_enforced_profiles = N/A
"""


def _clocks(gpu: GpuModel) -> str:
    return f"""
  clocks
   graphics_clock sm_clock = {_IDLE_SM_MHZ} MHz
   mem_clock = {gpu.memory_clock} MHz
   video_clock = 765 MHz
  applications_clocks
   graphics_clock mem_clock = {_DEPRECATED}
  default_applications_clocks
   graphics_clock mem_clock = {_DEPRECATED}
  deferred_clocks
   mem_clock = N/A
  max_clocks
   graphics_clock sm_clock = {gpu.sm_clock} MHz
   mem_clock = {gpu.memory_clock} MHz
   video_clock = {gpu.sm_clock * 9 // 10} MHz
  max_customer_boost_clocks
   graphics_clock = {gpu.sm_clock} MHz
  clock_policy
   auto_boost auto_boost_default = N/A
"""


def _fabric(machine: Machine) -> str:
    joined = machine.switched and machine.gpu.architecture != "Ampere"  # A100's driver leaves the block to later parts
    if not joined:
        return """
  fabric
   state status cliqueId clusterUuid = N/A
   health
    summary bandwidth route_recovery_in_progress route_unhealthy access_timeout_recovery = N/A
    incorrect_configuration = N/A
"""
    return """
  fabric
   state = Completed
   status = Success
   cliqueId = 0
   clusterUuid = 00000000-0000-0000-0000-000000000000
   health
    summary = Healthy
    bandwidth = N/A
    route_recovery_in_progress route_unhealthy access_timeout_recovery = False
    incorrect_configuration = None
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
