"""Does NCCL go over EFA, or did it fall back to sockets?"""

from __future__ import annotations

from typing import Iterator, List

from ..catalog import cuda
from ..catalog import nccl_warnings as said
from ..context import Context
from ..model import Check, Facts, Finding, Remedy
from .common import version_reaches
from .efa_count import no_efa
from .efa_provider import not_known_to_have_efa


def _faults(context: Context, facts: Facts) -> Iterator[Finding]:
    for fault, lines in cuda.faults_in([*facts.get("warnings", []), *facts.get("failures", [])]):
        rest = {"measured": len(lines), "expected": 0, "evidence": lines}
        yield context.fail(f"NCCL met a CUDA error: {fault.meaning}", fault.remedy, **rest)
    apart = said.saying(facts.get("warnings", []), said.VERSIONS)
    if apart:
        rest = {"measured": len(apart), "expected": 0, "evidence": apart}
        yield context.fail(f"the job's ranks load different NCCL versions: {apart[0]}", Remedy.UPDATE_SOFTWARE, **rest)


def _not_started(facts: Facts) -> List[str]:
    """Why the EFA plugin gave NCCL nothing to use; [] where it did, or where NCCL names what it used instead."""
    lines = [*facts.get("warnings", []), *facts.get("failures", []), *facts.get("plugin_trouble", [])]
    network = facts.get("network") or ""
    if network and "libfabric" not in network.lower():
        return []
    nothing = [] if network or facts.get("provider") else said.saying(lines, said.NOTHING_FOUND)
    return nothing or said.saying(lines, said.NOT_STARTED)


def evaluate(context: Context) -> Iterator[Finding]:
    """CUDA faults, whether the plugin started, network, provider, then GPUDirect RDMA and what requests met."""
    facts = context.facts("nccl_debug")
    yield from _faults(context, facts)
    network, provider = facts.get("network"), facts.get("provider")
    evidence = [*facts.get("evidence", []), *facts.get("plugin_trouble", []), *facts.get("warnings", [])]
    sockets = [name for name in facts.get("transports", {}) if name in ("NET/Socket", "NET/IB")]
    unwanted, not_started = not_known_to_have_efa(context), _not_started(facts)
    if unwanted and provider != "efa":
        yield context.skip(unwanted)
    elif not_started and not sockets:
        text = f"NCCL could not start its EFA plugin: {not_started[0]}"
        yield context.fail(text, Remedy.FIX_CONFIG, measured=provider or "none", expected="efa", evidence=not_started)
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
        yield from _paths(context, facts)
        yield from _quality(context, facts)


def _seen(facts: Facts) -> str:
    version = f" (aws-ofi-nccl {facts['ofi_plugin_version']})" if facts.get("ofi_plugin_version") else ""
    return f"NCCL uses {facts.get('network', 'libfabric')} with provider efa{version}"


def _paths(context: Context, facts: Facts) -> Iterator[Finding]:
    """What EFA alone does not tell: the plugin's age, the devices it found, and the way between the node's own GPUs."""
    plugin, oldest = str(facts.get("ofi_plugin_version") or ""), context.expected.ofi_nccl_minimum
    # A plugin built from its repository gives a commit ("git-6e504db"), which has no age.
    if plugin[:1].isdigit() and oldest and not version_reaches(plugin, oldest):
        text = f"NCCL loaded aws-ofi-nccl {plugin}, {context.expected.instance_type} wants {oldest} or later"
        yield context.fail(text, Remedy.UPDATE_SOFTWARE, measured=plugin, expected=oldest)
    nics, wanted = facts.get("nics"), context.expected.efa_count
    if nics and wanted and nics < wanted:
        text = f"the EFA plugin found {nics} of the type's {wanted} devices: a container without the rest, or a filter"
        yield context.warn(text, Remedy.FIX_CONFIG, measured=nics, expected=wanted, unit="devices")
    shared = {path: count for path, count in facts.get("transports", {}).items() if path.split("/")[0] == "SHM"}
    if shared and context.expected.nvswitch:
        text = "NCCL goes through host memory between the node's GPUs, not over NVLink: P2P is off or broken"
        rest = {"measured": sum(shared.values()), "expected": 0, "unit": "channels"}
        yield context.fail(text, Remedy.INVESTIGATE, evidence=[f"{n} via {path}" for path, n in shared.items()], **rest)


def _quality(context: Context, facts: Facts) -> Iterator[Finding]:
    # p5.4xlarge and the G types have EFA without GPUDirect RDMA; the NVSwitch types all have it.
    if facts.get("gdrdma") is False and context.expected.nvswitch and context.expected.rdma_read:
        text = "network channels without GPUDirect RDMA: data goes through host memory"
        yield context.warn(text, Remedy.FIX_CONFIG, measured=False, expected=True)
    warnings = facts.get("warnings", [])
    memory = said.saying(warnings, said.MEMORY)
    broken = said.saying([*warnings, *facts.get("failures", [])], said.REQUESTS)
    if broken:
        who = ", ".join(said.peers(broken)[:8]) or "a peer"
        text = f"{len(broken)} distinct errors of network requests: {who} or the path to it did not answer"
        yield context.warn(text, Remedy.INVESTIGATE, measured=len(broken), expected=0, evidence=broken)
    if memory:
        text = "memory could not be registered or shared: memlock, huge pages or /dev/shm are too small"
        yield context.warn(text, Remedy.FIX_CONFIG, measured=len(memory), expected=0, evidence=memory)
    if warnings and not broken and not memory:
        yield context.info(f"{len(warnings)} distinct NCCL warnings", evidence=warnings)


CHECK = Check(
    id="nccl_transport",
    title="NCCL network path",
    what="The network, provider and plugin that NCCL says it uses, GPUDirect RDMA, and P2P between the node's GPUs.",
    why="Without the EFA plugin NCCL falls back to TCP sockets without an error, at a tenth of the bandwidth or less.",
    remedy="Put aws-ofi-nccl on LD_LIBRARY_PATH, give the container its EFA devices; set NCCL_NET_PLUGIN=ofi.",
    source="aws/aws-ofi-nccl doc and src (log lines of 1.5 to 1.21); AWS EFA user guide, NCCL section",
    needs=("nccl_debug",),
    tags=("nccl", "efa", "network"),
    level="standard",
    applies=no_efa,
    evaluate=evaluate,
)
