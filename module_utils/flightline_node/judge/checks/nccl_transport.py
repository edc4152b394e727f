"""Does NCCL go over EFA, or did it fall back to sockets?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...know.catalog import cuda, job_faults
from ...know.catalog import nccl_warnings as words
from ...model import Check, Facts, Finding, Reason, Remedy, Skip, Status
from .. import skips
from ..context import Context
from .common import OF_GPU, nvidia_gpus_expected, version_reaches
from .efa_count import no_efa
from .efa_provider import not_known_to_have_efa

CUDA_ERROR = Reason("cuda_error", "NCCL met an error of CUDA")
DEVICE_LEFT_OUT = Reason("device_left_out", "an RDMA device could not be opened, and the job works without it")
NODE_FAULT = Reason("node_fault", "the job's log names a fault of the node, its fabric or its installation")
SYSTEM_ERROR = Reason("system_error", "a system call or a library failed under NCCL")
VERSIONS_DIFFER = Reason("versions_differ", "the ranks load different NCCL versions", Remedy.UPDATE_SOFTWARE)
P2P_DISABLED = Reason("p2p_disabled", "P2P is disabled between GPUs that NVLink connects", Remedy.FIX_CONFIG)
OWN_DEVICE = Reason("own_device", "this node's own EFA device failed", Remedy.REBOOT)
REQUESTS_FAILED = Reason("requests_failed", "network requests to a peer failed")
REQUESTS_FAILED_UNNAMED = Reason("requests_failed_unnamed", "network requests to an unnamed peer failed")
LIMITS = Reason("limits", "a limit of the host stops NCCL", Remedy.FIX_CONFIG)
JOB_FAILED = Reason("job_failed", "the job failed and no node is named")
JOBS_OWN = Reason("jobs_own", "the job failed by its own program's error", Remedy.RESTART_APP)
OTHER_ERRORS = Reason("other_errors", "NCCL reports errors")
PLUGIN_NOT_STARTED = Reason("plugin_not_started", "NCCL could not start its EFA plugin", Remedy.FIX_CONFIG)
NOT_EFA = Reason("not_efa", "NCCL uses another network than EFA", Remedy.FIX_CONFIG)
SOCKETS_ALONE = Reason("sockets_alone", "NCCL found no fast network and goes over sockets", Remedy.FIX_CONFIG)
OTHER_PROVIDER = Reason("other_provider", "libfabric uses another provider than EFA", Remedy.FIX_CONFIG)
PROVIDER_NOT_SHOWN = Reason("provider_not_shown", "the log does not show the provider")
OLD_PLUGIN = Reason("old_plugin", "the EFA plugin is older than wanted", Remedy.UPDATE_SOFTWARE)
FEWER_DEVICES = Reason("fewer_devices", "NCCL uses fewer EFA devices than there are", Remedy.FIX_CONFIG)
OVER_HOST = Reason("over_host", "GPUs of a node talk over the host or the network")
NO_GDR = Reason("no_gdr", "GPUDirect RDMA is off", Remedy.FIX_CONFIG)
NO_GDR_SOME = Reason("no_gdr_some", "the plugin works without GPUDirect RDMA, which the type has", Remedy.FIX_CONFIG)
HOST_MEMORY = Reason("host_memory", "data takes the way over the host's memory", Remedy.FIX_CONFIG)
RAS_LOST = Reason("ras_lost", "NCCL's RAS reports processes that are dead or do not answer")
WARNINGS = Reason("warnings", "NCCL warns")


def _said(facts: Facts) -> List[str]:
    """Everything that NCCL, its plugin, libfabric, the program and its launcher complained of, and had to do with."""
    lines = [line for key in ("warnings", "failures", "libfabric", "job") for line in facts.get(key, [])]
    return [line for line in lines if line not in job_faults.left_out(facts)]


def _faults(context: Context, facts: Facts) -> Iterator[Finding]:
    """What is wrong with this node, or with a peer that is named, whatever became of the job."""
    said = _said(facts)
    for fault, lines in cuda.faults_in(said):
        rest = {"measured": len(lines), "expected": 0, "evidence": lines}
        text = f"NCCL met a CUDA error{words.on_ranks(lines)}: {fault.meaning}"
        yield context.fail(CUDA_ERROR, text, remedy=fault.remedy, **rest)
    for broken, lines in job_faults.faults_in(line for line in said if not any(cuda.faults_in([line]))):
        rest = {"measured": len(lines), "expected": 0, "evidence": lines}
        text = f"{broken.meaning}{words.on_ranks(lines)}: {lines[0]}"
        yield context.fail(NODE_FAULT.of(broken.id), text, remedy=broken.remedy, **rest)
    system = [line for line in facts.get("failures", []) if job_faults.SYSTEM.search(line)]
    if system and not facts.get("job"):
        yield context.fail(SYSTEM_ERROR, f"{SYSTEM_ERROR.says}: {system[0]}", evidence=system)
    apart = words.saying(facts.get("warnings", []), words.VERSIONS)
    if apart:
        rest = {"measured": len(apart), "expected": 0, "evidence": apart}
        yield context.fail(VERSIONS_DIFFER, f"the job's ranks load different NCCL versions: {apart[0]}", **rest)
    split = words.saying(said, words.NO_PEER_ACCESS)
    if split and context.expected.nvswitch is not False:
        rest = {"measured": "disabled", "expected": "peer access", "evidence": split}
        yield context.fail(P2P_DISABLED, "P2P is disabled between GPUs that NVLink connects", **rest)
    yield from _requests(context, said)


def _requests(context: Context, said: List[str]) -> Iterator[Finding]:
    """Requests that the network gave up: FAIL where the device or the peer is named, else nobody is shown guilty."""
    broken = [line for line in words.saying(said, words.REQUESTS) if not words.saying([line], words.FLUSHED)]
    own = words.saying(said, words.OWN_DEVICE)
    broken = [line for line in broken if line not in own and not words.saying([line], words.NOT_STARTED)]
    if own:
        text = f"an EFA device of this node failed: {own[0]}"
        yield context.fail(OWN_DEVICE, text, measured=len(own), expected=0, evidence=own)
    peers = words.peers(broken)
    rest: Dict[str, Any] = {"measured": len(broken), "expected": 0, "evidence": broken}
    if peers:
        text = f"{len(broken)} distinct errors of network requests: {', '.join(peers[:8])} or the path to it failed"
        yield context.fail(REQUESTS_FAILED, text, **rest)
    elif broken:
        text = f"{len(broken)} distinct errors of network requests, to a peer that is not named: {broken[0]}"
        yield context.fail(REQUESTS_FAILED_UNNAMED, text, **rest)
    lost = context.facts("nccl_debug").get("ras", [])
    if lost:
        yield context.unknown(RAS_LOST, f"{RAS_LOST.says}: {lost[0]}", measured=len(lost), expected=0, evidence=lost)


def _job(context: Context, facts: Facts) -> Iterator[Finding]:
    """A job that failed shows no node to be good; which one is at fault these lines do not say."""
    said = facts.get("job", [])
    unfinished = [*facts.get("unfinished", []), *([] if said else job_faults.libfabric_alone(facts))]
    errors = [line for line in unfinished if not words.harmless(line)]
    limits, own = words.saying(errors, words.MEMORY), [line for line in errors if words.OWN_FAULT.search(line)]
    if limits:
        text = "NCCL stopped for want of memory to register or to share: memlock, huge pages or /dev/shm are too small"
        yield context.fail(LIMITS, text, measured=len(limits), expected=0, evidence=limits)
    elif words.jobs_own([*said, *own]) and all(words.CONSEQUENCE.search(line) for line in errors):
        text = f"the job failed by its own program's error, which says nothing of the node: {[*own, *said][0]}"
        yield context.info(JOBS_OWN, text, remedy=Remedy.RESTART_APP, evidence=[*own, *said])
    elif any(job_faults.SYSTEM.search(line) for line in said):
        line = next(line for line in said if job_faults.SYSTEM.search(line))
        yield context.fail(SYSTEM_ERROR, f"{SYSTEM_ERROR.says}: {line}", evidence=[*said, *errors])
    elif said:
        own = [line for line in errors if not line.partition(" -> ")[1]]
        causes = own or [after for line, after in zip(said, said[1:]) if line.endswith("Last error:")]
        cause = f" ({causes[0]})" if causes else ""
        yield context.unknown(JOB_FAILED, f"the job failed, no node is named: {said[0]}{cause}", evidence=[*said, *own])
    elif errors:
        text = f"NCCL or libfabric met an error, and the log does not show that it went on: {errors[0]}"
        yield context.unknown(OTHER_ERRORS, text, evidence=errors)


def _not_started(facts: Facts) -> List[str]:
    """Why the EFA plugin gave NCCL nothing to use; [] where it did, or where NCCL names what it used instead."""
    lines = [*_said(facts), *facts.get("plugin_trouble", [])]
    network = facts.get("network") or ""
    if network and "libfabric" not in network.lower():
        return []
    nothing = [] if network or facts.get("provider") else words.saying(lines, words.NOTHING_FOUND)
    return nothing or words.saying(lines, words.NOT_STARTED)


def evaluate(context: Context) -> Iterator[Finding]:
    """First what failed: faults, a plugin that did not start, a job that died. Then network, provider and paths."""
    facts = context.facts("nccl_debug")
    failed, without = list(_faults(context, facts)), job_faults.left_out(facts)
    if without:
        yield context.warn(DEVICE_LEFT_OUT, f"{DEVICE_LEFT_OUT.says}: {without[-1]}", evidence=without)
    sockets = [name for name in facts.get("transports", {}) if name in ("NET/Socket", "NET/IB")]
    not_started = _not_started(facts) if context.expected.efa_count != 0 and not sockets else []
    if not_started:
        text = f"NCCL could not start its EFA plugin: {not_started[0]}"
        rest = {"measured": facts.get("provider") or "none", "expected": "efa", "evidence": not_started}
        failed.append(context.fail(PLUGIN_NOT_STARTED, text, **rest))
    yield from failed
    if not failed:
        died = list(_job(context, facts))
        yield from died
        failed += [one for one in died if one.status is not Status.INFO]
    if not not_started:
        # After a failure, what the log does not show needs no further word.
        yield from (f for f in _network(context, facts, sockets) if not (failed and f.status is Status.SKIP))


def _network(context: Context, facts: Facts, sockets: List[str]) -> Iterator[Finding]:
    network, provider = facts.get("network"), facts.get("provider")
    evidence = [*facts.get("evidence", []), *facts.get("plugin_trouble", []), *facts.get("warnings", [])]
    unwanted, lines = not_known_to_have_efa(context), facts.get("lines")
    slow = job_faults.sockets_alone(facts) if unwanted and unwanted.reason is skips.EFA_NOT_DECLARED else ""
    if slow:
        yield context.fail(SOCKETS_ALONE, f"{SOCKETS_ALONE.says} {slow}", "Socket", "a fast network", evidence=evidence)
    elif lines and not facts.get("info_lines"):
        yield context.ok(f"nothing failed in {lines} lines of the job's log, which shows no network", measured=lines)
    elif lines and unwanted and unwanted.reason is skips.EFA_NOT_DECLARED and provider != "efa":
        yield context.ok(f"nothing failed in {lines} lines of the job's log; its network is not judged", measured=lines)
    elif unwanted and provider != "efa":
        yield context.skip(unwanted)
    elif not facts.get("info_lines"):
        yield context.skip(skips.ONE_NODE.because("the logs hold no NCCL line: run with NCCL_DEBUG=INFO"))
    elif network is None and not sockets and provider is None:
        yield context.skip(
            skips.ONE_NODE.because("the log names no network: NCCL_DEBUG_SUBSYS without INIT,NET, or cut short")
        )
    elif sockets or (network and "libfabric" not in network.lower()):
        used = network if network and "libfabric" not in network.lower() else ", ".join(sockets)
        rest = {"measured": used, "expected": "libfabric", "evidence": evidence}
        yield context.fail(NOT_EFA, f"NCCL uses {used} instead of EFA", **rest)
    elif provider not in (None, "efa"):
        rest = {"measured": provider, "expected": "efa", "evidence": evidence}
        yield context.fail(OTHER_PROVIDER, f"libfabric uses provider {provider}", **rest)
    elif provider is None and not facts.get("gdrdma"):
        text = f"NCCL uses {network}, but {PROVIDER_NOT_SHOWN.says}"
        yield context.unknown(PROVIDER_NOT_SHOWN, text, evidence=evidence)
    else:
        version = f" (aws-ofi-nccl {facts['ofi_plugin_version']})" if facts.get("ofi_plugin_version") else ""
        text = f"NCCL uses {facts.get('network', 'libfabric')} with provider efa{version}"
        yield context.ok(text, measured=provider, expected="efa")
        yield from _paths(context, facts)
        yield from _quality(context, facts)


def _paths(context: Context, facts: Facts) -> Iterator[Finding]:
    """What EFA alone does not tell: the plugin's age, the devices it found, and the way between the node's own GPUs."""
    plugin, oldest = str(facts.get("ofi_plugin_version") or ""), context.expected.ofi_nccl_minimum
    # A plugin built from its repository gives a commit ("git-6e504db"), which has no age.
    if plugin[:1].isdigit() and oldest and not version_reaches(plugin, oldest):
        text = f"NCCL loaded aws-ofi-nccl {plugin}, {context.expected.instance_type} wants {oldest} or later"
        yield context.fail(OLD_PLUGIN, text, measured=plugin, expected=oldest)
    nics, wanted = facts.get("nics"), context.expected.efa_count
    if nics and wanted and nics < wanted:
        text = f"the EFA plugin found {nics} of the type's {wanted} devices: a container without the rest, or a filter"
        yield context.warn(FEWER_DEVICES, text, measured=nics, expected=wanted, unit="devices")
    shared = {path: count for path, count in facts.get("transports", {}).items() if path.split("/")[0] == "SHM"}
    if shared and context.expected.nvswitch:
        text = "NCCL goes through host memory between the node's GPUs, not over NVLink: P2P is off or broken"
        rest = {"measured": sum(shared.values()), "expected": 0, "unit": "channels"}
        yield context.fail(OVER_HOST, text, evidence=[f"{n} via {path}" for path, n in shared.items()], **rest)


def _quality(context: Context, facts: Facts) -> Iterator[Finding]:
    # p5.4xlarge and the G types have EFA without GPUDirect RDMA; the NVSwitch types all have it.
    if facts.get("gdrdma") is False and context.expected.nvswitch and context.expected.rdma_read:
        text = "network channels without GPUDirect RDMA: data goes through host memory"
        yield context.warn(NO_GDR, text, measured=False, expected=True)
    warnings = facts.get("warnings", [])
    without = words.saying(warnings, words.NO_GPUDIRECT)
    if without:
        yield context.warn(NO_GDR_SOME, NO_GDR_SOME.says, measured=False, expected=True, evidence=without)
    memory = words.saying(warnings, words.MEMORY)
    if memory:
        text = "memory could not be registered or shared: memlock, huge pages or /dev/shm are too small"
        yield context.warn(HOST_MEMORY, text, measured=len(memory), expected=0, evidence=memory)
    if warnings and not memory:
        yield context.info(WARNINGS, f"{len(warnings)} distinct NCCL warnings", evidence=warnings)


def _no_network_to_judge(context: Context) -> Optional[Skip]:
    """A type without NVIDIA GPUs and without EFA runs no NCCL; one without EFA alone can still lose a GPU."""
    reason = nvidia_gpus_expected(context)
    # A job's log of Trainium nodes has the same OFI lines; the tests that would write one do not run there.
    return reason and (no_efa(context) or (reason if context.optional("nccl_debug") is None else None))


CHECK = Check(
    id="nccl_transport",
    order=880,
    title="NCCL network path",
    what="What failed in a job's NCCL log (GPU, device, peer, plugin, the job itself); then the network, provider and "
    "plugin that NCCL says it uses, GPUDirect RDMA, and P2P between the node's GPUs.",
    why="A job that failed shows no node to be good. Without the EFA plugin NCCL falls back to TCP sockets without an "
    "error, at a tenth of the bandwidth or less.",
    remedy="Put aws-ofi-nccl on LD_LIBRARY_PATH, give the container its EFA devices; set NCCL_NET_PLUGIN=ofi.",
    out_of_service="Yes where the log names GPU, device, peer or set-up; a job that only failed is UNKNOWN.",
    first="NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET on the job, then look for NET/",
    source="aws/aws-ofi-nccl doc and src (log lines of 1.5 to 1.21); AWS EFA user guide, NCCL section",
    needs=("nccl_debug",),
    tags=("nccl", "efa", "network"),
    level="standard",
    applies=_no_network_to_judge,
    skips=(*OF_GPU, skips.NO_EFA, skips.EFA_NOT_DECLARED, skips.ONE_NODE),
    evaluate=evaluate,
)
