"""/proc/modules and lsmod."""

from tests.unit.parsers.hosttools import parse, read


def test_proc_modules():
    names = read("modules", "proc/p5-modules.txt")["names"]
    assert len(names) == 9
    assert names["nvidia"] == 97345536


def test_lsmod_header_is_no_module():
    names = read("modules", "proc/lsmod.txt")["names"]
    assert sorted(names) == ["efa", "ib_uverbs", "nvidia", "nvidia_uvm"]
    assert parse("modules", "snd-hda 1 0\n")["names"] == {"snd_hda": 1}


def test_a_kernel_that_unloads_no_modules_counts_no_uses():
    names = read("modules", "recorded/h100-modules.txt")["names"]
    assert names == {"nvidia_uvm": 1830912, "nvidia": 14299136}
