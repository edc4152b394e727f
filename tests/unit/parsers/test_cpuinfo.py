"""lscpu: flat and nested JSON, plain text, an object of facts; offline CPUs."""

import pytest

from tests.unit.parsers.hosttools import parse, read


@pytest.mark.parametrize("file", ["debian12.json", "debian12.txt"])
def test_recorded(file):
    facts = read("cpuinfo", f"lscpu/{file}")
    assert facts["cpus"] == facts["online"] == 2
    assert facts["offline"] == []
    assert (facts["threads_per_core"], facts["sockets"], facts["cores_per_socket"], facts["numa_nodes"]) == (1, 1, 2, 1)
    assert facts["model"] == "Intel(R) Xeon(R) Processor @ 2.50GHz"


def test_nested_fields():
    facts = read("cpuinfo", "lscpu/p5-nested.json")
    assert (facts["cpus"], facts["online"], facts["threads_per_core"], facts["numa_nodes"]) == (192, 192, 2, 2)
    assert (facts["model"], facts["architecture"]) == ("AMD EPYC 7R13 Processor", "x86_64")


def test_offline_cpus_are_listed():
    facts = read("cpuinfo", "lscpu/p5-offline.json")
    assert (facts["cpus"], facts["online"], facts["offline"]) == (192, 188, [188, 189, 190, 191])


@pytest.mark.parametrize("head", ["sudo: unable to resolve host gpu-7\n", "[root@gpu-7 ~]# lscpu\n"])
def test_lines_above_the_fields(head):
    for text in ('{"lscpu": [{"field": "CPU(s):", "data": "192"}]}', '{\n   "cpus": 192}', "CPU(s):   192\n"):
        assert parse("cpuinfo", head + text)["cpus"] == 192


def test_plain_object():
    facts = parse("cpuinfo", '{"cpus": 96, "online": 48, "threads_per_core": 1, "offline": [48, 49], "model": "EPYC"}')
    assert facts == {"cpus": 96, "online": 48, "threads_per_core": 1, "offline": [48, 49], "model": "EPYC"}
