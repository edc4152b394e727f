"""What software an instance type needs, for the roles: from the hardware table, never from the node."""

from __future__ import annotations

from typing import Any

from flightline_node.expected import Expected, resolve

COMPUTE = (
    ("V100", "70"), ("T4", "75"), ("A100", "80"), ("A10G", "86"), ("L4", "89"), ("H100", "90"), ("H200", "90"),
    ("B200", "100"), ("B300", "103"), ("RTX PRO", "120"),
)  # fmt: skip
"""Beginning of the GPU's model -> compute capability (NVIDIA, CUDA GPU compute capability)."""
_RACK = "p6e-"
_SUBNET_MANAGED = ("p6-b200", "p6-b300")


def software(instance_type: str) -> dict[str, Any]:
    """Kernel module, Fabric Manager, NVLSM, architecture and minimum versions; false and empty where unknown."""
    expected = resolve(instance_type, {})
    return {
        "gpu": bool(expected.has_nvidia_gpu),
        "kernel_module": _kernel_module(expected),
        # The rack's switch trays run Fabric Manager for P6e, not the instance.
        "fabric_manager": bool(expected.nvswitch) and not instance_type.startswith(_RACK),
        "nvlsm": instance_type.startswith(_SUBNET_MANAGED),
        "architecture": _architecture(expected.gpu_model or ""),
        "efa_interfaces": expected.efa_count or 0,
        "driver_minimum": expected.driver_minimum or "",
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
