"""The catalogue: every check by id.

To add one, write checks/<id>.py, then run `python -m tools.registries`: Ansible ships only modules
it sees imported, so the list below is text.
"""

from __future__ import annotations

from types import ModuleType
from typing import Dict, Tuple

from ...model import Check, Reason

# begin: made by python -m tools.registries
from . import (
    clock_source,
    clock_sync,
    compute_mode,
    conf_compute,
    cpu,
    cpu_governor,
    cuda_version,
    dcgm_diag,
    dcgm_health,
    disk_space,
    driver_version,
    ecc_corrected,
    ecc_mode,
    ecc_sram_threshold,
    ecc_uncorrected,
    edac,
    efa_count,
    efa_counters,
    efa_loopback,
    efa_ports,
    efa_provider,
    ena_allowance,
    fabric_manager,
    fabric_state,
    fio_disk,
    fs_io,
    gpu_bandwidth,
    gpu_clocks,
    gpu_compute,
    gpu_count,
    gpu_gsp,
    gpu_inforom,
    gpu_load,
    gpu_lost,
    gpu_memory,
    gpu_model,
    gpu_processes,
    gpu_temperature,
    gpu_topology,
    gpu_vbios,
    hugepages,
    imex,
    instance_identity,
    kernel_errors,
    kernel_modules,
    kernel_version,
    lnet,
    load,
    lustre,
    maintenance,
    memlock,
    memory,
    memory_repair,
    mig_mode,
    mounts,
    mtu,
    nccl_busbw,
    nccl_correctness,
    nccl_transport,
    nccom_busbw,
    nccom_test,
    neuron_cores,
    neuron_devices,
    neuron_driver,
    neuron_ecc,
    neuron_ecc_corrected,
    neuron_errors,
    neuron_memory,
    neuron_messages,
    neuron_processes,
    neuron_software,
    neuron_topology,
    numa_affinity,
    numa_nodes,
    nvlink_errors,
    nvlink_links,
    nvme,
    nvme_smart,
    open_files,
    pci_devices,
    pcie_aer,
    pcie_gen,
    pcie_replays,
    pcie_width,
    peer_memory,
    persistence_mode,
    power_limit,
    raid,
    recovery_action,
    retired_pages,
    row_remap,
    row_remap_histogram,
    s3,
    software_compat,
    stuck_processes,
    swap,
    sxid,
    sysctl,
    throttle,
    unread_lines,
    uptime,
    xid,
)
# end: made by python -m tools.registries

# Each is named once, above: the catalogue's order is the checks' own, whatever Python imported first.
_FOUND = [
    module.CHECK for module in list(globals().values()) if isinstance(module, ModuleType) and hasattr(module, "CHECK")
]
CHECKS: Dict[str, Check] = {check.id: check for check in sorted(_FOUND, key=lambda check: (check.order, check.id))}


def reasons_of(check: str) -> Tuple[Reason, ...]:
    """The reasons that stand beside a check, in its file's order."""
    beside = [one for one in globals()[check].__dict__.values() if isinstance(one, (Reason, dict))]
    found = [one for each in beside for one in (each.values() if isinstance(each, dict) else (each,))]
    return tuple(dict.fromkeys(one for one in found if isinstance(one, Reason)))
