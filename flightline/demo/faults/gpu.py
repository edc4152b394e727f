"""Faults of one GPU, its memory, its slot, and of the driver's software."""

from __future__ import annotations

import re
from functools import partial
from typing import Dict, Mapping, Optional, Tuple

from flightline_node.model import Remedy, Status

from .. import host, smi
from ..hardware import Machine
from ..tree import Entry, Tool, text
from .change import SMI_PARSERS, edited, logged, set_smi, set_tool, substituted, target, without_line
from .fault import ACTIVE, FLEET, Apply, Change, DoesNotApply, Fault


def _persistence_off(files: Mapping[str, Entry], machine: Machine) -> Change:
    """On every GPU."""
    tag = "persistence_mode"
    content, count = re.subn(f"<{tag}>[^<]*</{tag}>", f"<{tag}>Disabled</{tag}>", text(files, "out/nvidia-smi.xml"))
    if not count:
        raise DoesNotApply(f"{machine.gpu.name} has no {tag}")
    return {"out/nvidia-smi.xml": content.encode()}


def _xid(code: int, rest: str, process: str = "pid='<unknown>', name=<unknown>") -> Apply:
    return logged(f"NVRM: Xid (PCI:{{pci}}): {code}, {process}, {rest}")


def _unlisted(files: Mapping[str, Entry], machine: Machine) -> Dict[str, str]:
    """nvidia-smi's answers without one GPU; those after it move up in the numbering."""
    index = target(machine)
    head, *gpus = text(files, "out/nvidia-smi.xml").split("\t<gpu id=")
    if machine.gpu_count == 1:
        raise DoesNotApply("it has one GPU, and nvidia-smi prints nothing without any")
    tail = gpus[-1].partition("\t</gpu>\n")[2] if index == len(gpus) - 1 else ""
    del gpus[index]
    found = {
        "out/nvidia-smi.xml": "\t<gpu id=".join([head, *gpus]) + tail,
        "out/nvidia-smi-topo.txt": smi.topo(machine, frozenset({index})),
    }
    for path in ("out/nvlink-status.txt", "out/nvlink-errors.txt", "out/nvidia-smi-list.txt"):
        blocks = re.split(r"^GPU \d+", text(files, path), flags=re.MULTILINE)[1:]
        kept = [block for position, block in enumerate(blocks) if position != index]
        found[path] = "".join(f"GPU {position}{block}" for position, block in enumerate(kept))
    return found


def _gpu_missing(files: Mapping[str, Entry], machine: Machine) -> Change:
    found, count = _unlisted(files, machine), machine.gpu_count
    found["out/nvidia-smi.xml"] = substituted(
        found["out/nvidia-smi.xml"], f">{count}</attached_gpus>", f">{count - 1}</attached_gpus>", "GPU count"
    )
    found["out/lspci.txt"] = without_line(text(files, "out/lspci.txt"), machine.gpu_pci()[target(machine)])
    return {path: content.encode() for path, content in found.items()}


def _gpu_fallen_off(files: Mapping[str, Entry], machine: Machine) -> Change:
    """nvidia-smi names the device it cannot reach and goes on; lspci reads all ones, revision ff."""
    index = target(machine)
    pci = machine.gpu_pci()[index]
    error = f"Unable to determine the device handle for GPU{index}: {pci}: Unknown Error\n"
    change: Dict[str, Optional[Entry]] = {
        path: (error + content).encode() for path, content in _unlisted(files, machine).items() if content
    }
    part = f"3D controller [0302]: NVIDIA Corporation {machine.gpu.lspci} [10de:{machine.gpu.pci_id.lower()}]"
    lost = substituted(text(files, "out/lspci.txt"), rf"(?<={re.escape(pci)} )[^\n]*", f"{part} (rev ff)", "GPU")
    change["out/lspci.txt"] = lost.encode()
    log = logged(
        "NVRM: GPU at PCI:{pci}: GPU-00000000-0000-0000-0000-000000000000",
        "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: GPU {pcif}: GPU has fallen off the bus.",
    )
    return {**change, **log(files, machine)}


