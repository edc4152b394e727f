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
    A node that is not go also keeps its bundle, compressed, in C(/var/log/flightline) where that directory exists
    (option C(evidence_dir)), and after a failed GPU check above V(quick) NVIDIA's bug report (option C(bug_report));
    not in check mode.
    It does not fail on a bad node; the answer is in RV(verdict).
extends_documentation_fragment: [flightline_module]
options:
  # begin: made by python -m tools.inputs
  instance_type:
    description: "EC2 instance type, the source of expected values; none judges only what needs no expectation."
    type: "str"
    required: true
  level:
    description: "How much to measure."
    type: "str"
    choices: ["quick", "standard", "deep"]
    default: "quick"
  checks:
    description: "Ids or tags of the checks to run; all of the level when empty."
    type: "list"
    elements: "str"
    default: []
  skip:
    description: "Ids or tags of checks to leave out; each is reported as SKIP."
    type: "list"
    elements: "str"
    default: []
  expected:
    description: "Expected values on top of the instance type's, such as driver_version."
    type: "dict"
    default: {}
  thresholds:
    description: "Thresholds by full name, <check>.<name>, such as disk_space.warn_percent."
    type: "dict"
    default: {}
  waivers:
    description: "Findings to set aside, each with check, scope, reason, owner and expiry."
    type: "list"
    elements: "dict"
    default: []
  options:
    description: "Options of checks that are not numbers, such as xid_policy."
    type: "dict"
    default: {}
  site_checks:
    description: "Checks of the site's own by name: a program of the node, or a rule over facts (docs/site-checks.md)."
    type: "dict"
    default: {}
  host:
    description: "The node's name in the inventory; asked of the node when empty."
    type: "str"
    default: ""
  instance_id:
    description: "EC2 instance id, for the record."
    type: "str"
    default: ""
  root:
    description: "File-system root that probes read from."
    type: "path"
    default: "/"
  tool_path:
    description: "Directories searched for tools before the system's."
    type: "list"
    elements: "path"
    default: []
  bundle_dir:
    description: "Keep the raw outputs in this directory on the node; removed when not given."
    type: "path"
  timeout_s:
    description: "Seconds until a node is given up, UNKNOWN; 0: quick 180, standard 6000, deep 18000."
    type: "int"
    default: 0
  call_id:
    description: "Comes back in the record, so that an old answer is not taken for a new one. Set by the action plugin."
    type: "str"
    default: ""
  return_bundle:
    description: "Return the raw outputs of a node that is not go."
    type: "bool"
    default: false
  library_key:
    description: "Version of the node library to keep on the node; set by the action plugin."
    type: "str"
    default: ""
  # end: made by python -m tools.inputs
attributes:
  check_mode:
    description: The module only reads, so check mode gives the same answer.
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
bundle:
  description: The raw outputs, base64 of a tar.gz; the end of a very long file, and the names of what did not fit.
  returned: with O(return_bundle), when the node is not go
  type: str
"""

from ansible.module_utils import flightline_node
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.flightline_node import keep
from ansible.module_utils.flightline_node.inputs import ARGUMENTS


def main() -> None:
    """Read the arguments, run the plan, return the record."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    keep.use(flightline_node.__path__, module.params["library_key"])
    # The entry point goes along: the library that is kept is then called by it.
    from ansible.module_utils.flightline_node import __main__ as _entry  # noqa: F401
    from ansible.module_utils.flightline_node.answer import answer

    result = answer({**module.params, "check_mode": module.check_mode})
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
