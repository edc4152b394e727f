"""What software an instance type needs, for the roles: from the hardware table, never from the node."""

from __future__ import annotations

from typing import Any

from flightline_host.version import reaches
from flightline_node.expected import NO_TYPE, Expected, resolve

COMPUTE = (
    ("V100", "70"), ("T4", "75"), ("A100", "80"), ("A10G", "86"), ("L4", "89"), ("H100", "90"), ("H200", "90"),
    ("B200", "100"), ("B300", "103"), ("RTX PRO", "120"),
)  # fmt: skip
"""Beginning of the GPU's model -> compute capability (NVIDIA, CUDA GPU compute capability)."""
_RACK = "p6e-"
_SUBNET_MANAGED = ("p6-b200", "p6-b300")
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
    architecture = _architecture(expected.gpu_model or "")
    minimum = "" if expected.has_neuron else expected.driver_minimum or ""
    kernel_module = _kernel_module(expected)
    proprietary = kernel_module == "proprietary"
    return {
        "gpu": bool(expected.has_nvidia_gpu),
        "neuron": expected.accelerator == "neuron",
        "efa": bool(expected.efa_count) or not known or expected.efa_count is None,
        "nvme": bool(expected.nvme_count) or not known or expected.nvme_count is None,
        "nvme_count": expected.nvme_count or 0,
        "driver": DRIVER if reaches(DRIVER, minimum or "0") else minimum,
        "cuda": CUDA_VOLTA if architecture and int(architecture) < _TURING else CUDA,
        # GPU memory is reached by dma-buf with the open kernel module (EFA installer release notes: nv-peermem).
        "efa_modules": ["efa", "efa_nv_peermem"] if proprietary and expected.rdma_read else ["efa"],
        # libfabric's EFA provider copies small messages with it, where it is there (its documentation).
        "gdrcopy": ["gdrdrv-dkms", "libgdrapi"] if expected.has_nvidia_gpu and expected.rdma_read else [],
        "imex": instance_type.startswith(_RACK),
        "kernel_module": kernel_module,
        # The rack's switch trays run Fabric Manager for P6e, not the instance.
        "fabric_manager": bool(expected.nvswitch) and not instance_type.startswith(_RACK),
        "nvlsm": instance_type.startswith(_SUBNET_MANAGED),
        "architecture": architecture,
        "efa_interfaces": expected.efa_count or 0,
        "driver_minimum": minimum,
        "cuda_minimum": expected.cuda_minimum or "",
        "nccl_minimum": expected.nccl_minimum or "",
        "efa_installer_minimum": expected.efa_installer_minimum or "",
        "ofi_nccl_minimum": expected.ofi_nccl_minimum or "",
    }


def _kernel_module(expected: Expected) -> str:
    """Open from Turing on, and the only one from Blackwell on; Volta has no GSP for it (NVIDIA open module README)."""
    if not expected.has_nvidia_gpu:
        return "any"
    return "proprietary" if expected.gpu_generation == "volta" else "open"


def _architecture(model: str) -> str:
    return next((number for name, number in COMPUTE if model.startswith(name)), "")
