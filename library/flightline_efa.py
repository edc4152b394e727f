#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Install or verify the EFA bundle: a thin shell over flightline_host/software/efa.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_efa
short_description: Install the EFA bundle from its installer archive, or verify it
description:
  - Verifies checksum and signature of the archive (at least one has to be given), reads the versions it brings from its
    own package names, and asserts
    that EFA driver, libfabric, aws-ofi-nccl, NCCL and NVIDIA driver go together. Only then does the installer run.
  - On any mismatch nothing is installed. A bundle of this or a later version that is already there is kept and verified
    by the same rules.
extends_documentation_fragment: [flightline_module]
options:
  state:
    description: V(verified) only looks, and fails when neither the version nor a later one is installed.
    type: str
    choices: [present, verified]
    default: present
  version:
    description: Version of the installer.
    type: str
    required: true
  archive:
    description: The installer archive on the node.
    type: str
    default: ""
  sha256:
    description: Its SHA-256; not compared when empty.
    type: str
    default: ""
  signature:
    description: Its detached signature on the node; not verified when empty.
    type: str
    default: ""
  key:
    description: The public key on the node that O(signature) is verified with.
    type: str
    default: ""
  key_fingerprint:
    description: Fingerprint the key must have.
    type: str
    default: ""
  packages:
    description: Directory in the archive with the packages of this distribution, such as V(DEBS/UBUNTU2204/x86_64/*).
    type: str
    default: "*"
  nccl_version:
    description: NCCL that the plugin has to go with; not compared when empty.
    type: str
    default: ""
  nvidia_driver_version:
    description: NVIDIA driver that the EFA driver has to go with; not compared when empty.
    type: str
    default: ""
  minimum:
    description: Oldest versions allowed, by C(efa_driver), C(libfabric), C(ofi_nccl), C(nccl) and C(nvidia_driver).
    type: dict
    default: {}
  minimal:
    description: Only kernel module and rdma-core, for nodes whose containers bring libfabric.
    type: bool
    default: false
  skip_kmod:
    description: Leave the kernel module out, for containers and nodes that have a newer one.
    type: bool
    default: false
  skip_limits:
    description: Leave the memory-lock limits out, where another role sets them.
    type: bool
    default: false
  skip_test:
    description: Leave the installer's own test out, which needs an EFA device.
    type: bool
    default: false
  mpi:
    description: Open MPI to install (V(openmpi4), V(openmpi5)); the installer's choice when empty.
    type: str
    default: ""
attributes:
  check_mode:
    description: Verifies what is there; an archive that is not fetched yet cannot be verified. Nothing is installed.
  diff_mode:
    support: full
    description: Shows the versions of the bundle.
"""

EXAMPLES = r"""
- name: Install EFA for a P5 node
  flightline_efa:
    version: 1.44.0
    archive: /var/cache/flightline/aws-efa-installer-1.44.0.tar.gz
    sha256: 2b9f4a1f0f6a0d8e9c7b6a5d4c3b2a190817263544f5e6d7c8b9a0f1e2d3c4b5
    signature: /var/cache/flightline/aws-efa-installer-1.44.0.tar.gz.sig
    key: /var/cache/flightline/aws-efa-installer.key
    key_fingerprint: 4E9091BCBB97A96B26B15E59A05480B1DD2D3CCC
    packages: DEBS/UBUNTU2204/x86_64/*
    nccl_version: 2.28.3
    nvidia_driver_version: 580.95.05
    minimum:
      ofi_nccl: 1.7.3

- name: Verify an image that brings EFA
  flightline_efa:
    state: verified
    version: "1.44"
"""

RETURN = r"""
facts:
  description: Versions C(installer), C(efa_driver), C(libfabric), C(ofi_nccl), and C(reboot_needed).
  returned: success
  type: dict
  sample: {installer: 1.44.0, libfabric: 2.3.1amzn1.0, ofi_nccl: 1.17.1}
commands:
  description: The changing commands that ran, as argument lists.
  returned: always
  type: list
  elements: list
  sample: [["./efa_installer.sh", "--yes"]]
problems:
  description: What stands in the way, each with C(seen), C(wanted) and C(do).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.flightline_host import shell
from ansible.module_utils.flightline_host.software import efa

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "verified"], "default": "present"},
    "version": {"type": "str", "required": True},
    "archive": {"type": "str", "default": ""},
    "sha256": {"type": "str", "default": ""},
    "signature": {"type": "str", "default": ""},
    "key": {"type": "str", "default": "", "no_log": False},
    "key_fingerprint": {"type": "str", "default": "", "no_log": False},
    "packages": {"type": "str", "default": "*"},
    "nccl_version": {"type": "str", "default": ""},
    "nvidia_driver_version": {"type": "str", "default": ""},
    "minimum": {"type": "dict", "default": {}},
    "minimal": {"type": "bool", "default": False},
    "skip_kmod": {"type": "bool", "default": False},
    "skip_limits": {"type": "bool", "default": False},
    "skip_test": {"type": "bool", "default": False},
    "mpi": {"type": "str", "default": ""},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, efa.ensure)


if __name__ == "__main__":
    main()