def _smi_says(message: str, rc: int, files: Mapping[str, Entry], machine: Machine) -> Change:
    """Answer every question to nvidia-smi with one message and fail."""
    tool = files["tools/nvidia-smi"]
    outputs = tool.answers.values() if isinstance(tool, Tool) else ()
    said: Dict[str, Optional[Entry]] = {f"out/{file}": (message + "\n").encode() for file in outputs}
    return {**said, **set_tool("nvidia-smi", rc=rc)(files, machine)}


def _inforom_warning(files: Mapping[str, Entry], machine: Machine) -> Change:
    """A line about one GPU after nvidia-smi's XML, as NVML's warnings are."""
    line = f"WARNING: infoROM is corrupted at gpu {machine.gpu_pci()[target(machine)]}\n"
    return {"out/nvidia-smi.xml": (text(files, "out/nvidia-smi.xml") + line).encode()}


def _driver(version: str, files: Mapping[str, Entry], machine: Machine) -> Change:
    paths = ("out/nvidia-smi.xml", "out/kernel.log", "root/sys/module/nvidia/version")
    return {path: text(files, path).replace(machine.driver, version).encode() for path in paths}


_PROCESS = """<processes>
\t\t\t<process_info>
\t\t\t\t<gpu_instance_id>N/A</gpu_instance_id>
\t\t\t\t<compute_instance_id>N/A</compute_instance_id>
\t\t\t\t<pid>4711</pid>
\t\t\t\t<type>C</type>
\t\t\t\t<process_name>python3</process_name>
\t\t\t\t<used_memory>70212 MiB</used_memory>
\t\t\t</process_info>
"""


