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
    "couldn't find any optimal provider",
    "fi_getinfo() call failed",
    "provider efa output empty list",
    "unable to find a protocol that worked",
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
    "initializing plugin failed",
    "couldn't be configured on an endpoint",
    "failed to call ibv_",
    "ibv_open_device failed",
    "prov efa memory allocation failed",
    "unable to create extended cq:",
    "failed to group nics",
    "unexpected topo group size",
    "reported unexpected number of devices",
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
    "failure inserting address into address vector",
    "efa:av:",
    "connection was reset by remote peer",
    "unable to retrieve completion queue entries",
    "got completion from peer",
    "got completion with error",
)
"""A peer, or the path to it, did not answer."""

OWN_FAULT = re.compile(
    r"[Mm]ismatch between collectives|Duplicate GPU detected|\binvalid usage\b|ncclInvalid(?:Usage|Argument)"
    r"|oom[-_ ]kill|\bKilled\b"
    r"|Signal (?:9|15) \(SIG|exitcode *: -(?:9|15)\b|illegal memory access|misaligned address"
    r"|no kernel image is available|invalid (?:device function|configuration argument)"
    r"|CUBLAS_STATUS_(?:ALLOC_FAILED|INVALID_VALUE)|unrecognized arguments|error: (?:argument|the following arguments)"
    r"|not enough slots available|DUE TO (?:TIME LIMIT|PREEMPTION)|in use by another (?:client|process)"
    r"|cudaErrorAssert|device-side assert"
    r"|\bXid \(PCI:[^)]{1,20}\): (?:13|31|43),|OutOfMemoryError|CUDA out of memory|device-side assert triggered"
    r"|CUDA error: out of memory|DataLoader worker .{0,40}killed"
    r"|\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT|SignalException: Process \d+ got signal: (?:2|15)\b"
    r"|The size of tensor a "
    r"|RESOURCE_EXHAUSTED|EADDRINUSE|[Aa]ddress already in use|Cuda failure (?:2 )?'out of memory"
    r"|^(?:\[\S{1,40}\]:? ?)?(?:KeyboardInterrupt\b|(?:\w{1,40}\.){0,9}(?!(?:Runtime|Accelerator|Dist|OS|IO|EOF|Conn|Timeout|Broken"
    r"|Cuda|CUDA|cuda|hip|NCCL|nccl|NVML|Xla|Process|CalledProcess|ChildFailed|Socket|Internal|RPC|Rpc|Ray|Actor|Worker|C10))\w{2,60}"
    r"(?:Error|Exception)(?:: (?!.*(?:NVML|ECC|NVLink|Xid|ibv_|EFA))|$)"
    r"|RuntimeError: (?!.*(?:CUDA|NCCL|nccl|NVML|cuDNN|CUBLAS|HIP|GPU|onnect|ocket|imed? ?out|etwork|INTERNAL ASSERT|ardware)))"
)
"""Errors of the job's own program, on whatever node it runs, and a job that was ended from outside."""
_ENDED = re.compile(
    r"ChildFailedError|closing signal SIG|failed \(exitcode: -?\d|non-zero exit code|srun: error: |exited on signal"
    r"|SIG(?:TERM|ABRT|KILL)\b|terminate called after|Terminating the process after"
    r"|collective operation timeout|[Ww]atchdog|Dist(?:Backend|Store|Network)Error|NCCL communicator"
    r"|nccl(?:Remote|Internal)Error"
    r"|ncclUnhandledCudaError|entire process down|NCCL operations have failed|dump signal|ABORTEDCOMM|Last error"
    r"|CUDA error"
    r"|NCCL [Ee]rror|Heartbeat monitor|Test NCCL failure|NCCL work"
)
"""How launchers tell that some rank ended; of which error, they do not say."""
_BY_ITSELF = re.compile(
    r"ChildFailedError|closing signal SIG|failed \(exitcode: 1\)|non-zero exit code|[Ee]xited with exit code 1\b"
)


_BESIDE = re.compile(
    r'Traceback \(most recent call last\):$|^(?:\[\w{1,20}\]:)? *File "[^"]+", line \d+|destroy_process_group\(\) was not called'
)
"""What stands around an error: where it was raised, and PyTorch's remark on each end without destroy_process_group()."""


def jobs_own(said: Iterable[str]) -> bool:
    """Did the job fail by itself, so that its end says nothing of the node?"""
    lines = [line for line in said if not _BESIDE.search(line)]
    own = [line for line in lines if OWN_FAULT.search(line)]
    ended = _ENDED if own else _BY_ITSELF
    named = own or [line for line in lines if "ChildFailedError" in line]
    return bool(named) and all(OWN_FAULT.search(line) or ended.search(line) for line in lines)


