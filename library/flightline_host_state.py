#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Read what a host has by decision: a thin shell over flightline_host/software/host_state.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_host_state
short_description: Verify what training depends on, and record what was decided about a host
description:
  - Packages whose files are not what they brought are installed again in the same version; what stays altered fails.
  - Reads name, versions, packages and digests of the parts whose roles ran, and compares what an image brought with
    the last record. A difference that no role decided fails until a person accepts it.
  - It writes nothing but the packages; the record is returned.
extends_documentation_fragment: [flightline_module]
options:
  parts:
    description: Part whose role ran (V(driver), V(nccl), V(efa), V(store), V(slurm)) to whether an image brought it.
    type: dict
    default: {}
  kept:
    description: The last record of this host; empty for a new one. That of another machine counts for nothing.
    type: dict
    default: {}
  verify:
    description: Patterns of packages that training depends on.
    type: list
    elements: str
    default: []
  store:
    description: Where the instance store is mounted.
    type: str
    default: ""
  accept:
    description: Parts, or V(name), that are recorded as they are now.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Looks and judges the same; no package is installed again.
  diff_mode:
    support: full
    description: Shows the altered files.
"""

EXAMPLES = r"""
- name: Verify the driver and record it as the image's
  flightline_host_state:
    parts: {driver: true}
    verify: [nvidia-*, libnvidia-*]
    kept: "{{ host_state_kept }}"
"""

RETURN = r"""
facts:
  description: C(state), the record; C(held), packages of the image; C(put_back), packages installed again.
  returned: success
  type: dict
  sample: {state: {name: gpu-01, parts: {}}, held: {}, put_back: []}
problems:
  description: What stands in the way, each with C(seen), C(wanted) and C(do).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.software import host_state

ARGUMENT_SPEC = {
    "parts": {"type": "dict", "default": {}},
    "kept": {"type": "dict", "default": {}},
    "verify": {"type": "list", "elements": "str", "default": []},
    "store": {"type": "str", "default": ""},
    "accept": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Read the arguments, look."""
    shell.run_module(ARGUMENT_SPEC, host_state.ensure, kind=shell.Unlogged)


if __name__ == "__main__":
    main()
