#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""One file system over the instance-store disks: a thin shell over flightline_host/system/instance_store.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_instance_store
short_description: Make one mounted file system over the instance-store disks
description:
  - Finds the instance-store disks of an EC2 instance, stripes several into one array (RAID 0), makes an xfs file system
    and mounts it. What is there already is kept.
  - Refuses a disk with anybody else's data, and an array that lost a disk.
extends_documentation_fragment: [flightline_module]
options:
  path:
    description: Where to mount it.
    type: str
    required: true
  disks:
    description: Number of disks the instance type has; V(0) takes what is there, but not none.
    type: int
    default: 0
  options:
    description: Mount options.
    type: str
    default: noatime,nodiscard
  mode:
    description: Mode of the mounted directory.
    type: str
    default: "1777"
  erase:
    description: Overwrite disks that hold something else.
    type: bool
    default: false
attributes:
  check_mode:
    description: Looks the same; makes nothing.
  diff_mode:
    support: full
    description: Shows device, file system and mount.
"""

EXAMPLES = r"""
- name: Stripe the eight disks of a p5
  flightline_instance_store:
    path: /mnt/local
    disks: 8
"""

RETURN = r"""
facts:
  description: C(disks), C(device), C(type), C(path) and C(mounted).
  returned: success
  type: dict
  sample: {disks: [/dev/nvme1n1], device: /dev/nvme1n1, type: xfs, path: /mnt/local, mounted: true}
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
from ansible.module_utils.flightline_host.system import instance_store

ARGUMENT_SPEC = {
    "path": {"type": "str", "required": True},
    "disks": {"type": "int", "default": 0},
    "options": {"type": "str", "default": "noatime,nodiscard"},
    "mode": {"type": "str", "default": "1777"},
    "erase": {"type": "bool", "default": False},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, instance_store.ensure)


if __name__ == "__main__":
    main()
