"""The sampler over a made /sys, and what its samples mean."""

import json
import time

import pytest

from flightline_node.watch import samples
from tests.unit.made import program


def device(root, name, state="4: ACTIVE", drops=0):
    base = root / "sys/class/infiniband" / name
    port = base / "ports/1"
    (port / "hw_counters").mkdir(parents=True, exist_ok=True)
    (port / "state").write_text(state + "\n")
    (port / "phys_state").write_text("5: LinkUp\n")
    (port / "hw_counters/rx_drops").write_text(f"{drops}\n")
    drivers = root / "sys/bus/pci/drivers/efa"
    drivers.mkdir(parents=True, exist_ok=True)
    (base / "device").mkdir(exist_ok=True)
    if not (base / "device/driver").is_symlink():
        (base / "device/driver").symlink_to(drivers)


@pytest.fixture
def feed(scene, tmp_path):
    root = tmp_path / "root"
    for number in range(32):
        device(root, f"rdmap{number}s0")
    made = samples.SampleFeed(scene.rules(), str(root), f"{scene.tools}:/usr/bin:/bin", 0.1, 0.1)
    yield made
    made.close()


def until(feed, most_s=60.0, wanted=bool):
    end, found = time.monotonic() + most_s, []
    while time.monotonic() < end and not wanted(found):
        found += feed.step(feed.fd is not None, time.monotonic())
        time.sleep(0.01)
    return found


def learn(feed):
    """Until it has looked at everything once."""
    until(feed, wanted=lambda found: found or {"efa_counters", "sysfs"} <= set(feed._facts))


def test_a_healthy_node_finds_nothing(feed):
    learn(feed)
    assert until(feed, 1.0) == []
    assert feed._facts["efa_counters"]["count"] == 32
    assert set(feed._facts["sysfs"]) >= {"efa_ports", "edac"}


def test_a_port_that_went_down_is_found(feed, tmp_path):
    device(tmp_path / "root", "rdmap3s0", "1: DOWN")
    found = until(feed)
    assert found[0].check == "efa_ports"
    assert found[0].device["name"] == "rdmap3s0"


def test_a_device_that_is_gone_is_found(feed, tmp_path):
    import shutil

    learn(feed)
    shutil.rmtree(tmp_path / "root/sys/class/infiniband/rdmap3s0")
    assert {one.check for one in until(feed)} == {"efa_count"}


def test_errors_that_grow_are_counted_and_drain_nobody(feed, tmp_path):
    learn(feed)
    device(tmp_path / "root", "rdmap3s0", drops=7)
    counted = {}
    assert until(feed, wanted=lambda found: found or counted.update(feed.counts()) or counted.get("efa_errors")) == []
    assert counted == {"efa_errors": 7}
    assert feed.counts() == {"efa_errors": 0}


def test_dcgms_failure_is_found_where_a_host_engine_runs(feed, scene):
    """Simulated dcgmi; the shape of its answer after DCGM 4's dcgmi/Health.cpp."""
    incident = {"value": "Failure", "overflow": ["Detected a row remap failure"]}
    errors = {"Errors": {"children": {"Memory": incident}}}
    body = {"Overall Health": {"value": "Failure"}, "GPU": {"children": {"3": {"children": errors}}}}
    program(scene.tools / "dcgmi", f"cat <<'EOF'\n{json.dumps({'body': body})}\nEOF")
    found = until(feed)
    assert {one.check for one in found} == {"dcgm_health"}
    assert found[0].device["index"] == 3


def test_a_dcgm_without_watches_or_engine_is_nothing(feed, scene):
    said = "Error: unable to establish a connection to the specified host: localhost"
    program(scene.tools / "dcgmi", f"echo '{said}'\nexit 1")
    assert until(feed, 1.0) == []
