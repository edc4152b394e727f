"""The environment of a training run by instance type: each variable with its source, and what is left out and why.

Left out, because current releases do it themselves: FI_PROVIDER and FI_EFA_USE_DEVICE_RDMA (aws-ofi-nccl chooses the
EFA provider, libfabric 1.18 and later uses RDMA where the device has it), FI_EFA_FORK_SAFE and RDMAV_FORK_SAFE (kernel
5.13 and later; libfabric fi_efa(7)), NCCL_PROTO and NCCL_ALGO (the plugin tells NCCL what it can, its tuner is part of
it), NCCL_SOCKET_IFNAME (NCCL leaves out lo and docker by itself), TORCH_NCCL_ASYNC_ERROR_HANDLING (on by default,
PyTorch documentation). NCCL_NET is left out as the plugin's name differs between its releases; the check nccl_path sees
a fallback.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple

from .expected import Expected


class Variable(NamedTuple):
    """One variable of the environment. source: where it is said that it helps."""

    name: str
    value: str
    source: str


def variables(expected: Expected) -> List[Variable]:
    """What the ranks of this instance type get; nothing for types without NVIDIA GPUs."""
    if not expected.has_nvidia_gpu:
        return []
    found = [
        Variable("NCCL_DEBUG", "WARN", "NCCL user guide: without it NCCL names no error"),
        Variable("TORCH_FR_BUFFER_SIZE", "2000", "PyTorch, flight recorder: collectives kept per rank; 0 turns it off"),
        Variable("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", "PyTorch, ProcessGroupNCCL variables: it is written at a hang"),
    ]
    cores = _cores_per_gpu(expected)
    if cores:
        found.append(Variable("OMP_NUM_THREADS", str(cores), "torchrun sets 1 where nobody does; cores per GPU"))
    if expected.gpu_tflops:
        found.append(Variable("FLIGHTLINE_PEAK_TFLOPS", str(expected.gpu_tflops), "hardware table; the job's MFU"))
    if expected.efa_count:
        found.append(Variable("NCCL_NET_PLUGIN", "ofi", "aws-ofi-nccl: its library is libnccl-net-ofi.so"))
    return found


def environment(expected: Expected) -> Dict[str, str]:
    """As a mapping."""
    return {variable.name: variable.value for variable in variables(expected)}


def _cores_per_gpu(expected: Expected) -> int:
    if not (expected.vcpus and expected.gpu_count):
        return 0
    return max(1, expected.vcpus // (expected.threads_per_core or 1) // expected.gpu_count)


def numa_binding(expected: Expected) -> str:
    """The word for torchrun's --numa-binding (PyTorch 2.9): each rank on its GPU's NUMA node, if several."""
    return "node" if expected.has_nvidia_gpu and (expected.numa_nodes or 1) > 1 else ""
