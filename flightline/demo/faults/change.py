"""Ways to change a simulated node's files, shared by the faults of all kinds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from .. import host
from ..hardware import HOSTNAME, Machine
from ..tree import Entry, Tool, text
from .fault import Apply, Change, DoesNotApply

GPU = 3
"""The GPU that faults of one GPU are about (the only one on a type that has one)."""


def target(machine: Machine) -> int:
    """The index of the GPU that a fault of one GPU is about. Raises DoesNotApply without GPUs."""
    if machine.neuron:
        raise DoesNotApply("it has no GPU")
    return min(GPU, machine.gpu_count - 1)


def last_efa(machine: Machine) -> str:
    """The EFA device that faults of one device are about. Raises DoesNotApply without EFA."""
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    return machine.efa_devices()[-1]


def substituted(content: str, pattern: str, new: str, what: str) -> str:
    """Text with the first match of a pattern replaced. Raises DoesNotApply where there is none."""
    changed, count = re.subn(pattern, lambda _: new, content, count=1, flags=re.DOTALL)
    if not count:
        raise DoesNotApply(f"no {what} in the output of this instance type")
    return changed


def set_smi(*edits: Tuple[str, str]) -> Apply:
    """Set elements of one GPU in nvidia-smi's XML; each is ('section/tag', value), the section optional."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
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

    return apply


def logged(*messages: str) -> Apply:
    """Kernel messages some minutes after boot; {pci} is the GPU without function, {pcif} with it."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        full = machine.gpu_pci()[target(machine)]
        lines = [
            f"{host.stamp(0)[:11]}09:1{index // 60}:{index % 60:02d}+0000 {HOSTNAME} kernel: "
            + message.format(pci=full[:-2], pcif=full, index=target(machine))
            for index, message in enumerate(messages)
        ]
        return {"out/kernel.log": (text(files, "out/kernel.log") + "\n".join(lines) + "\n").encode()}

    return apply


def edited(path: str, pattern: str, new: str) -> Apply:
    """Replace the first match of a pattern in a stored file."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        if path not in files:
            raise DoesNotApply(f"no {path} on this instance type")
        return {path: substituted(text(files, path), pattern, new, path.rpartition("/")[2]).encode()}

    return apply


def rewritten(path: str, change: Callable[[Any, Machine], object], indent: Union[int, str, None] = None) -> Apply:
    """Change the document of a stored JSON file in place."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        stored = text(files, path)
        document = json.loads(stored)
        change(document, machine)
        return {path: (json.dumps(document, indent=indent) + "\n" * stored.endswith("\n")).encode()}

    return apply


def together(*steps: Apply) -> Apply:
    """Several changes, each seeing those before it."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        done: Dict[str, Optional[Entry]] = {}
        for step in steps:
            done.update(step({**files, **{path: entry for path, entry in done.items() if entry is not None}}, machine))
        return done

    return apply


def set_tool(name: str, **fields: Any) -> Apply:
    """Change fields of a simulated tool."""

    def apply(files: Mapping[str, Entry], machine: Machine) -> Change:
        tool = files[f"tools/{name}"]
        return {f"tools/{name}": replace(tool, **fields) if isinstance(tool, Tool) else tool}

    return apply


def without_line(content: str, pci: str) -> str:
    """The list of lspci without one device."""
    return substituted(content, rf"(?<=\n){re.escape(pci)} [^\n]*\n", "", f"device {pci}")


SMI_PARSERS = ("nvidia_smi", "nvidia_smi_topo", "nvlink")


HANG = "trap '' TERM\nsleep 300 &\nsleep 300"
