"""What NCCL and the EFA plugin print when the network fails them, in lower case.

Sources: aws/aws-ofi-nccl src (nccl_ofi_net.cpp, nccl_ofi_rdma.cpp, nccl_ofi_ofiutils.cpp), 1.0 to 1.21; NVIDIA/nccl
src/net.cc and src/plugin/net.cc, 2.4 to 2.31; libfabric fi_efa(7); PyTorch ProcessGroupNCCL.cpp. The causes are those
their users found: a security group without the group itself in both directions, too little memory to lock, a plugin that
is not on the library path.
"""

from __future__ import annotations

import re
from typing import Iterable, List, Tuple

NOTHING_FOUND: Tuple[str, ...] = (
    "no eligible providers",
    "could not find any optimal provider",
    "failed to initialize any net plugin",
    "error: network aws libfabric not found",
    "error: network libfabric not found",
)
"""No network at all. One of the plugin's two protocols may print the first although the other one finds its provider."""

NOT_STARTED: Tuple[str, ...] = (
    "aws-ofi-nccl initialization failed",
    "couldn't open cq",
    "couldn't open av",
    "couldn't open a fabric",
    "couldn't allocate endpoint",
    "couldn't bind",
    "couldn't enable endpoint",
    "creating new endpoint for domain",
)
"""The provider was found, and the node would not give it what it needs."""

REQUESTS: Tuple[str, ...] = (
    "completed with error",
    "efa:cq:",
    "unresponsive",
    "unreachable remote",
    "fi_ehostunreach",
    "connection timed out",
    "unable to insert remote address",
    "collective operation timeout",
)
"""A peer, or the path to it, did not answer."""

VERSIONS: Tuple[str, ...] = ("mismatched nccl version detected",)
"""NCCL's src/init.cc, before the first collective: the job cannot start."""

MEMORY: Tuple[str, ...] = (
    "unable to register memory",
    "could not register memory",
    "while creating shared memory segment",
    "failed to extend /dev/shm",
)
"""A limit on memory: locked pages, huge pages, the container's /dev/shm."""


_PEER = re.compile(r"Peer host id: (i-[0-9a-f]{8,17})\b")


def peers(lines: Iterable[str]) -> List[str]:
    """The instances that did not answer, as libfabric 1.18 and later names them in its errors."""
    return list(dict.fromkeys(found.group(1) for found in map(_PEER.search, lines) if found))


def saying(lines: Iterable[str], phrases: Tuple[str, ...]) -> List[str]:
    """The lines that have one of the phrases."""
    return [line for line in lines if any(words in line.lower() for words in phrases)]
