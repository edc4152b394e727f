"""efa-counters.json: numbers by device, and what is not that."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import efa_counters
from tests.harness import sample


def read(data):
    return efa_counters.parse({"efa-counters.json": data})


def test_devices():
    facts = read(sample("efa_counters/p4d-drops.json"))
    assert facts["count"] == 4
    assert facts["devices"]["rdmap144s27"]["rx_drops"] == 812
    assert facts["devices"]["rdmap16s27"]["rx_drops"] == 0


def test_values():
    facts = read(b'{"efa_0": {"rx_drops": "7", "tx_bytes": null, "rx_bytes": "Invalid argument", "x": -1, "y": true}}')
    assert facts["devices"]["efa_0"] == {
        "rx_drops": 7,
        "tx_bytes": None,
        "rx_bytes": "Invalid argument",
        "x": -1,
        "y": "True",
    }


def test_a_warning_above_it():
    assert read(b'sudo: unable to resolve host ip-10-1-0-17\n{"efa_0": {"rx_drops": 7}}\n')["count"] == 1


def test_no_device_is_a_count_of_zero():
    assert read(b"{}") == {"devices": {}, "count": 0}


@pytest.mark.parametrize("data", [b"", b"\x00", b"[]", b'{"efa_0": 3}', b'{"efa_0": {"a": 1}', b"[" * 200000])
def test_anything_else(data):
    with pytest.raises(ParseError):
        read(data)
