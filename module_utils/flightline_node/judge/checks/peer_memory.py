"""Can EFA reach the GPUs' memory directly (GPUDirect RDMA)?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...know.expected import NO_TYPE
from ...model import Check, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context
from .common import OF_GPU, nvidia_gpus_expected, version_reaches, version_tuple
from .efa_count import no_efa
from .kernel_modules import PEER_MEMORY

NO_MODULE = Reason("no_module", "no peer-memory module is loaded")
NO_PEER_MEMORY = Reason("no_peer_memory", "neither a peer-memory module nor dma-buf", Remedy.FIX_CONFIG)

DMABUF_KERNEL = "5.12"
_NAMED = "NVIDIA"


def evaluate(context: Context) -> Iterator[Finding]:
    """The ways there are: the EFA driver's own word, a peer-memory module, dma-buf with the open GPU driver."""
    loaded = context.facts("modules").get("names", {})
    ways = [name for name in PEER_MEMORY if name in loaded and name != "gdrdrv"]
    ways += _driver_says(context)
    dmabuf = _dmabuf(context)
    ways += ["dma-buf"] if dmabuf else []
    if ways:
        yield context.ok(f"GPUDirect RDMA by {', '.join(dict.fromkeys(ways))}", measured=ways)
    elif "nvidia" not in loaded:
        yield context.skip(skips.NO_DRIVER.because("the nvidia driver is not loaded: see kernel_modules"))
    elif dmabuf is None:
        yield context.info(
            NO_MODULE, "no peer-memory module is loaded; whether dma-buf serves in its place is not known"
        )
    else:
        message = (
            "no way for EFA to the GPUs' memory: no peer-memory module, and no dma-buf with this kernel and driver"
        )
        yield context.warn(NO_PEER_MEMORY, message, measured="none", expected="efa_nv_peermem or dma-buf")


def _driver_says(context: Context) -> List[str]:
    devices: Dict[str, Any] = (context.optional("sysfs") or {}).get("efa_ports", {})
    said = {str(device.get("p2p")) for device in devices.values()}
    return ["the EFA driver (p2p)"] if any(_NAMED in word.upper() for word in said) else []


def _dmabuf(context: Context) -> Optional[bool]:
    """Kernel 5.12 or later and the open kernel module; None when one of the two is not known."""
    kernel = (context.optional("versions") or {}).get("kernel")
    taint = (context.optional("sysfs") or {}).get("nvidia_taint")
    new = version_reaches(kernel, DMABUF_KERNEL) if isinstance(kernel, str) and version_tuple(kernel) else None
    # The kernel marks a module with a proprietary licence with P; the open one has only O (out of tree) and E.
    is_open = None if taint is None else "P" not in taint
    if new is False or is_open is False:
        return False
    return True if new and is_open else None


def _direct(context: Context) -> Optional[Skip]:
    expected = context.expected
    if expected.instance_type == NO_TYPE and expected.rdma_read is None:
        return skips.UNTYPED.because("needs an instance type (or expected rdma_read)")
    if not expected.rdma_read:
        return skips.NO_RDMA_READ.because(
            f"{expected.instance_type} has no RDMA read: NCCL goes through host memory by design"
        )
    return no_efa(context) or nvidia_gpus_expected(context)


CHECK = Check(
    id="peer_memory",
    order=780,
    title="GPUDirect RDMA path",
    what="That a peer-memory module, the EFA driver or dma-buf lets EFA read and write the GPUs' memory.",
    why="Without it NCCL copies everything through host memory: several times slower between nodes, without an error.",
    remedy="Load efa_nv_peermem (EFA installer) or run the open GPU kernel modules on kernel 5.12 or later.",
    out_of_service="No: NCCL goes through host memory, slower.",
    first="lsmod | grep -E 'efa_nv_peermem|nvidia_peermem'; uname -r",
    source="AWS EFA user guide, NCCL; NVIDIA GPUDirect RDMA documentation, dma-buf",
    needs=("modules",),
    wants=("sysfs", "versions"),
    tags=("efa", "gpu", "software"),
    applies=_direct,
    skips=(*OF_GPU, skips.NO_EFA, skips.UNTYPED, skips.NO_RDMA_READ, skips.NO_DRIVER),
    informs=True,
    evaluate=evaluate,
)
