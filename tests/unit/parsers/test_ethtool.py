"""ethtool -S: the device's counters without those of its queues."""

import pytest

from flightline_node.model import ParseError
from tests.unit.parsers.hosttools import parse, read


def test_ena():
    counters = read("ethtool", "ethtool/ena.txt")["counters"]
    assert (counters["bw_in_allowance_exceeded"], counters["conntrack_allowance_available"]) == (1893, 5242801)
    assert counters["ena_admin_q_submitted_cmd"] == 310
    assert not [name for name in counters if name.startswith("queue")]


def test_another_device():
    assert read("ethtool", "ethtool/virtio.txt")["counters"] == {"rx_errors": 0}


@pytest.mark.parametrize(
    "data", ["", "no stats available\n", "NIC statistics:\n", "     a: 1\n", "NIC statistics:\na: b\n"]
)
def test_anything_else(data):
    with pytest.raises(ParseError):
        parse("ethtool", data)
