"""Errors of CUDA and NVML that a program passes on and cannot cause by itself.

Source: the error strings of cudaGetErrorString and nvmlErrorString, the names of cudaError_enum (NVIDIA CUDA driver and
runtime API, NVML API reference). What a program's own mistake gives as well ('unspecified launch failure', 'illegal
memory access', 'out of memory') is left out.
"""

from __future__ import annotations

from typing import Iterable, Iterator, List, NamedTuple, Tuple

from ...model import Remedy


class CudaFault(NamedTuple):
    """One error: the words it is told by, in lower case."""

    phrases: Tuple[str, ...]
    remedy: Remedy
    meaning: str


FAULTS: Tuple[CudaFault, ...] = (
    CudaFault(
        ("uncorrectable ecc", "cuda_error_ecc_uncorrectable"),
        Remedy.RESET_GPU,
        "a GPU had a memory error that ECC could not correct",
    ),
    CudaFault(
        ("uncorrectable nvlink", "cuda_error_nvlink_uncorrectable"),
        Remedy.RESET_GPU,
        "a GPU had an NVLink error that could not be corrected",
    ),
    CudaFault(
        ("system not yet initialized", "cuda_error_system_not_ready"),
        Remedy.FIX_CONFIG,
        "the Fabric Manager has not set up the NVSwitches",
    ),
    # As NCCL's transport/nvls.cc words it, where it joins the GPUs' memory over the NVSwitches; its own later text blames
    # the Fabric Manager and the NVSwitches. Mostly the Fabric Manager was restarted and the GPUs were not reset.
    CudaFault(
        (
            "401 'the operation cannot be performed in the present state'",
            "cuda error 1 'invalid argument'",
            "nvls.cc: cuda failure 1 'invalid argument'",
            "nvls.cc: cuda failure 'invalid argument'",
            "nvls.cc: cuda failure 999 'unknown error",
        ),
        Remedy.REBOOT,
        "the Fabric Manager or an NVSwitch is in a bad state: NVLS memory cannot be bound",
    ),
    CudaFault(
        ("peer access is not supported between these two devices",),
        Remedy.FIX_CONFIG,
        "GPUs of the node may not reach each other's memory: ACS, IOMMU or the hypervisor's set-up",
    ),
    CudaFault(("gpu is lost",), Remedy.REBOOT, "a GPU has fallen off the bus"),
    CudaFault(
        ("driver/library version mismatch",), Remedy.REBOOT, "the loaded driver is not the version of its libraries"
    ),
    CudaFault(
        (
            "driver version is insufficient for cuda runtime",
            "unsupported display driver / cuda driver combination",
            "cuda_error_system_driver_mismatch",
            "forward compatibility was attempted on non supported",
            "cuda_error_compat_not_supported",
        ),
        Remedy.UPDATE_SOFTWARE,
        "the driver does not fit the CUDA of the program",
    ),
)


def faults_in(lines: Iterable[str]) -> Iterator[Tuple[CudaFault, List[str]]]:
    """The errors that are named, each with the lines that name it."""
    lowered = [(line, line.lower()) for line in lines]
    for fault in FAULTS:
        named = [line for line, low in lowered if any(words in low for words in fault.phrases)]
        if named:
            yield fault, named
