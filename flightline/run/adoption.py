"""Adopt a cluster from a machine that reaches its nodes: an inventory of what Slurm says, and playbooks/adopt.yml."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import flightline_node
from flightline_node.adopt.found import Found
from flightline_node.model import SettingsError
from flightline_node.watch.slurm import LISTED_BYTES, SlurmNode, listed
from flightline_node.watch.tool import run

from ..node_package import contents
from ..store.atomic import write_atomic
from . import ansible_errors, playbooks

WORD = "# Written by flightline adopt; flightline adopt --remove removes it.\n"
AWAY = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "FUTURE"})
"""States of a node that has no machine now. Source: scontrol(1), NODE STATE CODES."""
SCONTROL_S = 30.0


@dataclass(frozen=True)
class Wanted:
    """What to do. inventory: its sources; hosts: of it; removes: take it out; checks: change nothing."""

    inventory: Sequence[str]
    hosts: str = "gpu_nodes"
    removes: bool = False
    checks: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a host did of a part."""

    host: str
    part: str
    said: dict[str, Any]


def nodes(found: Found) -> list[SlurmNode]:
    """The nodes of the Slurm that is here. Raises SettingsError."""
    said = run([f"{found.bin}/scontrol", "-o", "show", "node"], os.defpath, SCONTROL_S, LISTED_BYTES)
    if said.status != 0:
        raise SettingsError(
            f"scontrol show node: saw {said.text[:200]}, wanted the nodes; do: adopt when Slurm answers"
        )
    return listed(said.text)


def inventory_of(found: Found, known: Iterable[SlurmNode], instance_type: str) -> str:
    """The nodes that have a machine, and the controller where this is one, as an inventory."""
    typed = {"instance_type": instance_type} if instance_type else {}
    hosts = {one.name: {"ansible_host": one.names[-1], **typed} for one in known if not one.states & AWAY}
    groups: dict[str, Any] = {"gpu_nodes": {"hosts": hosts}}
    if found.controls:
        groups["slurm_controller"] = {"hosts": {"localhost": {"ansible_connection": "local"}}}
    return WORD + yaml.safe_dump({"all": {"children": groups}}, sort_keys=False)


def add_types(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write down what EC2 said of the nodes' types, for the preflights to come."""
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    hosts = text["all"]["children"]["gpu_nodes"]["hosts"]
    for one in outcomes:
        if one.part == "node" and one.host in hosts and one.said.get("instance_type"):
            hosts[one.host]["instance_type"] = one.said["instance_type"]
    write_atomic(path, (WORD + yaml.safe_dump(text, sort_keys=False)).encode())


def play(wanted: Wanted) -> list[Outcome]:
    """Run the playbook to its end. Raises SettingsError with what Ansible or a host said."""
    own = playbooks.find()
    with playbooks.workplace("adopt") as place:
        package, results = place / "flightline-node.pyz", place / "results"
        package.write_bytes(contents(Path(flightline_node.__file__).parent))
        results.mkdir()
        extra = {"adopt_package": str(package), "adopt_results": str(results), "adopt_hosts": wanted.hosts}
        extra["adopt_state"] = "absent" if wanted.removes else "present"
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), str(own.playbook("adopt"))]
        argv += [part for source in wanted.inventory for part in ("-i", playbooks.absolute(source))]
        argv += ["-e", json.dumps(extra), *(["--check"] if wanted.checks else [])]
        env = {**os.environ, **playbooks.environment(own)}
        done = subprocess.run(argv, env=env, cwd=own.root, capture_output=True, text=True, check=False)
        found = [_outcome(path) for path in sorted(results.glob("*.json"))]
        if done.returncode:
            why = ansible_errors.why((done.stdout + done.stderr).splitlines()) or f"status {done.returncode}"
            undo = "" if wanted.checks else "; flightline adopt --remove takes out what was written"
            raise SettingsError(
                f"adopt: saw {why}; wanted every node to take its part; do: mend it and run again{undo}"
            )
    return found


def _outcome(path: Path) -> Outcome:
    host, part, _ = path.name.rsplit(".", 2)
    return Outcome(host, part, json.loads(path.read_text(encoding="utf-8")))
