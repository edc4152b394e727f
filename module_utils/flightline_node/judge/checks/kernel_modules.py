"""Are the kernel modules loaded that accelerators and EFA need?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...model import Check, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context

# Any of these lets the NIC read GPU memory; a kernel with dma-buf and the open driver needs none.
PEER_MEMORY = ("efa_nv_peermem", "nvidia_peermem", "nv_peer_mem", "gdrdrv")

NOT_LOADED = Reason("not_loaded", "a kernel module is not loaded", Remedy.FIX_CONFIG)
NOT_YET = Reason("not_yet_loaded", "nvidia_uvm is not loaded yet", Remedy.FIX_CONFIG)


def evaluate(context: Context) -> Iterator[Finding]:
    """The driver's modules by what the type has, then the site's own list."""
    loaded = context.facts("modules").get("names", {})
    wanted = _wanted(context)
    missing = [name for name in wanted if name.replace("-", "_") not in loaded]
    for name in missing:
        evidence = ["nouveau is loaded in its place"] if name == "nvidia" and "nouveau" in loaded else []
        message = f"kernel module {name} is not loaded"
        rest: Dict[str, Any] = {"device": {"name": name}, "measured": "not loaded", "expected": "loaded"}
        yield context.fail(NOT_LOADED.of(name), message, evidence=evidence, **rest)
    if context.expected.has_nvidia_gpu and "nvidia" in loaded and "nvidia_uvm" not in loaded:
        # The first CUDA program of root loads it; a container cannot.
        message = "kernel module nvidia_uvm is not loaded yet: containers cannot load it themselves"
        yield context.warn(NOT_YET, message, device={"name": "nvidia_uvm"})
    if not missing:
        peers = [name for name in PEER_MEMORY if name in loaded]
        yield context.ok(f"loaded: {', '.join([*wanted, *peers])}")


def _wanted(context: Context) -> List[str]:
    names = ["nvidia"] if context.expected.has_nvidia_gpu else ["neuron"] if context.expected.has_neuron else []
    names += ["efa", "ib_uverbs"] if context.expected.efa_count else []
    return list(dict.fromkeys([*names, *context.expected.modules]))


def _any_wanted(context: Context) -> Optional[Skip]:
    none = "no kernel module expected: no accelerator or EFA by the type, none declared"
    return None if _wanted(context) else skips.NO_MODULES.because(none)


CHECK = Check(
    id="kernel_modules",
    order=650,
    title="Kernel modules",
    what="nvidia or neuron, efa and ib_uverbs as the instance type needs them, and the modules the inventory declares.",
    why="After a kernel update without matching modules the devices are there and no program can use them.",
    remedy="Load it (modprobe); if it does not exist for the running kernel, reinstall the driver or EFA installer.",
    out_of_service="Yes: without the driver's module its devices do not work.",
    source="NVIDIA driver README; AWS EFA documentation",
    needs=("modules",),
    tags=("host", "software"),
    applies=_any_wanted,
    skips=(skips.NO_MODULES,),
    evaluate=evaluate,
)
