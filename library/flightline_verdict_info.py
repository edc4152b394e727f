#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Documentation of the flightline_verdict_info action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_verdict_info
short_description: Let a play go on only with hosts that a preflight found good
description:
  - Judges a stored run again and fails when the hosts in question are not all go.
  - A host that the run did not judge, and a run that is too old, are no-go as well.
  - Runs on the controller; run it once for the whole play.
extends_documentation_fragment: [flightline_module]
requirements:
  - the flightline package in the controller's Python
options:
  run:
    description: Id of the run, or V(latest).
    type: str
    default: latest
  hosts:
    description: Hosts that must be go; all of the run when empty.
    type: list
    elements: str
    default: []
  max_age_hours:
    description: Refuse a run that started longer ago than this.
    type: float
  store:
    description:
      - The run store's file, or V(aws) or V(aws:TABLE).
      - E(FLIGHTLINE_STORE) or C(.flightline/runs.sqlite) when not given.
    type: str
  fail_on_no_go:
    description: Fail on no-go; with V(false) the answer is only returned.
    type: bool
    default: true
attributes:
  check_mode:
    description: It only reads, so check mode gives the same answer.
"""

EXAMPLES = r"""
- name: Train only on nodes that were found good today
  flightline_verdict_info:
    hosts: "{{ ansible_play_hosts_all }}"
    max_age_hours: 12
  run_once: true
"""

RETURN = r"""
verdict:
  description: V(go) or V(no-go) for the hosts asked about.
  returned: always
  type: str
  sample: no-go
run:
  description: Id of the run.
  returned: always
  type: str
  sample: 20261121T100743Z-712b30
counts:
  description: Numbers of the whole run (nodes, go, no_go, unreachable).
  returned: always
  type: dict
go:
  description: Hosts that are go.
  returned: always
  type: list
  elements: str
no_go:
  description: Reasons by host.
  returned: always
  type: dict
  sample: {gpu-3: ["gpu_count: 7 of 8 GPUs: 1 missing"]}
reasons:
  description: Why it is no-go; empty on go.
  returned: always
  type: list
  elements: str
left_out:
  description: Checks that the run was told to leave out, in words; a go says nothing of them. Warnings as well.
  returned: always
  type: list
  elements: str
"""
