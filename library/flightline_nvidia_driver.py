#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Verify or reload the NVIDIA driver: a thin shell over flightline_host/software/driver.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_nvidia_driver
short_description: Verify the NVIDIA driver and Fabric Manager, and load the installed version
description:
  - Reads the loaded kernel module, the one on disk, user space, packages, DKMS, Fabric Manager and which processes
    hold the devices. It asks no GPU, so that a GPU that hangs cannot hang it.
  - With O(state=loaded) an installed driver replaces an older one that still runs, without a reboot. A process on a
    GPU is never ended; it is named and the module fails.
  - All problems are reported at once, each with what was seen, what was wanted and what to do.
extends_documentation_fragment: [flightline_module]
options:
  state:
    description:
      - V(read) judges nothing.
      - V(packages) asks for whole packages of one version, for hosts that never load the module.
      - V(installed) also asks for the kernel module of the running kernel.
      - V(absent_or_whole) also accepts a host without any driver; a half-installed one fails.
      - V(loaded) asks for V(installed) and that the version runs, and reloads the kernel module if it does not.
    type: str
    choices: [read, packages, installed, loaded, absent_or_whole]
    default: installed
  version:
    description: A version (V(580.95.05)) or a branch (V(580)); any when empty.
    type: str
    default: ""
  minimum:
    description: The oldest version that serves the GPU; any when empty.
    type: str
    default: ""
  kernel_module:
    description: Which kernel module the GPU needs.
    type: str
    choices: [any, open, proprietary]
    default: any
  fabric_manager:
    description: Ask for Fabric Manager of exactly the driver's version; running when O(state=loaded).
    type: bool
    default: false
  nvlsm:
    description: Ask for the NVLink subnet manager, which NVLink 5 switches (P6) need.
    type: bool
    default: false
  persistenced:
    description: Ask for a running persistence daemon when O(state=loaded).
    type: bool
    default: false
attributes:
  check_mode:
    description: Looks and judges the same; only the reload is left out.
  diff_mode:
    support: full
    description: Shows the loaded and the installed version.
"""

EXAMPLES = r"""
- name: Read what there is, fail on a half-installed driver
  flightline_nvidia_driver:
    state: absent_or_whole
  register: driver

- name: Verify an image that brings its own driver
  flightline_nvidia_driver:
    version: "580"
    kernel_module: open
    fabric_manager: true

- name: Run the installed driver
  flightline_nvidia_driver:
    state: loaded
    version: 580.95.05
    fabric_manager: true
    persistenced: true
"""

RETURN = r"""
facts:
  description:
    - C(version), C(loaded), C(on_disk), C(open), C(library), C(packages), C(half_installed), C(dkms),
      C(fabric_manager), C(fabric_manager_state), C(persistenced_state), C(gpus) and C(holders).
  returned: success
  type: dict
  sample: {version: 580.95.05, loaded: 580.95.05, open: true, fabric_manager: 580.95.05, gpus: 8}
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
from ansible.module_utils.flightline_host.software import driver

ARGUMENT_SPEC = {
    "state": {
        "type": "str",
        "choices": ["read", "packages", "installed", "loaded", "absent_or_whole"],
        "default": "installed",
    },
    "version": {"type": "str", "default": ""},
    "minimum": {"type": "str", "default": ""},
    "kernel_module": {"type": "str", "choices": ["any", "open", "proprietary"], "default": "any"},
    "fabric_manager": {"type": "bool", "default": False},
    "nvlsm": {"type": "bool", "default": False},
    "persistenced": {"type": "bool", "default": False},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, driver.ensure)


if __name__ == "__main__":
    main()
