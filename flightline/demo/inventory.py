"""Write the inventory of a simulated fleet."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

from flightline_node.model import SettingsError

from .faults import named
from .fleet import instance_id, steps_for
from .hardware import machine

MARK = "# Simulated by Flightline's demo fleet: no machine of this inventory exists."
_NODES = "{{ inventory_dir }}/.nodes"
MAX_NODES = 100_000

_HEAD = """\
{mark}
# Each node is a directory of this machine with its own tools and files; `demo_faults` names what is wrong
# with it (flightline demo --faults lists the names). No root, no network, no account.
demo:
  vars:
    # A node whose demo_faults names `unreachable` gets an address on which nothing listens.
    ansible_connection: "{{{{ 'ssh' if 'unreachable' in demo_faults | default([]) else 'local' }}}}"
    ansible_host: 127.0.0.1
    ansible_port: 1
    ansible_python_interpreter: "{{{{ ansible_playbook_python }}}}"
    instance_type: {instance_type}
    demo_dir: "{nodes}/{{{{ inventory_hostname }}}}"
    flightline_root: "{{{{ demo_dir }}}}/root"
    flightline_tool_path:
      - "{{{{ demo_dir }}}}/tools"
  hosts:
"""


def node_names(count: int) -> List[str]:
    """gpu-01, gpu-02 and so on, padded so that they sort."""
    width = max(2, len(str(count)))
    return [f"gpu-{number:0{width}d}" for number in range(1, count + 1)]


def render(nodes: int, instance_type: str, faults: Sequence[Tuple[str, str]], directory: str = _NODES) -> str:
    """Write the text of hosts.yml. directory: where the nodes' directories go, an Ansible expression.

    Raises SettingsError naming every fault, node or type that is not known.
    """
    if not 1 <= nodes <= MAX_NODES:
        raise SettingsError(f"saw {nodes} nodes, wanted 1 to {MAX_NODES}")
    machine(instance_type)
    names = node_names(nodes)
    wanted = _by_node(names, faults)
    for node, broken in wanted.items():
        try:
            steps_for(instance_type, tuple(broken))
        except SettingsError as error:
            raise SettingsError(f"{node}: {error}") from error
    lines = [_HEAD.format(mark=MARK, instance_type=instance_type, nodes=directory)]
    for name in names:
        lines.append(f"    {name}:\n      instance_id: {instance_id(name)}\n")
        lines.append(f"      demo_faults: [{', '.join(wanted.get(name, []))}]\n")
    return "".join(lines)


def _by_node(names: Sequence[str], faults: Sequence[Tuple[str, str]]) -> Mapping[str, List[str]]:
    named([fault for fault, _ in faults])
    strangers = sorted({node for _, node in faults} - set(names))
    if strangers:
        raise SettingsError(f"saw no node {', '.join(strangers)}, wanted one of {names[0]} to {names[-1]}")
    wanted: Dict[str, List[str]] = {}
    for fault, node in faults:
        if fault not in wanted.setdefault(node, []):
            wanted[node].append(fault)
    return wanted


def write_inventory(out: Path, nodes: int, instance_type: str, faults: Sequence[Tuple[str, str]]) -> Path:
    """Write hosts.yml into a directory and return its path.

    faults: (fault name, node name) pairs. A directory that holds anything but an earlier demo inventory is
    refused. Raises SettingsError for that and for unknown names; OSError when it cannot be written.
    """
    content = render(nodes, instance_type, faults)
    path = out / "hosts.yml"
    if out.exists() and not out.is_dir():
        raise SettingsError(f"{out}: saw what is not a directory, wanted a new or empty one")
    if out.is_dir() and any(out.iterdir()) and not _ours(path):
        raise SettingsError(
            f"{out}: saw that it is not empty and no inventory of the demo fleet, wanted a new or empty directory"
        )
    if re.search(r"[{}]", str(out.resolve())):
        raise SettingsError(f"{out}: saw braces, which Ansible takes for an expression, wanted a path without")
    out.mkdir(parents=True, exist_ok=True)
    part = out / f".hosts.yml.part{os.getpid()}"
    part.write_text(content, encoding="utf-8")
    part.replace(path)
    return path


def _ours(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as handle:
            return handle.readline().rstrip("\n") == MARK
    except OSError:
        return False
