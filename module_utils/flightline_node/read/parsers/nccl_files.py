"""The file names that an nccl-tests log may have, apart from its parser, which only active tests need."""

from __future__ import annotations

from typing import Dict, Tuple

COLLECTIVES: Tuple[str, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "broadcast",
    "reduce",
    "sendrecv",
    "scatter",
    "gather",
    "hypercube",
)


def _spellings(collective: str) -> Tuple[str, ...]:
    names = [collective, collective.replace("_", "-"), collective.replace("_", ""), collective + "_perf"]
    if collective == "alltoall":
        names += ["all_to_all", "all-to-all"]
    return tuple(dict.fromkeys(names))


BY_FILE: Dict[str, str] = {f"nccl-{name}.log": c for c in COLLECTIVES for name in _spellings(c)}
FILES: Tuple[str, ...] = tuple(BY_FILE)
"""Every file name a test's log may have."""

JOB_LOG = "nccl-debug.log"
"""What a job printed with NCCL_DEBUG=INFO."""
