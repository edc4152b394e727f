#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Verify a downloaded file: a thin shell over flightline_host/software/archive.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_archive_info
short_description: Verify a downloaded file's checksum and detached signature
description:
  - Fails before anything is installed when the SHA-256 differs, or when the signature is not by the pinned key.
  - The key is used in a key ring of its own, which is removed again.
extends_documentation_fragment: [flightline_module]
options:
  path:
    description: The file on the node.
    type: path
    required: true
  sha256:
    description: SHA-256 it must have; not compared when empty.
    type: str
    default: ""
  signature:
    description: Its detached signature on the node; not verified when empty.
    type: str
    default: ""
  key:
    description: The public key on the node.
    type: str
    default: ""
  key_fingerprint:
    description: Fingerprint the key must have.
    type: str
    default: ""
attributes:
  check_mode:
    description: It only reads; a file that check mode did not fetch is reported as not verified.
"""

EXAMPLES = r"""
- name: Verify the CloudWatch agent's package
  flightline_archive_info:
    path: /var/cache/flightline/amazon-cloudwatch-agent.deb
    signature: /var/cache/flightline/amazon-cloudwatch-agent.deb.sig
    key: /var/cache/flightline/amazon-cloudwatch-agent.gpg
    key_fingerprint: 937616F3450B7D806CBD9725D58167303B789C72
"""

RETURN = r"""
facts:
  description: C(verified), which of C(sha256) and C(signature) were verified.
  returned: success
  type: dict
  sample: {verified: [signature]}
problems:
  description: What stands in the way, each with C(seen), C(wanted) and C(do).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.software import archive

ARGUMENT_SPEC = {
    "path": {"type": "path", "required": True},
    "sha256": {"type": "str", "default": ""},
    "signature": {"type": "str", "default": ""},
    "key": {"type": "str", "default": "", "no_log": False},
    "key_fingerprint": {"type": "str", "default": "", "no_log": False},
}


def main() -> None:
    """Read the arguments, verify."""
    shell.run_module(ARGUMENT_SPEC, archive.ensure)


if __name__ == "__main__":
    main()
