#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Documentation of the flightline_validate action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_validate
short_description: Check what the inventory says about every host of the play
description:
  - Checks instance types, expected values, thresholds, waivers, check ids, the level and the faults of simulated
    nodes for every host of the play, and fails with all mistakes at once, each with its hosts.
  - Runs on the controller and touches no node, except that it puts up the simulated nodes of the demo fleet.
  - Run it once for the whole play.
extends_documentation_fragment: [flightline_module]
requirements:
  - the flightline package in the controller's Python
options: {}
notes:
  - "Variables it reads from each host: C(instance_type), C(instance_id), C(flightline_level), C(flightline_checks),
    C(flightline_skip), C(flightline_expected), C(flightline_thresholds), C(flightline_waivers),
    C(flightline_options), C(flightline_publish), C(demo_dir) and C(demo_faults)."
attributes:
  check_mode:
    description: Gives the same answer; the simulated nodes are put up as well, or there would be none to probe.
"""

EXAMPLES = r"""
- name: Validate the inventory
  hosts: all
  gather_facts: false
  tasks:
    - name: Check the variables of every host
      flightline_validate:
      run_once: true
"""

RETURN = r"""
hosts:
  description: Instance type and instance id by host.
  returned: success
  type: dict
  sample: {gpu-1: {instance_type: p5.48xlarge, instance_id: i-0123456789abcdef0}}
absent:
  description:
    - Nodes that the stack has and the inventory does not list, with a message; none under C(--limit). A preflight gives
      each a row of its own, which is a no-go.
  returned: success
  type: list
  elements: dict
  sample: [{host: flightline-absent-1, instance_type: p5.48xlarge, message: "the stack has 8 GPU nodes, 7 are listed"}]
level:
  description: The level of the run, from its first host.
  returned: success
  type: str
  sample: quick
publish:
  description: Where the run is published, from C(flightline_publish) of the first host; empty when nowhere.
  returned: success
  type: dict
  sample: {table: flightline-results, bucket: flightline-bundles}
mistakes:
  description: What is to be corrected, and on which hosts.
  returned: failure
  type: dict
  sample: {"unknown level 'fast'; known levels are quick, standard, deep": [gpu-1]}
"""
