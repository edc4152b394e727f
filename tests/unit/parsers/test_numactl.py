"""numactl --hardware: nodes, their CPUs and memory; nodes without CPUs; a kernel without NUMA."""

from tests.unit.parsers.hosttools import read


def test_recorded():
    facts = read("numactl", "numactl/debian12.txt")
    assert facts["nodes"] == 1
    assert facts["per_node"][0]["cpus"] == [0, 1]
    assert facts["per_node"][0]["size_mib"] > 0


def test_two_nodes():
    facts = read("numactl", "numactl/p5.txt")
    assert facts["nodes"] == 2
    assert [len(entry["cpus"]) for entry in facts["per_node"]] == [96, 96]
    assert facts["per_node"][1] == {**facts["per_node"][1], "node": 1, "size_mib": 1032154, "free_mib": 1022334}


def test_nodes_of_gpu_memory_have_no_cpus():
    facts = read("numactl", "numactl/grace.txt")
    assert [(entry["node"], entry["cpus"] == []) for entry in facts["per_node"]] == [
        (0, False),
        (1, False),
        (2, True),
        (10, True),
    ]


def test_kernel_without_numa():
    assert read("numactl", "numactl/no-numa.txt") == {"error": "No NUMA available on this system"}
