#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Remove what validation left behind: a thin shell over flightline_host/trial/stray.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_stray
short_description: Stop stray test programs and remove diagnostics
description:
  - A test program is stray when its parent is process 1, so that whoever started it is gone. One with a living parent
    belongs to a run and is left alone.
  - Only what belongs to the user of this module, or to the one who became it with sudo, is touched, and only when it
    is older than O(min_age_hours). Paths that a living process stands in, runs, has open or names on its command line
    stay, and so does what changed since the oldest preflight began that is still running.
  - Stopping a stray test program is what frees the GPU memory it holds; who still holds some is reported.
extends_documentation_fragment: [flightline_module]
options:
  programs:
    description: Names of test programs, as the kernel shows them (at most 15 characters).
    type: list
    elements: str
    default: []
  paths:
    description: Files and directories to remove, as shell patterns.
    type: list
    elements: str
    default: []
  min_age_hours:
    description:
      - How long ago a path was last changed, or a program started, before it is touched. The default is longer than a
        run can live.
    type: float
    default: 24
  spare_machine:
    description:
      - Boot id and machine id, with a blank between, of a machine that is not to be cleaned. The module fails there.
    type: str
    default: ""
attributes:
  check_mode:
    description: Looks the same; stops and removes nothing.
  diff_mode:
    support: full
    description: Shows processes and paths.
"""

EXAMPLES = r"""
- name: Stop stray NCCL tests and remove bundles
  flightline_stray:
    programs: [all_reduce_perf]
    paths: [/tmp/flightline-*]
"""

RETURN = r"""
facts:
  description: C(stopped), C(removed), C(kept) with the reason of each, and C(gpu_processes) that still hold GPU memory.
  returned: success
  type: dict
  sample:
    stopped: [{pid: 4711, name: all_reduce_perf}]
    removed: [/tmp/flightline-abc]
    kept: [{what: /tmp/flightline-def, why: "is used by python3 (812)"}]
    gpu_processes: []
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
from ansible.module_utils.flightline_host.trial import stray

ARGUMENT_SPEC = {
    "programs": {"type": "list", "elements": "str", "default": []},
    "paths": {"type": "list", "elements": "str", "default": []},
    "min_age_hours": {"type": "float", "default": 24},
    "spare_machine": {"type": "str", "default": ""},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, stray.ensure)


if __name__ == "__main__":
    main()
