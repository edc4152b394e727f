#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Configure or verify LNet: a thin shell over flightline_host/system/lnet.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_lnet
short_description: Put LNet on its networks and interfaces
description:
  - Adds the interfaces that a network lacks, removes those that should not be there, and then looks again, because
    interfaces can fail to attach without an error.
  - EFA devices are those whose driver is C(efa); P6 instances also show other RDMA devices.
extends_documentation_fragment: [flightline_module]
options:
  state:
    description: V(verified) only looks, and fails when something is to be changed.
    type: str
    choices: [present, verified]
    default: present
  networks:
    description: Networks with their interfaces.
    type: list
    elements: dict
    default: []
    suboptions:
      net:
        description: Name of the LNet network.
        type: str
        required: true
      interfaces:
        description: Names of its interfaces.
        type: list
        elements: str
        required: true
  efa_interfaces:
    description: Number of EFA devices for the network C(efa), spread over all of them; none when V(0).
    type: int
    default: 0
  efa_peer_credits:
    description: Peer credits of each EFA interface.
    type: int
    default: 32
  ip_interface:
    description: Interface whose address the EFA transport uses; its own choice when empty.
    type: str
    default: ""
  exclusive:
    description: Remove interfaces that are not listed.
    type: bool
    default: true
attributes:
  check_mode:
    description: Looks and plans the same; nothing is changed.
  diff_mode:
    support: full
    description: Shows interfaces by network.
"""

EXAMPLES = r"""
- name: Lustre over TCP
  flightline_lnet:
    networks:
      - net: tcp
        interfaces: [ens5]

- name: Lustre over eight EFA devices and TCP
  flightline_lnet:
    networks:
      - net: tcp
        interfaces: [ens5]
    efa_interfaces: 8
    ip_interface: ens5
"""

RETURN = r"""
facts:
  description: C(networks), the interfaces by network.
  returned: success
  type: dict
  sample: {networks: {efa: [rdmap85s0], tcp: [ens5]}}
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
from ansible.module_utils.flightline_host.system import lnet

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "verified"], "default": "present"},
    "networks": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "net": {"type": "str", "required": True},
            "interfaces": {"type": "list", "elements": "str", "required": True},
        },
    },
    "efa_interfaces": {"type": "int", "default": 0},
    "efa_peer_credits": {"type": "int", "default": 32},
    "ip_interface": {"type": "str", "default": ""},
    "exclusive": {"type": "bool", "default": True},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, lnet.ensure)


if __name__ == "__main__":
    main()