CONSEQUENCE = re.compile(
    r"onnection (?:closed|reset|refused)|[Ss]ocket|[Aa]bort|remote peer|Call to \w+|Duplicate GPU|Broken pipe"
    r"|ASYNC|[Mm]ismatch"
    r"|illegal memory|out of memory|device-side assert|-> \d\b|[Ii]nvalid (?:usage|config|argument|value)"
)
"""NCCL's warnings on a rank whose program, or whose peer's program, has failed."""

FLUSHED: Tuple[str, ...] = ("flushed during queue pair destroy", "message: flushed")
"""Requests that a program left open when it ended: nothing failed."""

OWN_DEVICE: Tuple[str, ...] = ("internal queue pair error (local)", "internal queue pair error", "efa device reset")
"""The node's own EFA device gave up (libfabric prov/efa/src/efa_errno.h, status 2), whatever the peer is."""

NO_GPUDIRECT: Tuple[str, ...] = ("gdr disabled on gdr-supported",)
"""aws-ofi-nccl's src/platform-aws.cpp."""

NO_PEER_ACCESS: Tuple[str, ...] = ("p2p is disabled between nvlink connected gpus",)
"""NCCL's src/graph/paths.cc: CUDA refuses what the links allow, so all data goes through host memory."""

GOES_ON: Tuple[str, ...] = (
    "connection closed by",
    "is being ignored",
    "defaulting to",
    "using point-to-point network instead",
    "maximum allowed, setting",
    "unsetting",
    "ignoring shm locality",
    "nccl_nvls_enable has been set",
    "non-fatal async event",
    "gid table changed",
    "find real path of",
    "plugin has incompatible version",
    "failed to write",
    "failed to print",
    "topology file",
    "nccl_tuner_plugin",
    "histogram",
    "unable to configure tuner",
    "tuner parameters",
    "nccl_topo_file",
    "proxy ops shm unlink failed",
    "unlink shared memory",
    "while segments still held",
    "still held by the application",
    "leaking memory",
    "leaking key",
    "already finalized plugin",
    "stream capture mode",
    "did not reorder arrays",
    "gdr disabled on gdr-supported",
    "not being able to use gpudirect",
    'missing "iommu=pt"',
    "socket progress error",
    "is in abort state",
    "failed to open libibverbs",
)
"""What NCCL and its plugin warn of and then do without, or say of a peer that has ended: no job fails of it alone."""

OFI, OFI_GOES_ON = "NET/OFI", (
    "dealloc", "deregister", "destroy", "to free", "to close", "tearing down", "topology", "hwloc",
    "nic info", "user data", "unmap", "unpin", "cleanup", "pcipath", "memfree", "device property",
    "link speed", "link width", "pci ", "pci_", "libfabric nic", "info count", "product name", "nvls option", "nccl_proto",
    "model ", "accelerator", "region context", "iterator", "find ncclgetversion symbol",
    "initialize gdrcopy", "requires gdrcopy",
)  # fmt: skip
"""aws-ofi-nccl's clean-up at the end, what it asks of the topology, its tuner and an NCCL linked in statically, and the
GDRCopy that only its GIN transport needs: it goes on without them."""


def harmless(line: str) -> bool:
    """Does NCCL, or its EFA plugin, go on after this warning?"""
    low = line.lower()
    return any(phrase in low for phrase in (*GOES_ON, *FLUSHED)) or (
        line.startswith(OFI) and any(phrase in low for phrase in OFI_GOES_ON)
    )


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
_PEER_ADDRESS = re.compile(
    r"Peer EFA addr: (fi_addr_efa://\[[0-9a-fA-F:]{2,45}\])|ompletion from peer ([\w.:]{2,45})(?:<\d|$|\s)"
)


def peers(lines: Iterable[str]) -> List[str]:
    """The instances that did not answer, as libfabric 1.18 and later names them in its errors; else their address.

    A host id is exchanged when two nodes first meet: it is missing where they never did. NCCL's own verbs transport
    (src/transport/net_ib) names the address and port of the peer's bootstrap.
    """
    found = (_PEER.search(line) or _PEER_ADDRESS.search(line) for line in lines)
    return list(dict.fromkeys(match.group(1) or match.group(2) for match in found if match))


_RANK = re.compile(r"\b[Rr]ank[ :]?(\d{1,6})\b")


def on_ranks(lines: Iterable[str]) -> str:
    """Which ranks the lines name, for a message: ' on rank 3, 5'; nothing where they name none."""
    named = sorted({int(number) for line in lines for number in _RANK.findall(line)})
    return f" on rank {', '.join(map(str, named[:8]))}" if named else ""


def saying(lines: Iterable[str], phrases: Tuple[str, ...]) -> List[str]:
    """The lines that have one of the phrases."""
    return [line for line in lines if any(words in line.lower() for words in phrases)]
