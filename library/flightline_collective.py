#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Run a test over several nodes: a thin shell over flightline_host/trial/collective.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_collective
short_description: Run one program over several nodes, and end it everywhere
description:
  - Starts a program with Open MPI's mpirun or Slurm's srun from this node on several nodes, with a deadline that ends
    every rank on its own node whatever became of the launcher.
  - With O(state=ended) it ends what is left of a test on this node, found by the test's id in the environment.
extends_documentation_fragment: [flightline_module]
options:
  state:
    description: V(ready) says who this node is and whether it could start a test; V(run) runs it; V(ended) ends it.
    type: str
    choices: [ready, run, ended]
    default: run
  id:
    description: The test's id; it is in the environment of every rank.
    type: str
    default: ""
  nodes:
    description: Names or addresses of the nodes, as the launcher reaches them.
    type: list
    elements: str
    default: []
  ranks:
    description: Ranks on each node.
    type: int
    default: 1
  program:
    description: The program, an absolute path, and its arguments.
    type: list
    elements: str
    default: []
  deadline_s:
    description: Seconds after which every rank is ended.
    type: int
    default: 300
  environment:
    description: Environment variables of every rank.
    type: dict
    default: {}
  launcher:
    description: What starts the ranks.
    type: str
    choices: [mpirun, srun]
    default: mpirun
  launcher_options:
    description: More arguments of the launcher.
    type: list
    elements: str
    default: []
  search:
    description: Directories in which the launcher is looked for first.
    type: list
    elements: str
    default: [/opt/amazon/openmpi5/bin, /opt/amazon/openmpi/bin]
attributes:
  check_mode:
    description: Starts and ends nothing.
  diff_mode:
    description: There is nothing to show.
"""

EXAMPLES = r"""
- name: Test two nodes together
  flightline_collective:
    id: r1-2
    nodes: [10.0.0.4, 10.0.0.5]
    ranks: 8
    program: [/opt/nccl-tests/build/all_reduce_perf, -b, 1G, -e, 8G, -f, "2", -g, "1"]
    deadline_s: 120
"""

RETURN = r"""
facts:
  description: What came of it, by O(state).
  returned: success
  type: dict
  sample: {rc: 0, seconds: 21.4, timed_out: false, output: "..."}
commands:
  description: The changing commands that ran, as argument lists.
  returned: always
  type: list
  elements: list
problems:
  description: What stands in the way, each with C(seen), C(wanted) and C(do).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.trial import collective

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["ready", "run", "ended"], "default": "run"},
    "id": {"type": "str", "default": ""},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "ranks": {"type": "int", "default": 1},
    "program": {"type": "list", "elements": "str", "default": []},
    "deadline_s": {"type": "int", "default": 300},
    "environment": {"type": "dict", "default": {}},
    "launcher": {"type": "str", "choices": ["mpirun", "srun"], "default": "mpirun"},
    "launcher_options": {"type": "list", "elements": "str", "default": []},
    "search": {"type": "list", "elements": "str", "default": ["/opt/amazon/openmpi5/bin", "/opt/amazon/openmpi/bin"]},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, collective.ensure)


if __name__ == "__main__":
    main()
