"""Does the kernel see the NUMA nodes of the instance type, each with memory?"""

from __future__ import annotations

from typing import Iterator, List, Optional

from ...model import Check, Facts, Finding, Reason, Remedy
from ..context import Context

NUMA_OFF = Reason("numa_off", "NUMA is off", Remedy.FIX_CONFIG)
NOT_SHOWN = Reason("not_shown", "the number of NUMA nodes was not printed")
OTHER_NUMBER = Reason("other_number", "another number of NUMA nodes than the type has", Remedy.FIX_CONFIG)
NOT_EXPECTED = Reason("not_expected", "no number of NUMA nodes is expected")
NO_MEMORY = Reason("no_memory", "a NUMA node has no memory", Remedy.REPLACE)


def evaluate(context: Context) -> Iterator[Finding]:
    """Count the nodes that have CPUs; numactl knows most, lscpu stands in where it is not installed."""
    numactl, cpuinfo = context.optional("numactl") or {}, context.optional("cpuinfo") or {}
    wanted, nodes = context.expected.numa_nodes, _nodes(numactl)
    nodes = cpuinfo.get("numa_nodes") if nodes is None else nodes
    rest = {"measured": nodes, "expected": wanted, "unit": "nodes"}
    if numactl.get("error") and (wanted or 0) > 1:
        rest.update(measured="off" if nodes is None else nodes, evidence=[numactl["error"]])
        yield context.fail(NUMA_OFF, f"NUMA is off: {numactl['error']}", **rest)
        return
    if nodes is None:
        answer = context.info if wanted is None else context.unknown
        yield answer(NOT_SHOWN, "the number of NUMA nodes was not printed")
        return
    context.measure("numa_nodes", nodes, "nodes")
    if wanted not in (None, nodes):
        message = f"{nodes} NUMA nodes, wanted {wanted}: numa=off or numa=fake at boot, or wrong instance type"
        yield context.fail(OTHER_NUMBER, message, **rest)
        return
    empty = _without_memory(numactl)
    if empty:
        shown = ", ".join(empty)
        yield context.fail(NO_MEMORY, f"NUMA node {shown} has no memory", device={"name": f"node {shown}"}, **rest)
    elif wanted is None:
        yield context.info(NOT_EXPECTED, f"{nodes} NUMA nodes; nothing is expected", measured=nodes, unit="nodes")
    else:
        yield context.ok(f"{nodes} NUMA nodes", **rest)


def _nodes(facts: Facts) -> Optional[int]:
    """Nodes with CPUs: on a Grace superchip every GPU's memory is a node of its own, without any."""
    per_node = facts.get("per_node") or []
    with_cpus = [entry for entry in per_node if entry.get("cpus")]
    if with_cpus and len(per_node) == facts.get("nodes"):
        return len(with_cpus)
    return facts.get("nodes")


def _without_memory(facts: Facts) -> List[str]:
    entries = facts.get("per_node") or []
    return [str(entry["node"]) for entry in entries if entry.get("cpus") and entry.get("size_mib") == 0]


CHECK = Check(
    id="numa_nodes",
    order=430,
    title="NUMA nodes",
    what="The number of NUMA nodes with CPUs, against the instance type, and that each has memory.",
    why="Ranks are bound to the NUMA node of their GPU and EFA device; with NUMA off every transfer may cross sockets.",
    remedy="Remove numa=off or numa=fake from the kernel's command line and reboot; replace a node that lost memory.",
    do="Remove numa=off or numa=fake from the kernel's command line and reboot.",
    out_of_service="Yes: memory is missing, or NUMA is off; data loaders then run at the pace of one socket.",
    source="numactl(8); NUMA layout per instance type from aws-ofi-nccl's topology files",
    needs_any=("numactl", "cpuinfo"),
    informs=True,
    tags=("host", "compute"),
    evaluate=evaluate,
)
