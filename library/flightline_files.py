#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Write a role's files in one call: a thin shell over flightline_host/system/files.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_files
short_description: Write a role's files, directories and links in one call
description:
  - What M(ansible.builtin.template), M(ansible.builtin.copy) and M(ansible.builtin.file) do one path at a time, with
    two module calls each; the cost of a call is a Python interpreter on the node.
  - A file is replaced whole, with its owner and mode, after the program that validates it took it.
  - A link is not followed; a directory in the place of a file is refused, not removed.
extends_documentation_fragment: [flightline_module]
options:
  files:
    description: What is wanted, in the order in which it is made.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path.
        type: str
        required: true
      state:
        description: What is to be there; C(absent) removes a directory with what is in it.
        type: str
        choices: [file, directory, link, absent]
        default: file
      content:
        description: The text of a file, for example of the template lookup.
        type: str
        default: ""
      source:
        description: A file of the node whose bytes are wanted, in place of O(files[].content).
        type: str
        default: ""
      target:
        description: What a link names.
        type: str
        default: ""
      owner:
        description: Name of the user; left as it is when empty.
        type: str
        default: root
      group:
        description: Name of the group; left as it is when empty.
        type: str
        default: root
      mode:
        description: Octal digits; by default 0644, of a directory 0755.
        type: str
        default: ""
      validate:
        description: Argument list of a program that looks at the new file, named by C(%s), before it is put in place.
        type: list
        elements: str
        default: []
attributes:
  check_mode:
    description: Says what would change.
  diff_mode:
    support: full
    description: Shows content, mode, owner and kind of what differs.
"""

EXAMPLES = r"""
- name: Write what the role keeps
  flightline_files:
    files:
      - {path: /etc/flightline, state: directory}
      - {path: /etc/sysctl.d/90-flightline.conf, content: "{{ lookup('ansible.builtin.template', 'sysctl.conf.j2') }}"}
      - {path: /etc/systemd/system/flightline-boot.service.d, state: absent}
"""

RETURN = r"""
facts:
  description: C(changed), the paths that differed.
  returned: success
  type: dict
  sample: {changed: [/etc/sysctl.d/90-flightline.conf]}
problems:
  description: What stands in the way, each with C(seen), C(wanted) and C(do).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.system import files

ARGUMENT_SPEC = {"files": {"type": "list", "elements": "dict", "required": True, "options": files.ENTRY_SPEC}}


def main() -> None:
    """Read the arguments, look and write."""
    shell.run_module(ARGUMENT_SPEC, files.ensure, kind=shell.Unlogged)


if __name__ == "__main__":
    main()
