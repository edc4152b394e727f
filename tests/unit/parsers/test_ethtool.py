"""ethtool -S: the device's counters without those of its queues."""

import pytest

from tests.unit.parsers.hosttools import parse, read


def test_ena():
    counters = read("ethtool", "ethtool/ena.txt")["counters"]
    assert (counters["bw_in_allowance_exceeded"], counters["conntrack_allowance_available"]) == (1893, 5242801)
    assert counters["ena_admin_q_submitted_cmd"] == 310
    assert not [name for name in counters if name.startswith("queue")]


def test_another_device():
    assert read("ethtool", "ethtool/virtio.txt")["counters"] == {"rx_errors": 0}


@pytest.mark.parametrize("before", ["", "[ec2-user ~]$ ethtool -S eth0 | grep allowance\n"])
def test_the_allowances_alone(before):
    """As AWS's guide prints them."""
    text = before + "bw_in_allowance_exceeded: 0\n     bw_out_allowance_exceeded: 77\n"
    counters = parse("ethtool", text)["counters"]
    assert counters == {"bw_in_allowance_exceeded": 0, "bw_out_allowance_exceeded": 77}


def test_what_stands_before_the_title_is_not_the_devices():
    text = "Speed: 100\nNIC statistics:\n     bw_in_allowance_exceeded: 4\n"
    assert parse("ethtool", text)["counters"] == {"bw_in_allowance_exceeded": 4}
