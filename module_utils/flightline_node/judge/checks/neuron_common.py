"""What the neuron checks share: when they apply, and how a finding names a device."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...know.expected import NO_TYPE
from ...model import Check, Device, Facts, Skip, SkipReason
from .. import skips
from ..context import Context

OF_NEURON: Tuple[SkipReason, ...] = (skips.NO_NEURON, skips.GPU_MACHINE)
"""Why a check of Neuron devices is skipped."""


def neuron_expected(context: Context) -> Optional[Skip]:
    """Why a check of Neuron devices is skipped on an instance type, or a machine without a type; else None."""
    expected = context.expected
    if expected.has_neuron is False:
        return skips.NO_NEURON.because(f"no Neuron device in {expected.instance_type}")
    seen = context.optional("neuron_sysfs")
    if expected.has_neuron is None and seen is not None and not seen.get("driver") and not seen.get("devices"):
        return skips.GPU_MACHINE.because("no Neuron driver and no Neuron device on this machine")
    if expected.has_neuron is None and expected.gpu_count:
        return skips.NO_NEURON.because(f"{expected.instance_type} is judged as a machine with GPUs")
    return None


neuron_check = partial(Check, applies=neuron_expected, skips=OF_NEURON)
"""A check of Neuron devices, skipped for OF_NEURON alone where it does not say otherwise."""


def typed(context: Context) -> bool:
    """Is the instance type known, so that counts can be compared?"""
    return context.expected.instance_type != NO_TYPE


def listed(context: Context) -> List[Facts]:
    """The devices that neuron-ls lists."""
    found: List[Facts] = context.facts("neuron_ls").get("devices", [])
    return found


def label(index: Any) -> str:
    """'neuron3': how the driver, messages and measures name a device."""
    return f"neuron{index}"


def device(context: Context, index: Any) -> Device:
    """A device as findings carry it: its name, and PCI address and serial number where a tool gave them."""
    found: Dict[str, Any] = {"name": label(index)}
    for row in (context.optional("neuron_ls") or {}).get("devices", []):
        if row.get("index") == index and row.get("bdf"):
            found["pci"] = row["bdf"]
    for row in (context.optional("neuron_sysfs") or {}).get("devices", []):
        if row.get("index") == index and row.get("serial"):
            found["serial"] = row["serial"]
    return found


def of_device(context: Context, index: Any) -> Context:
    """The context of one device: its findings and measures name it."""
    return context.of(device(context, index), label(index))


def told(context: Context) -> Iterator[str]:
    """The sentence with which neuron-ls says that there is no device."""
    error = context.facts("neuron_ls").get("error")
    if error:
        yield str(error)
