"""The table of causes against what the checks really say of simulated nodes: one root, and the rest explained."""

from __future__ import annotations

import pytest

from flightline.demo import FAULTS, prepare
from flightline.fleet import causes
from flightline_node import node, settings
from flightline_node.ask.runner import Node
from flightline_node.know.expected import resolve

WANTED = {
    "gpu_fallen_off_bus": [("gpu_lost", "gpu_off_bus")],
    "gpu_missing": [("gpu_lost", "gpu_off_bus")],
    "driver_not_loaded": [("gpu_lost", "driver_not_loaded")],
    "driver_not_rebooted": [("gpu_lost", "driver_mismatch")],
    "tool_hung": [("gpu_count", "smi_silent")],
    "tool_garbage": [("gpu_count", "not_measured")],
    "kernel_log_denied": [("gpu_lost", "not_measured")],
    "efa_missing": [("pci_devices", "efa_lost")],
    "efa_no_provider": [("efa_provider", "efa_endpoint")],
    "remap_pending": [("row_remap", "gpu_memory")],
    "fabric_manager_dead": [("fabric_manager", "fabric_manager")],
    "disk_full": [("disk_space", "")],
}


@pytest.mark.parametrize("fault", WANTED)
def test_a_fault_is_one_trouble_with_its_root(tmp_path, fault):
    kind, place = FAULTS[fault].type, tmp_path / fault
    prepare({fault: {"demo_dir": str(place), "instance_type": kind, "demo_faults": [fault]}})
    machine = Node(f"{place}/root", (f"{place}/tools",))
    record = node.run(machine, resolve(kind), settings.build(), node.Identity(fault))
    found = causes.troubles(record["findings"])
    assert [(one.root["check"], one.cause) for one in found] == WANTED[fault]
