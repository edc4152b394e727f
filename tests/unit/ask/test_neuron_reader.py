"""The reader neuron_sysfs on a file system like the driver's: old and moved places, sums over cores, failed reads."""

import json
from pathlib import Path

import pytest

from flightline_node.ask import neuron


def write(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.fixture
def root(tmp_path):
    device = f"{neuron.CLASS}/neuron3"
    write(tmp_path, f"{neuron.MODULE}/version", "2.24.7.0\n")
    write(tmp_path, f"{device}/core_count", "2")
    write(tmp_path, f"{device}/connected_devices", "15, 2, 7, 0\n")
    write(tmp_path, f"{device}/info/serial_number", "5a00ff00c0de0003\n")
    for name in ("sram_ecc_uncorrected", "mem_ecc_uncorrected"):
        write(tmp_path, f"{device}/stats/hardware/{name}", "0\n")
    for core in (0, 1):
        write(tmp_path, f"{device}/neuron_core{core}/stats/status/timeout/total", "2\n")
        write(tmp_path, f"{device}/neuron_core{core}/stats/other_info/reset_fail_count/total", "0\n")
    return tmp_path


def test_it_reads_a_device(root):
    found = json.loads(neuron.neuron_sysfs(str(root)))
    assert found["driver"] == "2.24.7.0"
    assert found["devices"]["3"] == {
        "core_count": "2",
        "connected_devices": "15, 2, 7, 0",
        "serial": "5a00ff00c0de0003",
        "sram_ecc_uncorrected": "0",
        "mem_ecc_uncorrected": "0",
        "counters": {"timeout": 4, "reset_fail_count": 0},
    }


def test_a_file_that_a_later_driver_moved_is_found(root):
    old = root / neuron.CLASS / "neuron3/stats/hardware/mem_ecc_uncorrected"
    old.unlink()
    write(root, f"{neuron.CLASS}/neuron3/hardware/ecc/mem_ecc_uncorrected", "7\n")
    write(root, f"{neuron.CLASS}/neuron3/stats/memory_usage/mem_ecc_uncorrected", "9\n")
    assert json.loads(neuron.neuron_sysfs(str(root)))["devices"]["3"]["mem_ecc_uncorrected"] == "7"


def test_presence(root, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    assert neuron.present(str(root))
    assert not neuron.present(str(empty))
    assert json.loads(neuron.neuron_sysfs(str(empty))) == {"driver": None, "devices": {}}
