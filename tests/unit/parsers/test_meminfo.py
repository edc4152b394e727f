"""/proc/meminfo."""

from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    facts = read("meminfo", "proc/debian12-meminfo.txt")
    assert facts["total_kib"] == 24684096
    assert 0 < facts["available_kib"] < facts["total_kib"]
    assert (facts["swap_total_kib"], facts["hugepages_total"], facts["hugepage_kib"]) == (0, 0, 2048)
    assert "hardware_corrupted_kib" not in facts


def test_what_is_not_printed_is_absent():
    assert parse("meminfo", "MemTotal:  100 kB\nMemAvailable: many kB\n") == {"total_kib": 100}
