#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Write and read a shared file system together with other nodes: a thin shell over flightline_node's shared_io."""

from __future__ import annotations

from typing import Any, Mapping

DOCUMENTATION = r"""
module: flightline_shared_io
short_description: Write and read a shared file system at the same moment as other nodes
description:
  - Waits for a moment, writes a nameless file for some seconds, reads it back and compares every byte.
extends_documentation_fragment: [flightline_module]
options:
  mount:
    description: Where the shared file system is mounted.
    type: str
    required: true
  start_at:
    description: The moment, in seconds since 1970, the same for all nodes.
    type: float
    required: true
  seconds:
    description: How long is written; reading takes twice as long at most.
    type: float
    default: 20
  size_mib:
    description: How much is written at most.
    type: int
    default: 4096
attributes:
  check_mode:
    description: Writes nothing.
  diff_mode:
    description: There is nothing to show.
"""

EXAMPLES = r"""
- name: Write and read with all nodes at once
  flightline_shared_io:
    mount: /fsx
    start_at: "{{ moment }}"
"""

RETURN = r"""
facts:
  description: Speeds in MB/s (10^6), how late it began, or the reason why nothing was measured.
  returned: success
  type: dict
  sample: {late_s: 0.002, write_mb_s: 812.4, read_mb_s: 1290.1, verified: true}
commands:
  description: No command is run.
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
from ansible.module_utils.flightline_host.host import Host
from ansible.module_utils.flightline_host.outcome import Outcome
from ansible.module_utils.flightline_node.ask.active import shared_io

ARGUMENT_SPEC = {
    "mount": {"type": "str", "required": True},
    "start_at": {"type": "float", "required": True},
    "seconds": {"type": "float", "default": 20},
    "size_mib": {"type": "int", "default": 4096},
}


def ensure(_host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Measure, but in check mode."""
    if check:
        return Outcome(False, {}, {}, {"refused": "check mode writes nothing"})
    facts = shared_io.run(wanted["mount"], wanted["start_at"], wanted["seconds"], wanted["size_mib"])
    return Outcome(False, {}, {}, facts)


def main() -> None:
    """Read the arguments and measure."""
    shell.run_module(ARGUMENT_SPEC, ensure)


if __name__ == "__main__":
    main()
