#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Probe and judge one node: a thin shell over module_utils/flightline_node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_node
short_description: Probe a GPU node and judge it against its instance type
description:
  - Runs every probe of a level on the node (each in its own process group with a deadline), parses what the
    tools print and judges it. The whole plan of a node is one task, because Ansible's cost is per task and host.
  - The module only reads; all it leaves on the node is its own library, compiled, under C(~/.ansible/flightline).
    It does not fail on a bad node; the answer is in RV(verdict).
version_added: "0.1.0"
author:
  - Flightline contributors (@flightline)
options:
  instance_type:
    description:
      - EC2 instance type, which gives the expected values. V(none) judges only what needs no expectation.
    type: str
    required: true
  level:
    description: How much to measure.
    type: str
    choices: [quick, standard, deep]
    default: quick
  checks:
    description: Ids or tags of the checks to run; all of the level when empty.
    type: list
    elements: str
    default: []
  skip:
    description: Ids or tags of the checks to leave out; each is reported as SKIP.
    type: list
    elements: str
    default: []
  expected:
    description: Expected values on top of (or instead of) the instance type's, for example C(driver_version).
    type: dict
    default: {}
  thresholds:
    description: Thresholds by full name, C(<check>.<name>); C(flightline checks) lists them.
    type: dict
    default: {}
  waivers:
    description: Findings to set aside, each with C(check), C(scope), C(reason), C(owner) and C(expiry).
    type: list
    elements: dict
    default: []
  options:
    description: Options of checks that are not numbers, such as the Xid policy overrides.
    type: dict
    default: {}
  host:
    description: The node's name in the inventory; asked of the node when not given.
    type: str
    default: ""
  instance_id:
    description: The EC2 instance id, for the record.
    type: str
    default: ""
  root:
    description: File-system root that probes read from.
    type: path
    default: /
  tool_path:
    description: Directories searched for tools before the system's.
    type: list
    elements: path
    default: []
  bundle_dir:
    description: Keep the raw outputs in this directory on the node; they are removed when not given.
    type: path
attributes:
  check_mode:
    support: full
    description: The module only reads, so check mode gives the same answer.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: Judge a node against its instance type
  flightline_node:
    instance_type: p5.48xlarge

- name: Pin the driver, allow more heat, set one finding aside
  flightline_node:
    instance_type: p5.48xlarge
    expected:
      driver_version: "580"
    thresholds:
      memory.min_available_percent: 40
    waivers:
      - check: memory
        scope: gpu-7
        reason: leftover cache job, removed on Monday
        owner: ops@example.com
        expiry: 2026-12-01
"""

RETURN = r"""
record:
  description:
    - The node's row of the run store (findings, measures, versions, probes). A finding always has C(check),
      C(status) and C(message); C(device), C(measured), C(expected), C(unit), C(remedy) and C(evidence) only where
      they say something.
  returned: success
  type: dict
verdict:
  description: V(go) or V(no-go) for this node alone.
  returned: success
  type: str
  sample: go
"""

from pathlib import Path

import ansible.module_utils
from ansible.module_utils import flightline_compiled
from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {
    "instance_type": {"type": "str", "required": True},
    "level": {"type": "str", "choices": ["quick", "standard", "deep"], "default": "quick"},
    "checks": {"type": "list", "elements": "str", "default": []},
    "skip": {"type": "list", "elements": "str", "default": []},
    "expected": {"type": "dict", "default": {}},
    "thresholds": {"type": "dict", "default": {}},
    "waivers": {"type": "list", "elements": "dict", "default": []},
    "options": {"type": "dict", "default": {}},
    "host": {"type": "str", "default": ""},
    "instance_id": {"type": "str", "default": ""},
    "root": {"type": "path", "default": "/"},
    "tool_path": {"type": "list", "elements": "path", "default": []},
    "bundle_dir": {"type": "path"},
}


def main() -> None:
    """Read the arguments, run the plan, return the record."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    flightline_compiled.use(ansible.module_utils.__path__)
    from ansible.module_utils.flightline_node import node as flightline
    from ansible.module_utils.flightline_node.expected import resolve
    from ansible.module_utils.flightline_node.model import SettingsError
    from ansible.module_utils.flightline_node.settings import build

    given = module.params
    try:
        expected = resolve(given["instance_type"], given["expected"])
        settings = build(
            level=given["level"],
            select=given["checks"],
            skip=given["skip"],
            thresholds=given["thresholds"],
            waivers=given["waivers"],
            options=given["options"],
        )
        record = flightline.run(
            flightline.Node(given["root"], tuple(given["tool_path"])),
            expected,
            settings,
            flightline.Identity(given["host"], given["instance_id"]),
            Path(given["bundle_dir"]) if given["bundle_dir"] else None,
        )
    except SettingsError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"no place for the probes' outputs: {error}; free space in /tmp or /dev/shm on the node")
    module.exit_json(changed=False, verdict=record["verdict"], record=record)


if __name__ == "__main__":
    main()
