"""The faults that a simulated node can have. To add one, add an entry to `FAULTS` of the file of its hardware.

A fault turns the stored outputs of a healthy node into those of a broken one. It is named in the host
variable `demo_faults` and by `flightline demo --fault NAME=NODE`. A simulated fault proves the way from
a tool's output to the verdict; that a real fault is recognised is proven on recorded outputs.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Sequence

from flightline_node.model import SettingsError
from flightline_node.suggest import unknown

from ..hardware import Machine
from ..tree import Files, healthy
from . import active_tests, gpu, links, network, neuron, system, tools
from .fault import CONNECTION, FLEET, NODE, DoesNotApply, Fault

__all__ = ["CONNECTION", "FAULTS", "FLEET", "NODE", "Fault", "broken", "named"]

FAULTS: Dict[str, Fault] = {
    fault.name: fault for part in (gpu, links, network, system, active_tests, neuron, tools) for fault in part.FAULTS
}


def named(names: Iterable[str]) -> List[Fault]:
    """Faults by name. Raises SettingsError for unknown ones, listing those there are."""
    wanted = list(names)
    strangers = [str(name) for name in wanted if name not in FAULTS]
    if strangers:
        raise SettingsError("; ".join(unknown("fault", name, FAULTS) for name in strangers))
    return [FAULTS[name] for name in wanted]


_OF_GPUS = re.compile(r"nvidia|nvlink|nccl")
"""In the name of a file or tool that only nodes with NVIDIA GPUs have."""


def broken(machine: Machine, names: Sequence[str]) -> Files:
    """Make the files of a node with faults, applied in the order given.

    Raises SettingsError for an unknown fault, or one that the instance type cannot have.
    """
    instance_type = machine.expected.instance_type
    files = healthy(instance_type)
    for fault in named(names):
        try:
            change = fault.apply(files, machine)
            if machine.neuron and any(_OF_GPUS.search(path) for path in change):
                raise DoesNotApply("it has no GPU")
        except (DoesNotApply, KeyError) as error:
            why = f"no {error.args[0]}" if isinstance(error, KeyError) else error
            raise SettingsError(
                f"saw that fault {fault.name} does not apply to {instance_type}: {why}; "
                f"wanted a type that has it: {fault.type}"
            ) from error
        if fault.scope != CONNECTION and all(files.get(path) == entry for path, entry in change.items()):
            raise SettingsError(
                f"saw that fault {fault.name} changes nothing on {instance_type}, "
                f"wanted a type that has it: {fault.type}"
            )
        files.update({path: entry for path, entry in change.items() if entry is not None})
        for path in [path for path, entry in change.items() if entry is None]:
            files.pop(path, None)
    return files
