#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Ask a node several things at once: a thin shell over flightline_host/system/ask.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_ask_info
short_description: Ask a node several things in one call
description:
  - Runs commands that only read, reads files, and says which packages are missing and which files differ.
  - A module call costs a node a Python interpreter; a role asks once for all that it decides by.
extends_documentation_fragment: [flightline_module]
options:
  commands:
    description: Argument list by a name for its answer. They must change nothing; they run in check mode as well.
    type: dict
    default: {}
  files:
    description: Path by a name for its answer.
    type: dict
    default: {}
  packages:
    description:
      - Packages that are wanted, C(name) or C(name=version), with shell patterns in the version.
      - Without dpkg all are called missing, and the package manager decides.
    type: list
    elements: str
    default: []
  written:
    description: Files as M(flightline_files) takes them; nothing is written, the answer says which are not so.
    type: list
    elements: dict
    default: []
  at_boot:
    description: Units that are to start at boot; the answer says which are not set for it.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: It only reads.
"""

EXAMPLES = r"""
- name: Look what there is
  flightline_ask_info:
    commands:
      swaps: [swapon, --show=NAME, --noheadings, --raw]
    files:
      fstab: /etc/fstab
    packages: [chrony, "nvidia-open=580.95.05*"]
  register: __role_found
"""

RETURN = r"""
facts:
  description:
    - C(commands), by name C(rc), C(lines) of what was printed and C(said), its end.
    - C(files), by name C(exists), C(text) and C(sha256), both null for what is no readable file.
    - C(missing), the packages that are not installed in their version.
    - C(differ), the paths of O(written) that M(flightline_files) would change.
    - C(not_at_boot), the units of O(at_boot) that are not there, not enabled, masked, or changed since systemd read.
  returned: success
  type: dict
  sample: {commands: {swaps: {rc: 0, lines: [], said: ""}}, files: {}, missing: [chrony], differ: [], not_at_boot: []}
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.system import ask, files

ARGUMENT_SPEC = {
    "commands": {"type": "dict", "default": {}},
    "files": {"type": "dict", "default": {}},
    "packages": {"type": "list", "elements": "str", "default": []},
    "written": {"type": "list", "elements": "dict", "default": [], "options": files.ENTRY_SPEC},
    "at_boot": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Read the arguments, ask."""
    shell.run_module(ARGUMENT_SPEC, ask.ensure, kind=shell.Unlogged)


if __name__ == "__main__":
    main()
