#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""One step of healing on a node: a thin shell over flightline_node/act/repair.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_repair
short_description: Take one step of healing on a node
description:
  - Looks at a node's quarantine marker, sets or releases it, ends what holds the GPUs, resets them, or reboots the
    node. C(flightline remediate) takes its steps by it; by hand a step is taken without a budget and without a journal.
  - A step carries the token of the lease under which it was meant. A step of an older lease than one that has asked
    the node before is refused.
version_added: "0.1.0"
author:
  - Flightline contributors (@flightline)
options:
  action:
    description: The step.
    type: str
    choices: [look, mark, pause, reach, reboot, release, reset, restart, resume, yield]
    required: true
  token:
    description: The lease's token; V(0) marks, pauses or resumes a node for a person, and does nothing else.
    type: int
    required: true
  root:
    description: File-system root of the node's state.
    type: path
    default: /
  tool_path:
    description: Directories searched for tools before the system's.
    type: list
    elements: path
    default: []
  spare:
    description: Boot id of a machine that is not to be changed, as the one that Ansible runs on.
    type: str
    default: ""
  run:
    description: With V(release), the preflight that has proven the remedy.
    type: str
    default: ""
  judged_at:
    description: With V(release), when that preflight looked.
    type: str
    default: ""
  units:
    description: With V(restart), services to restart.
    type: list
    elements: str
    default: []
  marker:
    description: With V(mark), the quarantine marker to set where the node has none. With V(pause), who and why.
    type: dict
  targets:
    description: With V(reach), the addresses of lost neighbours and the ports of their daemons, HOST:PORT.
    type: list
    elements: str
    default: []
  package:
    description: The node's own library, which releases its marker.
    type: path
    default: /opt/flightline/flightline-node.pyz
attributes:
  check_mode:
    support: none
    description: A step is taken or not taken.
  diff_mode:
    support: none
    description: A step has no before and after.
"""

EXAMPLES = r"""
- name: Look at a node
  flightline_repair:
    action: look
    token: 1
"""

RETURN = r"""
outcome:
  description: V(done), V(failed), V(refused) by the platform, V(not done), or nothing where it was only begun.
  returned: success
  type: str
  sample: done
detail:
  description: What was said of it.
  returned: success
  type: str
boot_id:
  description: The kernel's name of this boot.
  returned: success
  type: str
marker:
  description: The quarantine marker.
  returned: with O(action=look)
  type: dict
jobs:
  description: Ids of processes that have a GPU or a Neuron device open.
  returned: with O(action=look)
  type: list
  elements: str
reached:
  description: What answered at each target, V(open), V(kernel) or V(silent).
  returned: with O(action=reach)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.flightline_node.act import repair

ARGUMENT_SPEC = {
    "action": {"type": "str", "choices": sorted(repair.ACTIONS), "required": True},
    "token": {"type": "int", "required": True, "no_log": False},
    "root": {"type": "path", "default": "/"},
    "tool_path": {"type": "list", "elements": "path", "default": []},
    "spare": {"type": "str", "default": ""},
    "run": {"type": "str", "default": ""},
    "judged_at": {"type": "str", "default": ""},
    "units": {"type": "list", "elements": "str", "default": []},
    "marker": {"type": "dict"},
    "targets": {"type": "list", "elements": "str", "default": []},
    "package": {"type": "path", "default": repair.PACKAGE},
}


def main() -> None:
    """Read the arguments, take the step."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC)
    step = repair.RepairStep(**module.params)
    try:
        answer = repair.take(step)
    except OSError as error:
        module.fail_json(msg=f"saw {error}; wanted a place for the node's state; do: look at its disk and mounts")
    module.exit_json(changed=step.action not in ("look", "reach"), **answer)


if __name__ == "__main__":
    main()
