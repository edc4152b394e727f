"""What software an instance type needs, for the roles: from the hardware table, never from the node."""

from __future__ import annotations

from typing import Any

from flightline_host.version import reaches
from flightline_node.know import training_environment
from flightline_node.know.expected import NO_TYPE, resolve

DRIVER = "580.95.05"
"""Installed unless a type needs a later branch (NVIDIA 580.95.05 release notes; AWS Deep Learning AMIs are on 580)."""
CUDA, CUDA_VOLTA = "13.0", "12.9"
"""CUDA 13 has no compiler target before Turing (CUDA 13.0 release notes); 12.9 is the last for Volta."""
_TURING = 75


def software(instance_type: str) -> dict[str, Any]:
    """What to install and which minimum versions; false, 0 and empty where unknown.

    Where the type itself is not known ("none") nothing is left out: `neuron` is false, `efa` and `nvme` are true.
    """
    expected = resolve(instance_type, {})
    known = instance_type != NO_TYPE
    architecture = (expected.compute_capability or "").replace(".", "")
    minimum = "" if expected.has_neuron else expected.driver_minimum or ""
    kernel_module = expected.kernel_module or "any"
    proprietary = kernel_module == "proprietary"
    return {
        "gpu": bool(expected.has_nvidia_gpu),
        "neuron": expected.accelerator == "neuron",
        "efa": bool(expected.efa_count) or not known or expected.efa_count is None,
        "nvme": bool(expected.nvme_count) or not known or expected.nvme_count is None,
        "nvme_count": expected.nvme_count or 0,
        "gpu_count": expected.gpu_count or 0,
        "training_environment": training_environment.environment(expected),
        "training_numa_binding": training_environment.numa_binding(expected),
        "driver": DRIVER if reaches(DRIVER, minimum or "0") else minimum,
        "cuda": CUDA_VOLTA if architecture and int(architecture) < _TURING else CUDA,
        # GPU memory is reached by dma-buf with the open kernel module (EFA installer release notes: nv-peermem).
        "efa_modules": ["efa", "efa_nv_peermem"] if proprietary and expected.rdma_read else ["efa"],
        # libfabric's EFA provider copies small messages with it, where it is there (its documentation).
        "gdrcopy": ["gdrdrv-dkms", "libgdrapi"] if expected.has_nvidia_gpu and expected.rdma_read else [],
        "imex": bool(expected.nvlink_rack),
        "kernel_module": kernel_module,
        # The rack's switch trays run Fabric Manager for P6e, not the instance.
        "fabric_manager": bool(expected.nvswitch) and not expected.nvlink_rack,
        "nvlsm": bool(expected.nvlsm),
        "architecture": architecture,
        "efa_interfaces": expected.efa_count or 0,
        "driver_minimum": minimum,
        "cuda_minimum": expected.cuda_minimum or "",
        "nccl_minimum": expected.nccl_minimum or "",
        "efa_installer_minimum": expected.efa_installer_minimum or "",
        "ofi_nccl_minimum": expected.ofi_nccl_minimum or "",
    }
