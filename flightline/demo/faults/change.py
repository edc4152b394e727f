"""Ways to change a simulated node's files, shared by the faults of all kinds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, Mapping, Optional, Tuple

from .. import host
from ..hardware import HOSTNAME, Machine
from ..tree import Entry, Tool, text
from .fault import Apply, Change, DoesNotApply, applied

GPU = 3
"""The GPU that faults of one GPU are about (the only one on a type that has one)."""


def target(machine: Machine) -> int:
    """The index of the GPU that a fault of one GPU is about. Raises DoesNotApply without GPUs."""
    if machine.neuron:
        raise DoesNotApply("it has no GPU")
    return min(GPU, machine.gpu_count - 1)


def substituted(content: str, pattern: str, new: str, what: str) -> str:
    """Text with the first match of a pattern replaced. Raises DoesNotApply where there is none."""
    changed, count = re.subn(pattern, lambda _: new, content, count=1, flags=re.DOTALL)
    if not count:
        raise DoesNotApply(f"no {what} in the output of this instance type")
    return changed


@applied
def set_smi(files: Mapping[str, Entry], machine: Machine, *edits: Tuple[str, str]) -> Change:
    """Set elements of one GPU in nvidia-smi's XML; each is ('section/tag', value), the section optional."""
    content = text(files, "out/nvidia-smi.xml")
    blocks = content.split("\t<gpu id=")
    block = blocks[1 + target(machine)]
    for path, value in edits:
        section, _, tag = path.rpartition("/")
        before, found, rest = block.partition(f"<{section}>") if section else ("", "", block)
        if section and not found:
            raise DoesNotApply(f"no {section} in the output of this instance type")
        old = re.search(f"<{tag}>([^<]*)</{tag}>", rest)
        # An N/A says that the part has no such thing to break.
        if not old or (old.group(1) == "N/A" and value != "N/A"):
            raise DoesNotApply(f"{machine.gpu.name} has no {tag}")
        block = before + found + rest[: old.start(1)] + value + rest[old.end(1) :]
    blocks[1 + target(machine)] = block
    return {"out/nvidia-smi.xml": "\t<gpu id=".join(blocks).encode()}


@applied
def logged(files: Mapping[str, Entry], machine: Machine, *messages: str) -> Change:
    """Kernel messages some minutes after boot; {pci} is the GPU without function, {pcif} with it."""
    full = machine.gpu_pci()[target(machine)]
    lines = [
        f"{host.stamp(0)[:11]}09:1{index // 60}:{index % 60:02d}+0000 {HOSTNAME} kernel: "
        + message.format(pci=full[:-2], pcif=full, index=target(machine))
        for index, message in enumerate(messages)
    ]
    return {"out/kernel.log": (text(files, "out/kernel.log") + "\n".join(lines) + "\n").encode()}


@applied
def edited(files: Mapping[str, Entry], machine: Machine, path: str, pattern: str, new: str) -> Change:
    """Replace the first match of a pattern in a stored file."""
    if path not in files:
        raise DoesNotApply(f"no {path} on this instance type")
    return {path: substituted(text(files, path), pattern, new, path.rpartition("/")[2]).encode()}


@applied
def together(files: Mapping[str, Entry], machine: Machine, *steps: Apply) -> Change:
    """Several changes, each seeing those before it."""
    done: Dict[str, Optional[Entry]] = {}
    for step in steps:
        done.update(step({**files, **{path: entry for path, entry in done.items() if entry is not None}}, machine))
    return done


@applied
def set_tool(files: Mapping[str, Entry], machine: Machine, /, name: str, **fields: Any) -> Change:
    """Change fields of a simulated tool."""
    tool = files[f"tools/{name}"]
    return {f"tools/{name}": replace(tool, **fields) if isinstance(tool, Tool) else tool}


def without_line(content: str, pci: str) -> str:
    """The list of lspci without one device."""
    return substituted(content, rf"(?<=\n){re.escape(pci)} [^\n]*\n", "", f"device {pci}")


SMI_PARSERS = ("nvidia_smi", "nvidia_smi_topo", "nvlink")


HANG = "trap '' TERM\nsleep 300 &\nsleep 300"
