"""What the text of an error says of its cause: the node's hardware, a full disk, another rank, or the program."""

from __future__ import annotations

import re

HARDWARE, SPACE, MEMORY, MISMATCH, NETWORK, LATE, GONE, OWN = (
    "hardware", "space", "memory", "mismatch", "network", "late", "gone", "own")  # fmt: skip
ORDER = (
    (
        HARDWARE,
        r"uncorrectable (?:\w+ )?(?:ECC )?error|cudaErrorECCUncorrectable|\bXid\b|NVLink error|NVLink.{0,40}uncorrect"
        r"|unspecified launch failure|cudaErrorLaunchFailure|hardware stack error|GPU is lost|device (?:is |was )?lost"
        r"|fallen off the bus|no CUDA-capable device|No CUDA GPUs are available|CUDA unknown error"
        r"|busy or unavailable|\[Errno 5\]|\bEIO\b|Input/output error"
        r"|\[Errno 121\]|Remote I/O error",
    ),
    (SPACE, r"\[Errno 28\]|\bENOSPC\b|No space left on device|\[Errno 122\]|Disk quota exceeded"),
    (
        MEMORY,
        r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|Cuda failure.{0,9}out of memory"
        r"|\bMemoryError\b|\[Errno 12\]",
    ),
    (
        MISMATCH,
        r"Detected mismatch between collectives|DDP expects same model|Mismatched \w+ \w+|Duplicate GPU detected",
    ),
    (
        NETWORK,
        r"Got completion (?:from peer .{0,80})?with (?:error|status[= ])\s*\(?12\b|Got async event ?: ?port error"
        r"|transport retry counter exceeded|Unresponsive receiver|Unreachable remote",
    ),
    (LATE, r"timed? ?out|watchdog|monitoredBarrier|store.based barrier|(?:are|by) other ranks|failed to join"),
    (
        GONE,
        r"connection (?:closed|reset|refused|was (?:closed|reset))|broken pipe|remote (?:process|peer)|ncclRemoteError"
        r"|DistBackendError|DistNetworkError|DistStoreError|socket(?:Start|Progress|Poll)|SignalException|peer closed"
        r"|RendezvousTimeout|RendezvousConnection|RendezvousClosed|failed to recv|NCCL communicator was aborted"
        r"|ncclSystemError|ncclInternalError|ChildFailedError|CalledProcessError|KeyboardInterrupt"
        r"|\b(?:429|50[0234])\b.{0,9}(?:Error|Too Many)|Service Unavailable|Max retries|name resolution"
        r"|SlowDown|Throttling"
        r"|HorovodInternalError|EngineDead|Engine core|in a background process|recvValue failed|NCCL error",
    ),
)
"""The first that fits. HARDWARE: CUDA's and errno's words; a launch failure can be a program's, and is not taken for
proof of it. NETWORK: InfiniBand's status 12 (retries exceeded) and libfabric's for EFA. LATE and GONE say so of another
rank, or of a service. Source: messages of NCCL and of PyTorch 2.9's ProcessGroupGloo, ProcessGroupNCCL, TCPStore and
elastic agent."""
_PATTERNS = tuple((word, re.compile(pattern, re.I)) for word, pattern in ORDER)
OTHERS = (LATE, GONE, NETWORK, MISMATCH)
"""Words of an error that says another rank, or the way to it, is gone or late."""


def word_of(text: str) -> str:
    """OWN where nothing of an error's text points away from the program."""
    return next((word for word, pattern in _PATTERNS if pattern.search(text)), OWN)
