"""numactl --hardware."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("numactl.txt",)

_AVAILABLE = re.compile(r"available: (\d{1,5}) nodes?\b")
_NODE = re.compile(r"node (\d{1,5}) (cpus|size|free):(.*)")


def parse(files: Mapping[str, Data]) -> Facts:
    """{nodes, per_node[]{node cpus[] size_mib free_mib}}, or {error} where the kernel has no NUMA support.

    numactl's MB are MiB. A node without CPUs (the GPU memory of a Grace superchip) has cpus [].
    """
    facts: Facts = {}
    nodes: Dict[int, Dict[str, Any]] = {}
    for line in v.lines(t.only(files)):
        available, node = _AVAILABLE.match(line), _NODE.match(line)
        if available:
            facts["nodes"] = int(available.group(1))
        elif "No NUMA" in line:
            facts["error"] = line.strip()
        elif node:
            entry = nodes.setdefault(int(node.group(1)), {"node": int(node.group(1))})
            if node.group(2) == "cpus":
                entry["cpus"] = v.cpu_list(node.group(3))
            else:
                entry[node.group(2) + "_mib"] = v.integer(node.group(3).replace("MB", ""))
    if not facts:
        raise ParseError("no 'available: N nodes' line: not numactl --hardware")
    if nodes:
        facts["per_node"] = [nodes[number] for number in sorted(nodes)]
    return facts