_MMU_FAULT = (
    "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f3c_45000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)


_GSP_TIMEOUT = (
    "Timeout after 6s of waiting for RPC response from GPU{index} GSP! "
    "Expected function 76 (GSP_RM_CONTROL) (0x20803039 0x4)."
)


_DOUBLE_BIT = (
    "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, "
    "subpartition 0."
)


_PYTHON = "pid=4711, name=python3"


def _other_nccl(files: Mapping[str, Entry], machine: Machine) -> Change:
    change: Dict[str, Optional[Entry]] = dict.fromkeys(f"root/{path}" for path in host.nccl_files())
    return {**change, **{f"root/{path}": b"" for path in host.nccl_files("2.27.7")}}


FAULTS: Tuple[Fault, ...] = (
    Fault("gpu_missing", "one GPU is not listed by any tool",
          "gpu_count", Remedy.REBOOT, _gpu_missing,
          also=("gpu_lost", "nvlink_links", "nvlink_errors", "gpu_topology", "pci_devices")),
    Fault("gpu_fallen_off_bus", "one GPU fell off the PCI bus: device-handle error, Xid 79",
          "gpu_lost", Remedy.REBOOT, _gpu_fallen_off,
          also=("gpu_count", "xid", "nvlink_links", "nvlink_errors", "gpu_topology", "pci_devices", "kernel_errors")),
    Fault("ecc_uncorrected", "uncorrectable memory errors since the driver was loaded",
          "ecc_uncorrected", Remedy.RESET_GPU,
          set_smi(("volatile/dram_uncorrectable", "2"), ("aggregate/dram_uncorrectable", "2"))),
    Fault("remap_pending", "a row remapping waits for a reset of the GPU",
          "row_remap", Remedy.RESET_GPU,
          set_smi(("remapped_rows/remapped_row_unc", "1"), ("remapped_row_pending", "Yes"))),
    Fault("remap_failure", "a row remapping failed: no spare rows are left",
          "row_remap", Remedy.REPLACE,
          set_smi(("remapped_rows/remapped_row_unc", "8"), ("remapped_row_failure", "Yes"))),
    Fault("xid_restart_app", "Xid 31, an application's memory fault: the node stays go",
          "xid", Remedy.RESTART_APP, _xid(31, _MMU_FAULT, _PYTHON), status=Status.INFO),
    Fault("xid_reset_gpu", "Xid 119, the GPU's system processor does not answer",
          "xid", Remedy.RESET_GPU, _xid(119, _GSP_TIMEOUT, _PYTHON)),
    Fault("xid_reboot", "Xid 151, key rotation failed: the instance must restart",
          "xid", Remedy.REBOOT, _xid(151, "Key rotation error")),
    Fault("xid_replace", "Xid 54, auxiliary power is missing",
          "xid", Remedy.REPLACE, _xid(54, "auxiliary power is not connected")),
    Fault("xid_update_software", "Xid 78, driver and firmware do not fit",
          "xid", Remedy.UPDATE_SOFTWARE, _xid(78, "vGPU start error")),
    Fault("xid_contact_support", "Xid 142, for which only the vendor has an answer",
          "xid", Remedy.CONTACT_SUPPORT, _xid(142, "NVENC3 error")),
    Fault("xid_dbe", "Xid 48, an uncorrectable double bit error",
          "xid", Remedy.RESET_GPU, _xid(48, _DOUBLE_BIT)),
    Fault("hw_slowdown", "the hardware holds one GPU's clocks down",
          "throttle", Remedy.REPLACE, set_smi(("clocks_event_reason_hw_slowdown", "Active"))),
    Fault("hw_thermal", "one GPU is slowed down by heat",
          "throttle", Remedy.REPLACE,
          set_smi(("clocks_event_reason_hw_slowdown", "Active"),
                   ("clocks_event_reason_hw_thermal_slowdown", "Active"))),
    Fault("gpu_hot", "one GPU is hotter than it may be",
          "gpu_temperature", Remedy.REPLACE, set_smi(("gpu_temp", "90 C"), ("gpu_temp_tlimit", "-3 C"))),
    Fault("pcie_width", "one GPU runs on four PCIe lanes",
          "pcie_width", Remedy.REBOOT, set_smi(("current_link_width", "4x"))),
    Fault("recovery_action", "the driver asks for a reset of one GPU",
          "recovery_action", Remedy.RESET_GPU, set_smi(("gpu_recovery_action", "GPU Reset"))),
    Fault("persistence_off", "persistence mode is off",
          "persistence_mode", Remedy.FIX_CONFIG, _persistence_off, status=Status.WARN),
    Fault("ecc_off", "ECC is off on one GPU",
          "ecc_mode", Remedy.FIX_CONFIG, set_smi(("current_ecc", "Disabled"), ("pending_ecc", "Disabled")),
          also=("ecc_uncorrected",)),
    Fault("mig_on", "MIG mode is on on one GPU",
          "mig_mode", Remedy.FIX_CONFIG, set_smi(("current_mig", "Enabled"), ("pending_mig", "Enabled"))),
    Fault("retired_pages", "one GPU has retired as many pages as it may",
          "retired_pages",
          Remedy.REPLACE, set_smi(("double_bit_retirement/retired_count", "63")), type="g4dn.12xlarge"),
    Fault("driver_drift", "an older driver than the rest of the fleet",
          "uniform_driver", Remedy.UPDATE_SOFTWARE, partial(_driver, "580.82.07"), scope=FLEET),
    Fault("nccl_drift", "another NCCL than the rest of the fleet",
          "uniform_nccl", Remedy.UPDATE_SOFTWARE, _other_nccl, scope=FLEET),
    Fault("gpu_wrong_model", "one GPU is of another model",
          "gpu_model", Remedy.FIX_CONFIG, set_smi(("product_name", "NVIDIA H100 PCIe"))),
    Fault("gpu_memory_small", "one GPU has half of its memory",
          "gpu_memory", Remedy.REPLACE, set_smi(("fb_memory_usage/total", "40960 MiB"))),
    Fault("driver_not_loaded", "the NVIDIA driver is not loaded",
          "gpu_lost", Remedy.UPDATE_SOFTWARE,
          partial(_smi_says, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
                    "Make sure that the latest NVIDIA driver is installed and running.", 9),
          blinds=SMI_PARSERS),
    Fault("driver_not_rebooted", "the driver was updated and the node not rebooted",
          "gpu_lost", Remedy.REBOOT,
          partial(_smi_says, "Failed to initialize NVML: Driver/library version mismatch", 18), blinds=SMI_PARSERS),
    Fault("driver_too_old", "the driver is older than the instance type needs",
          "driver_version", Remedy.UPDATE_SOFTWARE, partial(_driver, "560.35.05"), type="p6-b200.48xlarge"),
    Fault("cuda_too_old", "the driver's CUDA is older than the instance type needs",
          "cuda_version", Remedy.UPDATE_SOFTWARE,
          edited("out/nvidia-smi.xml", "(?<=<cuda_version>)[^<]*", "12.4"), type="p6-b200.48xlarge"),
    Fault("vbios_mixed", "one GPU has another VBIOS: a warning, the node stays go",
          "gpu_vbios", Remedy.INVESTIGATE, set_smi(("vbios_version", "96.00.30.00.01")), status=Status.WARN),
    Fault("inforom_corrupt", "one GPU's InfoROM is corrupted",
          "gpu_inforom", Remedy.REPLACE, _inforom_warning),
    Fault("gsp_mismatch", "one GPU runs another firmware than the driver brings: a warning, the node stays go",
          "gpu_gsp", Remedy.UPDATE_SOFTWARE, set_smi(("gsp_firmware_version", "580.65.06")), status=Status.WARN),
    Fault("ecc_corrected", "many corrected memory errors: a warning, the node stays go",
          "ecc_corrected", Remedy.INVESTIGATE,
          set_smi(("volatile/dram_correctable", "200000"),
                   ("aggregate/dram_correctable", "200000")), status=Status.WARN),
    Fault("sram_threshold", "one GPU's SRAM had more errors than it may",
          "ecc_sram_threshold", Remedy.REPLACE,
          set_smi(("aggregate/sram_uncorrectable_parity", "12"), ("sram_threshold_exceeded", "Yes"))),
    Fault("remap_spares_low", "a memory bank has no spare rows left: a warning, the node stays go",
          "row_remap_histogram", Remedy.REPLACE,
          set_smi(("row_remapper_histogram_max", "2559 bank(s)"), ("row_remapper_histogram_none", "1 bank(s)")),
          status=Status.WARN),
    Fault("repair_pending", "a memory channel waits for its repair",
          "memory_repair", Remedy.RESET_GPU, set_smi(("channel_repair_pending", "Yes")), type="p6-b200.48xlarge"),
    Fault("power_capped", "one GPU's power limit is lowered",
          "power_limit", Remedy.FIX_CONFIG,
          set_smi(("current_power_limit", "300.00 W"), ("requested_power_limit", "300.00 W"))),
    Fault("pcie_gen_low", "one GPU's slot offers an older PCIe generation",
          "pcie_gen", Remedy.REBOOT,
          set_smi(("max_link_gen", "3"), ("current_link_gen", "3"), ("device_current_link_gen", "3"),
                   ("max_host_link_gen", "3"))),
    Fault("pcie_replays", "many PCIe replays: a warning, the node stays go",
          "pcie_replays", Remedy.INVESTIGATE, set_smi(("replay_counter", "250000")), status=Status.WARN),
    Fault("pcie_aer", "uncorrected errors on the PCIe bus",
          "pcie_aer", Remedy.REBOOT,
          logged("pcieport 0000:52:01.0: AER: Uncorrected (Fatal) error received: {pcif}",
               "nvidia {pcif}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)")),
    Fault("gpu_in_use", "a process is left on one GPU",
          "gpu_processes", Remedy.RESTART_APP, edited("out/nvidia-smi.xml", r"<processes>\n", _PROCESS),
          also=ACTIVE, level="standard"),
)  # fmt: skip
