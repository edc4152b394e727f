"""numa_nodes: as the type has, too few, NUMA off, numactl not there, nodes of GPU memory."""

from tests.harness import BROKEN

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, judging, row, table

TWO = {"nodes": 2, "per_node": [{"node": 0, "cpus": [0], "size_mib": 9}, {"node": 1, "cpus": [1], "size_mib": 9}]}
OFF = {"error": "No NUMA available on this system"}


test_numa_nodes = table(
    row("two nodes", judging("numa_nodes", {"numactl": TWO}), PASS, measured=2),
    row("one node", judging("numa_nodes", {"numactl": {"nodes": 1}}), FAIL, measured=1, expected=2,
        remedy=FIX_CONFIG),
    row("NUMA off", judging("numa_nodes", {"numactl": OFF}), FAIL, says="No NUMA"),
    row("NUMA off", judging("numa_nodes", {"numactl": OFF}, "none", expected={"numa_nodes": 1}), UNKNOWN),
    row("lscpu stands in for numactl", judging("numa_nodes", {"cpuinfo": {"numa_nodes": 2}}), PASS),
    row("lscpu stands in for numactl", judging("numa_nodes", {"numactl": BROKEN, "cpuinfo": {"numa_nodes": 1}}),
        FAIL),
    row("lscpu stands in for numactl", judging("numa_nodes", {"numactl": BROKEN, "cpuinfo": {"cpus": 4}}), UNKNOWN),
    row("nodes without CPUs do not count", judging("numa_nodes",
        {"numactl": {"nodes": 3, "per_node": [*TWO["per_node"], {"node": 2, "cpus": [], "size_mib": 188416}]}}), PASS),
    row("node without memory", judging("numa_nodes",
        {"numactl": {"nodes": 2, "per_node": [TWO["per_node"][0], {"node": 1, "cpus": [1], "size_mib": 0}]}}), FAIL,
        device={"name": "node 1"}),
    row("unknown and skip", judging("numa_nodes", {"numactl": TWO}, "g6.48xlarge"), SKIP),
    *(row("a list of nodes that is cut or without CPUs leaves the count",
        judging("numa_nodes", {"numactl": {"nodes": 2, "per_node": per_node}}), PASS, measured=2)
        for per_node in [TWO["per_node"][:1], [{"node": 0}, {"node": 1}]]),
)  # fmt: skip
