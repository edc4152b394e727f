"""numa_nodes: as the type has, too few, NUMA off, numactl not there, nodes of GPU memory."""

from functools import partial

from tests.harness import BROKEN

from .table import FAIL, FIX_CONFIG, INFO, PASS, UNKNOWN, judging, row, table

EACH = [{"node": 0, "cpus": [0], "size_mib": 9}, {"node": 1, "cpus": [1], "size_mib": 9}]
TWO = {"nodes": 2, "per_node": EACH}
OFF = {"error": "No NUMA available on this system"}
judge = partial(judging, "numa_nodes")

test_numa_nodes = table(
    row("two nodes", judge({"numactl": TWO}), PASS, measured=2),
    row("one node", judge({"numactl": {"nodes": 1}}), FAIL, measured=1, expected=2, remedy=FIX_CONFIG),
    row("NUMA off", judge({"numactl": OFF}), FAIL, says="No NUMA"),
    row("NUMA off", judge({"numactl": OFF}, "none", expected={"numa_nodes": 1}), UNKNOWN),
    row("lscpu stands in for numactl", judge({"cpuinfo": {"numa_nodes": 2}}), PASS),
    row("lscpu stands in for numactl", judge({"numactl": BROKEN, "cpuinfo": {"numa_nodes": 1}}), FAIL),
    row("lscpu stands in for numactl", judge({"numactl": BROKEN, "cpuinfo": {"cpus": 4}}), UNKNOWN),
    row("nodes without CPUs do not count",
        judge({"numactl": {"nodes": 3, "per_node": [*EACH, {"node": 2, "cpus": [], "size_mib": 188416}]}}),
        PASS),
    row("node without memory",
        judge({"numactl": {"nodes": 2, "per_node": [EACH[0], {"node": 1, "cpus": [1], "size_mib": 0}]}}),
        FAIL, device={"name": "node 1"}),
    row("unknown and skip", judge({"numactl": TWO}, "g6.48xlarge"), INFO),
    *(row("a list of nodes that is cut or without CPUs leaves the count",
        judge({"numactl": {"nodes": 2, "per_node": per_node}}), PASS, measured=2)
        for per_node in [EACH[:1], [{"node": 0}, {"node": 1}]]),
)  # fmt: skip
