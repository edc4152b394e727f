#!/usr/bin/python
# Copyright: Flightline contributors
# SPDX-License-Identifier: Apache-2.0
"""Verify NCCL and build nccl-tests: a thin shell over flightline_host/software/nccl.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flightline_nccl
short_description: Verify the NCCL version and build nccl-tests for the node's GPU
description:
  - Finds every NCCL library on the linker's usual places and compares it, and the header, with the wanted version.
    A second NCCL is a problem; which one a program loads would depend on its search path.
  - With O(source) it builds nccl-tests for one GPU architecture. Source, architecture, CUDA, NCCL and MPI are kept
    beside the programs, and a change of any of them builds again.
extends_documentation_fragment: [flightline_module]
options:
  version:
    description: NCCL version or its beginning; any when empty.
    type: str
    default: ""
  minimum:
    description: The oldest NCCL allowed, where any later one is right as well; not compared when empty.
    type: str
    default: ""
  source:
    description: Git checkout of nccl-tests on the node; nothing is built when empty.
    type: str
    default: ""
  revision:
    description: Commit that O(source) must be at, without changes.
    type: str
    default: ""
  prefix:
    description: Directory for the programs.
    type: path
    default: /opt/nccl-tests/build
  architecture:
    description: Compute capability of the GPU without the dot, for example V(90) for H100; needed with O(source).
    type: str
    default: ""
  cuda_home:
    description: The CUDA toolkit.
    type: path
    default: /usr/local/cuda
  mpi_home:
    description: The MPI to build with; without MPI when empty.
    type: str
    default: ""
  jobs:
    description: How many compilers run at once.
    type: int
    default: 4
attributes:
  check_mode:
    description: Looks and compares the same; nothing is built.
  diff_mode:
    support: full
    description: Shows what the programs were, and would be, built from.
"""

EXAMPLES = r"""
- name: Verify NCCL only
  flightline_nccl:
    version: 2.28.3

- name: Build nccl-tests for H100
  flightline_nccl:
    version: 2.28.3
    source: /var/cache/flightline/nccl-tests
    revision: da0b547b1b9c6e3b1d4c15578087874522ae3761
    architecture: "90"
    mpi_home: /opt/amazon/openmpi
"""

RETURN = r"""
facts:
  description: C(nccl) (versions found), C(cuda), and with O(source) C(build) and C(prefix).
  returned: success
  type: dict
  sample: {nccl: [2.28.3], cuda: "13.0"}
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
from ansible.module_utils.flightline_host.software import nccl

ARGUMENT_SPEC = {
    "version": {"type": "str", "default": ""},
    "minimum": {"type": "str", "default": ""},
    "source": {"type": "str", "default": ""},
    "revision": {"type": "str", "default": ""},
    "prefix": {"type": "path", "default": "/opt/nccl-tests/build"},
    "architecture": {"type": "str", "default": ""},
    "cuda_home": {"type": "path", "default": "/usr/local/cuda"},
    "mpi_home": {"type": "str", "default": ""},
    "jobs": {"type": "int", "default": 4},
}


def main() -> None:
    """Read the arguments, look and act."""
    shell.run_module(ARGUMENT_SPEC, nccl.ensure)


if __name__ == "__main__":
    main()
