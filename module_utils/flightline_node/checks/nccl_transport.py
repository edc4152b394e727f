"""Does NCCL go over EFA, or did it fall back to sockets?"""

from __future__ import annotations

from typing import Iterator

from ..context import Context
from ..model import Check, Facts, Finding, Remedy
from .efa_count import no_efa
from .efa_provider import not_known_to_have_efa

# CUDA errors that NCCL passes on and that no program can cause by itself.
_FAULTS = (
    ("uncorrectable ecc", Remedy.RESET_GPU, "a GPU had a memory error that ECC could not correct"),
    ("uncorrectable nvlink", Remedy.RESET_GPU, "a GPU had an NVLink error that could not be corrected"),
    ("system not yet initialized", Remedy.FIX_CONFIG, "the Fabric Manager has not set up the NVSwitches"),
)

_REQUESTS = ("completed with error", "unresponsive", "unreachable remote", "fi_ehostunreach", "connection timed out")
"""What the EFA plugin and NCCL say of a request that failed (aws-ofi-nccl, nccl_ofi_rdma.cpp; libfabric fi_efa(7))."""


def _faults(context: Context, facts: Facts) -> Iterator[Finding]:
    for words, remedy, meaning in _FAULTS:
        lines = [line for line in facts.get("warnings", []) if words in line.lower()]
        if lines:
            yield context.fail(f"NCCL met a CUDA error: {meaning}", remedy, evidence=lines)


def evaluate(context: Context) -> Iterator[Finding]:
    """CUDA faults, network, then provider, then GPUDirect RDMA; a single-node log is judged by its init lines."""
    facts = context.facts("nccl_debug")
    yield from _faults(context, facts)
    network, provider = facts.get("network"), facts.get("provider")
    evidence = [*facts.get("evidence", []), *facts.get("plugin_trouble", []), *facts.get("warnings", [])]
    sockets = [name for name in facts.get("transports", {}) if name in ("NET/Socket", "NET/IB")]
    unwanted = not_known_to_have_efa(context)
    if unwanted and provider != "efa":
        yield context.skip(unwanted)
    elif not facts.get("info_lines"):
        yield context.skip("the logs hold no NCCL line: run with NCCL_DEBUG=INFO")
    elif network is None and not sockets and provider is None:
        yield context.skip("the log names no network: NCCL_DEBUG_SUBSYS without INIT,NET, or cut short")
    elif sockets or (network and "libfabric" not in network.lower()):
        used = network if network and "libfabric" not in network.lower() else ", ".join(sockets)
        rest = {"measured": used, "expected": "libfabric", "evidence": evidence}
        yield context.fail(f"NCCL uses {used} instead of EFA", Remedy.FIX_CONFIG, **rest)
    elif provider not in (None, "efa"):
        rest = {"measured": provider, "expected": "efa", "evidence": evidence}
        yield context.fail(f"libfabric uses provider {provider}", Remedy.FIX_CONFIG, **rest)
    elif provider is None and not facts.get("gdrdma"):
        yield context.unknown(f"NCCL uses {network}, but the log does not show the provider", evidence=evidence)
    else:
        yield context.ok(_seen(facts), measured=provider, expected="efa")
        yield from _quality(context, facts)


def _seen(facts: Facts) -> str:
    version = f" (aws-ofi-nccl {facts['ofi_plugin_version']})" if facts.get("ofi_plugin_version") else ""
    return f"NCCL uses {facts.get('network', 'libfabric')} with provider efa{version}"


def _quality(context: Context, facts: Facts) -> Iterator[Finding]:
    # p5.4xlarge and the G types have EFA without GPUDirect RDMA; the NVSwitch types all have it.
    if facts.get("gdrdma") is False and context.expected.nvswitch and context.expected.rdma_read:
        text = "network channels without GPUDirect RDMA: data goes through host memory"
        yield context.warn(text, Remedy.FIX_CONFIG, measured=False, expected=True)
    broken = [line for line in facts.get("warnings", []) if any(words in line.lower() for words in _REQUESTS)]
    if broken:
        text = f"{len(broken)} distinct errors of network requests: a peer or the path to it did not answer"
        yield context.warn(text, Remedy.INVESTIGATE, measured=len(broken), expected=0, evidence=broken)
    elif facts.get("warnings"):
        yield context.info(f"{len(facts['warnings'])} distinct NCCL warnings", evidence=facts["warnings"])


CHECK = Check(
    id="nccl_transport",
    title="NCCL network path",
    what="The network and libfabric provider that NCCL says it uses, and whether its channels use GPUDirect RDMA.",
    why="Without the EFA plugin NCCL falls back to TCP sockets without an error, at a tenth of the bandwidth or less.",
    remedy="Put aws-ofi-nccl on LD_LIBRARY_PATH, give the container its EFA devices; set NCCL_NET_PLUGIN=ofi.",
    source="aws/aws-ofi-nccl doc and src (log lines of 1.5 to 1.21); AWS EFA user guide, NCCL section",
    needs=("nccl_debug",),
    tags=("nccl", "efa", "network"),
    level="standard",
    applies=no_efa,
    evaluate=evaluate,
)
