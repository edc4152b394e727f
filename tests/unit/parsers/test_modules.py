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
