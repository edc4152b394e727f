"""What an operator wants measured before a job starts, by type and level: written by hand, from the job's needs.

A job of N ranks wants N whole GPUs of one kind, their memory, their links to one another and to the network, the driver
that speaks for them, and a host that holds them. The computed table may ask for more, never for less.
"""

HOST = frozenset({
    "cpu", "memory", "disk_space", "load", "kernel_version", "kernel_errors", "uptime", "stuck_processes",
    "clock_sync", "kernel_modules", "pcie_aer",
})  # fmt: skip
GPU = frozenset({
    "gpu_count", "gpu_model", "gpu_memory", "gpu_lost", "driver_version", "cuda_version", "persistence_mode",
    "ecc_uncorrected", "ecc_mode", "ecc_corrected", "gpu_inforom", "gpu_temperature", "throttle", "gpu_clocks", "power_limit",
    "pcie_width", "pcie_gen", "pcie_replays", "gpu_processes", "gpu_vbios", "xid", "sxid", "pci_devices",
})  # fmt: skip
SWITCHED = frozenset({"nvlink_links", "nvlink_errors", "fabric_manager", "gpu_topology", "row_remap", "mig_mode"})
EFA = frozenset({"efa_count", "efa_ports", "efa_provider", "memlock"})
DIRECT = frozenset({"peer_memory"})
DISKS = frozenset({"nvme"})
RUN = frozenset({"dcgm_diag", "gpu_load", "gpu_compute", "gpu_bandwidth", "nccl_correctness"})
NEURON = frozenset({
    "neuron_devices", "neuron_cores", "neuron_memory", "neuron_driver", "neuron_ecc", "neuron_messages", "neuron_processes",
})  # fmt: skip

WANTED: dict[tuple[str, str], frozenset[str]] = {
    ("p5.48xlarge", "quick"): HOST | GPU | SWITCHED | EFA | DIRECT | DISKS | {"fabric_state"},
    ("p5.48xlarge", "standard"): HOST
    | GPU
    | SWITCHED
    | EFA
    | DISKS
    | RUN
    | {"fabric_state", "efa_loopback", "nccl_busbw"},
    ("p5.48xlarge", "deep"): HOST | GPU | SWITCHED | EFA | DISKS | RUN | {"nccl_busbw", "efa_loopback", "fio_disk"},
    ("p6-b200.48xlarge", "quick"): HOST | GPU | SWITCHED | EFA | DISKS | {"fabric_state", "gpu_gsp"},
    ("p4d.24xlarge", "quick"): HOST | GPU | SWITCHED | EFA | DIRECT | DISKS,
    ("g5.xlarge", "quick"): (HOST | GPU | DISKS | {"row_remap"}) - {"gpu_inforom"},
    ("g5.xlarge", "standard"): (HOST | GPU | DISKS | RUN | {"row_remap"}) - {"gpu_inforom"},
    ("g4dn.xlarge", "quick"): (HOST | GPU | DISKS | {"retired_pages"}) - {"gpu_inforom"},
    ("trn1.32xlarge", "quick"): HOST | NEURON | EFA | DISKS | {"neuron_topology"},
    ("trn1.32xlarge", "standard"): HOST | NEURON | EFA | DISKS | {"nccom_test", "efa_loopback"},
    ("none", "quick"): frozenset({"memory", "disk_space", "kernel_errors", "clock_sync", "pcie_aer"}),
}
"""Type and level -> checks without which nobody would start a job there."""
