#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Keep a unit running with its current configuration: a thin shell over flightline_host/system/unit_state.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_unit
short_description: Keep a systemd unit enabled, running, and no older than its configuration
description:
  - Enables and starts a unit, and restarts or reloads it when one of its files is younger than its last start.
  - In place of M(ansible.builtin.systemd_service) with a handler, because a handler is lost when the control process
    dies before the end of the play, and the service then keeps its old configuration for ever.
  - Also restarts a unit whose program was replaced, or that stands still by a signal, and thaws a frozen one.
    systemd calls all of these active.
  - Also fails when the unit does not run after it was started, for example because a condition of it is not met.
extends_documentation_fragment: [flightline_module]
options:
  name:
    description: Name of the unit.
    type: str
    default: ""
  state: &state
    description:
      - Whether the unit runs and is enabled, is enabled and left alone until the next boot, cannot start, or is
        disabled and stopped.
    type: str
    choices: [running, at_boot, masked, stopped]
    default: running
  files: &files
    description: What the unit reads when it starts; shell patterns are allowed. A file that is not there is ignored.
    type: list
    elements: str
    default: []
  on_change: &on_change
    description: How the unit takes a younger file.
    type: str
    choices: [restart, reload]
    default: restart
  stale: &stale
    description: Restart or reload it for a reason that no file shows.
    type: bool
    default: false
  units:
    description: Several units in place of one, in the order given; each with the other options of this module.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the unit.
        type: str
        required: true
      files: *files
      on_change: *on_change
      state: *state
      stale: *stale
  written:
    description:
      - What the units read, as M(flightline_files) takes it; made first, in the same call. A unit whose directory of
        drop-ins changes here is restarted.
      - In check mode units are not looked at where one of these would change.
    type: list
    elements: dict
    default: []
attributes:
  check_mode:
    description: Looks the same; a unit that is not installed yet would change.
  diff_mode:
    support: full
    description: Shows whether the unit is there, enabled, active and stale.
"""

EXAMPLES = r"""
- name: Run chrony with its current sources
  flightline_unit:
    name: chrony.service
    files: [/etc/chrony/chrony.conf]

- name: Let sshd take its settings without ending sessions
  flightline_unit:
    name: ssh.service
    files: [/etc/ssh/sshd_config.d/*.conf]
    on_change: reload

- name: Run a service with its settings
  flightline_unit:
    name: example.service
    files: [/etc/example.conf]
    written:
      - {path: /etc/example.conf, content: "{{ lookup('ansible.builtin.template', 'example.conf.j2') }}"}
      - {path: /etc/systemd/system/example.service.d, state: absent}

- name: Run the daemons of Slurm
  flightline_unit:
    units:
      - {name: munge.service, files: [/etc/munge/munge.key]}
      - {name: slurmd.service, files: [/etc/slurm/*.conf]}
"""

RETURN = r"""
facts:
  description:
    - C(there), C(enabled), C(active) and C(stale) of the unit, afterwards; of several units each by its name.
    - C(halted) is there before the change, when its process stood still.
  returned: success
  type: dict
  sample: {active: true, enabled: true, stale: false, there: true}
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
from ansible.module_utils.flightline_host.system import files, unit_state

EACH = {
    "files": {"type": "list", "elements": "str", "default": []},
    "on_change": {"type": "str", "choices": ["restart", "reload"], "default": "restart"},
    "state": {"type": "str", "choices": list(unit_state.STATES), "default": unit_state.RUNNING},
    "stale": {"type": "bool", "default": False},
}
ARGUMENT_SPEC = {
    **EACH,
    "name": {"type": "str", "default": ""},
    "written": {"type": "list", "elements": "dict", "default": [], "options": files.ENTRY_SPEC},
    "units": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {**EACH, "name": {"type": "str", "required": True}},
    },
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(
        ARGUMENT_SPEC,
        unit_state.ensure,
        kind=shell.Unlogged,
        mutually_exclusive=[("name", "units")],
        required_one_of=[("name", "units")],
    )


if __name__ == "__main__":
    main()
