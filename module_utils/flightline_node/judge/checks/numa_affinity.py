"""Are the GPUs spread over the NUMA nodes as they should be?"""

from __future__ import annotations

import re
from collections import Counter
from typing import Iterator

from ...model import Finding, Reason
from .. import skips
from ..context import Context
from .common import OF_GPU, gpu_check

NO_GPU = Reason("no_gpu", "no GPU in the topology matrix")
ONE_SIDED = Reason("one_sided", "the GPUs are on fewer NUMA nodes than there are")
UNEVEN = Reason("uneven", "the GPUs are unevenly spread over the NUMA nodes")


def _cpu_node(cell: str, nodes: int) -> str:
    """GB200 names the node of the CPU and then those of GPU memory, which come after all CPUs: "0,2-17" -> "0"."""
    first, _, rest = cell.partition(",")
    memory = re.match(r"\d{1,4}", rest)
    return first if memory and int(memory.group()) >= nodes else cell


def evaluate(context: Context) -> Iterator[Finding]:
    """The same number of GPUs on each NUMA node; never more than a warning."""
    facts = context.facts("nvidia_smi_topo")
    affinity, nodes = facts.get("numa_affinity"), context.expected.numa_nodes or 1
    if affinity is None:
        yield context.skip(skips.DRIVER_SILENT.because("this driver does not print the NUMA affinity"))
        return
    near = {name: _cpu_node(str(affinity.get(name)), nodes) for name in facts.get("gpus", [])}
    unknown = sorted(gpu for gpu, node in near.items() if not node.isdecimal())
    per_node = Counter(near.values())
    shown = ", ".join(f"{count} GPUs on node {node}" for node, count in sorted(per_node.items()))
    if not near:
        yield context.unknown(NO_GPU, "no GPU in the topology matrix")
    elif unknown:
        message = f"{', '.join(unknown)}: NUMA node not known to the driver"
        yield context.warn(ONE_SIDED, message, measured=shown, expected=f"{nodes} NUMA nodes")
    elif len(near) >= nodes and (len(per_node) != nodes or max(per_node.values()) - min(per_node.values()) > 1):
        message = f"{shown}; wanted the GPUs spread over {nodes} NUMA nodes"
        yield context.warn(UNEVEN, message, measured=shown, expected=f"{nodes} NUMA nodes")
    else:
        yield context.ok(shown, measured=shown, expected=f"{nodes} NUMA nodes")


CHECK = gpu_check(
    id="numa_affinity",
    order=400,
    title="GPU NUMA affinity",
    what="The NUMA node of each GPU, against the number of NUMA nodes of the instance type.",
    why="Ranks pinned to the wrong socket copy over the socket link, which slows data loading and checkpoints.",
    remedy="Look whether the instance was started with all its NUMA nodes (numactl --hardware); a reboot may help.",
    do="Look whether the instance was started with all its NUMA nodes (numactl --hardware).",
    out_of_service="No: it costs a few percent, and pinning mends it.",
    first="nvidia-smi topo -m",
    source="aws-ofi-nccl topology files of P4 and P5; nvidia-smi topo -m, NUMA Affinity column",
    needs=("nvidia_smi_topo",),
    expects=("numa_nodes",),
    tags=("gpu", "numa"),
    skips=(*OF_GPU, skips.DRIVER_SILENT),
    evaluate=evaluate,
)
