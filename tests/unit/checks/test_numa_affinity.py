"""numa_affinity: GPUs spread over the nodes, crowded on one, not known."""

from . import gpus
from .table import INVESTIGATE, PASS, SKIP, UNKNOWN, WARN, judging, row, table, without


def judge(numa, instance_type="p5.48xlarge", **rest):
    return judging("numa_affinity", gpus.topo({"NV18": 28}, 8, numa), instance_type, **rest)


test_numa_affinity = table(
    row("spread", judge(["0"] * 4 + ["1"] * 4), PASS, message="4 GPUs on node 0, 4 GPUs on node 1"),
    *(row("crowded warns", judge(numa), WARN, remedy=INVESTIGATE)
        for numa in [["0"] * 8, ["0"] * 6 + ["1"] * 2, ["0"] * 4 + ["2"] * 2 + ["1"] * 2]),
    *(row("not known to the driver warns", judge(["0"] * 4 + ["1"] * 3 + [cell]), WARN, says="GPU7")
        for cell in [None, "N/A", "0-1"]),
    # A GB200 has 2 CPU nodes, and 32 more for the memory of its GPUs.
    row("nodes of GPU memory are no CPU nodes",
        judging("numa_affinity", gpus.topo({"NV18": 6}, 4, ["0,2-17", "0,2-17", "1,18-33", "1,18-33"]),
        "p6e-gb200.36xlarge", expected={"numa_nodes": 2}), PASS, message="2 GPUs on node 0, 2 GPUs on node 1"),
    row("nodes of GPU memory are no CPU nodes", judge(["0"] * 4 + ["1"] * 3 + ["0,1"]), WARN, count=1),
    row("no matrix is unknown", judging("numa_affinity", gpus.topo({}, 0)), UNKNOWN),
    row("not printed or not expected",
        [judging("numa_affinity", without(gpus.topo({"NV18": 28}), "nvidia_smi_topo.numa_affinity")),
        judge(["0"] * 8, "none")], SKIP),
    row("not printed or not expected", judge(["0"] * 8, "none", expected={"numa_nodes": 1}), PASS),
    row("a GPU less on one node is still spread",
        judging("numa_affinity", gpus.topo({"NV18": 21}, 7, ["0"] * 4 + ["1"] * 3)), PASS),
    *(row("as many GPUs as nodes are on a node each",
        judging("numa_affinity", gpus.topo({"SYS": 1}, count, ["0"] * count), "none", expected={"numa_nodes": 2}),
        wanted)
        for count, wanted in [(1, PASS), (2, WARN)]),
)  # fmt: skip
