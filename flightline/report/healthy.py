"""The nodes that passed, as the things that start jobs want them: an MPI hostfile, a Slurm node list, an Ansible group.

A name that a shell, an Ansible pattern or a Slurm host list could read as more than a name is in none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO

from flightline.fleet.result import Report
from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError, Verdict

from .copies import is_plain, slurm_list

NAMES: Mapping[str, str] = {"mpi": "go.mpi", "slurm": "go.slurm", "ansible": "go.ini"}
GROUP = "flightline_go"


@dataclass(frozen=True)
class Healthy:
    """A node that passed. address: by which other nodes reach it; slots: its GPUs, 1 where they are not known."""

    host: str
    address: str = ""
    slots: int = 1


def of_report(report: Report) -> list[Healthy]:
    """The go nodes of a run, in the inventory's order."""
    slots = {name: gpus_of(name) for name in {row.instance_type for row in report.rows}}
    return [
        Healthy(row.host, row.address, slots[row.instance_type]) for row in report.rows if row.verdict is Verdict.GO
    ]


def gpus_of(instance_type: str) -> int:
    """How many GPUs a type has; 1 for a type without any, or an unknown one."""
    try:
        return resolve(instance_type).gpu_count or 1
    except SettingsError:
        return 1


def write(kind: str, nodes: Iterable[Healthy], stream: IO[str]) -> None:
    """Write one of the lists; empty when no node passed, but for the Ansible group's head."""
    plain = [node for node in nodes if is_plain(node.host) and is_plain(node.address or node.host)]
    if kind == "mpi":
        stream.write("".join(f"{node.address or node.host} slots={node.slots}\n" for node in plain))
    elif kind == "slurm":
        stream.write(f"{slurm_list(node.host for node in plain)}\n" if plain else "")
    else:
        stream.write(f"[{GROUP}]\n" + "".join(f"{node.host}\n" for node in plain))
