"""Lines in an error's shape that healthy jobs and daemons print, in logs other than the kernel's.

Taken from the INFO lines of NVIDIA/nccl 2.18 to 2.30 and aws/aws-ofi-nccl 1.2 to 1.21: what NCCL tries and does without,
and how it ends a communicator. What says that a device, a peer or a process failed is left out.
"""

from __future__ import annotations

import re
from functools import lru_cache

BEGINNINGS = (
    # Plugins, libraries and symbols that need not be there; files that are for people.
    r"(?:NET|TUNER|PROFILER|GIN|RMA|ENV|COLLNET|TOPO)/(?:Plugin|NET)\b", r"(?:Tuner"
    r"|PARAM): ", r"[Pp]rofiler init", r"NCCL Inspector",
    r"Failed to (?:open lib|initialize (?:NET plugin|any GIN)"
    r"|read refresh_)", r"[Ff]ailed to find ", r"(?:RMA/)?Plugin: Failed", r"NET/IB : Failed to open mlx5dv",
    r"NET/(?:MLX5: Call to mlx5dv_internal"
    r"|IB: \S+: Resiliency is)", r"dlv?sym failed", r"ncclOs\w+", r"(?:mkstemp"
    r"|fallocate): .*retrying", r"unlink shared memory", r"jsonError",
    r"KV Convert", r"Topology detection", r"Unable to ", r"Continuing in spite of a RAS",
    # Memory that is registered another way, or not at all.
    r"Failed to (?:register memory with"
    r"|get) DMA-BUF", r"Failed to multicast-bind user buffer", r"rank \d+ (?:- COLLNET )?failed to", r"MemManager: ",
    # Advice, names of settings, counters of RAS's own network.
    r"HINT: ", r"Comm config ", r"failed to decode NCCL_", r"(?:export )?(?:TORCH_)?(?:NCCL|CUDA|FI"
    r"|OFI)\w* ?[=:]", r"(?:TORCH_)?NCCL_\w+ (?:set|is|has|cannot)\b",
    r"RAS (?!dead peer|declaring|failed to establish|(?:keep-alive|init|send stuck|termination stuck) timeout error)",
    # The end of a communicator.
    r"comm 0x.*\b[Aa]bort", r"(?:ncclOs)?[sS]ocketProgress(?:Opt)?: abort", r"\[(?:Proxy )?Service ", r"socketFinalizeAccept", r"Unexpected error from ncclSocketReady",
    # aws-ofi-nccl: the protocol that it did not take, options it asks for.
    r"NET/OFI (?:Failed to initializ\w+ (?:rdma|sendrecv)|Failed to open gdr|Enabling error|Set endpoint option"
    r"|fi_setopt|Null MR|cuMemGet|hsa_|Error accessing plugin)",
    r"NET/OFI (?:Could not (?:disable|find ncclGet|load libgdr)|DMA-BUF disabled|GIN: requested)",
    # libfabric's other providers; PyTorch's warnings, the frames and advice under its errors.
    r"libfabric:(?!.*(?:efa:|provider efa))", r"(?:\[\S{1,40}\]: ?)?\[?W\d{3,4} ", r"(?:\[\S{1,40}\]: ?)?(?:frame #"
    r"|File \"|For debugging|CUDA kernel errors might|Compile with)",
    r"(?:\[\S{1,40}\]: ?)?\[[EIW]\d{3,4} .{0,120}(?:Stack trace of the failed collective not found"
    r"|Received a dump signal|First PG on this rank)",
    # Counters that a program reports as nought.
    r"(?:(?!fail|[Ff]ault).)*\berrors?(?: rate)? ?[:= ] ?0\b(?!.*(?:fail|[Ff]ault|[1-9]\d* error))",
    # The legend of nvidia-imex-ctl.
    r"[INRDAC] - [A-Z]", r"![VM]! - ",
)  # fmt: skip
_COUNTER = r"[\s\w/-]{1,60}(?:: *-?\d+(?:\.\d+)?| = \S*)"
"""A counter or setting whose name speaks of failure, as YAML or as the Fabric Manager lists its options."""


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(BEGINNINGS)})|{_COUNTER}$")


def is_harmless(text: str) -> bool:
    """Does a healthy job, or a daemon, say so?"""
    return _pattern().match(text) is not None
