"""Text helpers: nothing steers a terminal, hosts are abbreviated without losing or inventing one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightline.report import text
from flightline_node.model import Remedy, Status, as_remedy, as_status
from tests.unit.report.factory import EVIL


def test_clean_leaves_nothing_that_steers_a_terminal_or_reorders_a_page():
    cleaned = text.clean(EVIL + "\r\n\x9b2J\u200f")
    assert cleaned.isprintable()
    assert cleaned.startswith("<script>"), "markup is the renderers' to escape, and must stay readable"
    cleaned.encode("utf-8")


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "GPUs", ""),
        (0, "errors", "0 errors"),
        (True, "", "yes"),
        (312.40000001, "GB/s", "312.4 GB/s"),
        ([], "", "none"),
        (["a", "b"], "", "a, b"),
        (list(range(12)), "", "0, 1, 2, 3, 4, 5, 6, 7, +4 more"),
        ({"580.95.05": 5, "570.1": 1}, "", "580.95.05: 5, 570.1: 1"),
        ("", "GPUs", ""),
        (float("nan"), "", "nan"),
    ],
)
def test_values_of_any_type_are_short_text(value, unit, shown):
    assert text.show_value(value, unit) == shown


def test_a_huge_value_is_cut():
    assert len(text.show_value("x" * 10_000)) == text.MAX_VALUE_CHARS
    assert len(text.show_value(["y" * 500] * 500)) == text.MAX_VALUE_CHARS


@pytest.mark.parametrize(
    ("hosts", "entries"),
    [
        (["gpu-001", "gpu-002", "gpu-003", "gpu-007"], [("gpu-[001-003]", 3), ("gpu-007", 1)]),
        (["gpu-9", "gpu-10"], [("gpu-[9-10]", 2)]),
        (["gpu-099", "gpu-100"], [("gpu-[099-100]", 2)]),
        (["gpu-09", "gpu-010"], [("gpu-09", 1), ("gpu-010", 1)]),
        (["10.0.1.7", "10.0.1.8", "10.0.2.9"], [("10.0.1.[7-8]", 2), ("10.0.2.9", 1)]),
        (
            ["ip-10-0-1-17.ec2.internal", "ip-10-0-1-18.ec2.internal"],
            [("ip-10-0-1-[17-18].ec2.internal", 2)],
        ),
        (["b", "a", "b"], [("b", 1), ("a", 1)]),
        (["node1", "rack1"], [("node1", 1), ("rack1", 1)]),
        ([], []),
    ],
)
def test_hosts_are_joined_in_ranges(hosts, entries):
    assert text.host_ranges(hosts) == entries


@given(st.lists(st.from_regex(r"(gpu|n0)-?[0-9]{1,4}(\.x2)?", fullmatch=True), max_size=30))
def test_ranges_name_exactly_the_hosts_given(hosts):
    named = []
    for entry, size in text.host_ranges(hosts):
        match = re.fullmatch(r"(.*)\[(\d+)-(\d+)\](.*)", entry)
        if match:
            first, last = match.group(2), match.group(3)
            numbers = [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
            expanded = [match.group(1) + number + match.group(4) for number in numbers]
        else:
            expanded = [entry]
        assert len(expanded) == size
        named += expanded
    assert sorted(named) == sorted(set(hosts))


def test_places_join_hosts_with_the_same_device_and_count_the_rest():
    where = [("gpu-1", "GPU 3", 4), ("gpu-2", "GPU 3", 4), ("gpu-2", "GPU 5", 4), ("gpu-8", "GPU 3", 4)]
    assert text.places(where) == "GPU 3 on gpu-1, gpu-8; GPU 3, GPU 5 on gpu-2"
    many = [(f"h{number * 2}", "", 1) for number in range(20)]
    assert text.places(many, most=3) == "h0, h2, h4; +17 more hosts"


def test_places_show_the_value_where_it_differs():
    where = [("a", "GPU 0", 312.0), ("b", "GPU 0", 298.5)]
    assert text.places(where, "GB/s") == "GPU 0 (312 GB/s) on a; GPU 0 (298.5 GB/s) on b"
    assert text.measured_range(where, "GB/s") == "298.5 to 312 GB/s"


def test_places_never_lose_a_host_over_several_devices():
    where = [(f"h{number * 2}", f"GPU {number % 3}", 1) for number in range(30)]
    shown = text.places(where, most=8)
    listed = re.findall(r"h\d+", shown)
    assert len(listed) == 8
    assert "+22 more hosts" in shown


@pytest.mark.parametrize(
    ("device", "label"),
    [
        ({}, ""),
        ({"index": 0, "name": "NVIDIA H100"}, "GPU 0"),
        ({"name": "rdmap79s0", "port": 1}, "rdmap79s0 port 1"),
        ({"mount": "/fsx"}, "/fsx"),
        ({"pci": "0000:ca:00.0"}, "0000:ca:00.0"),
    ],
)
def test_device_labels(device, label):
    assert text.device_label(device) == label


@pytest.mark.parametrize(
    ("end", "shown"),
    [("2026-11-21T03:00:00+00:00", "0 s"), ("2026-11-21T04:02:03+00:00", "1 h 2 min 3 s"), ("", ""), ("soon", "")],
)
def test_duration(end, shown):
    assert text.duration("2026-11-21T03:00:00+00:00", end) == shown


def test_words_of_a_later_version_never_become_a_pass():
    assert as_status("EXCELLENT") is Status.UNKNOWN
    assert as_remedy("PRAY") is Remedy.INVESTIGATE
    assert text.blocks(as_status("EXCELLENT"))
