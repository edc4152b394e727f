"""sysfs.json and its reader."""

import json
import os

from flightline_node.ask.sysfs import sysfs as read_sysfs
from tests.unit.parsers.hosttools import parse, read


def tree(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def test_recorded():
    facts = read("sysfs", "sysfs/debian12.json")
    assert facts == {
        "efa_ports": {},
        "cpufreq": [],
        "edac": {},
        "net": {"eth0": {"mtu": 1400, "operstate": "up", "driver": "virtio_net"}},
    }


def test_states_lose_their_number():
    device = read("sysfs", "sysfs/p5.json")["efa_ports"]["rdmap79s0"]
    assert device == {
        "ports": {"1": {"state": "ACTIVE", "phys_state": "LinkUp", "rate": "100 Gb/sec (4X EDR)"}},
        "p2p": "NVIDIA",
    }


def test_an_error_keeps_its_text():
    facts = read("sysfs", "sysfs/p5-port-down.json")["efa_ports"]
    assert facts["rdmap80s0"]["ports"]["1"]["state"] == "error: Input/output error"
    assert parse("sysfs", '{"net": {"eth0": {"mtu": "error: Invalid argument"}}}')["net"]["eth0"]["mtu"][:5] == "error"


def test_counters_and_policies():
    facts = read("sysfs", "sysfs/g4dn-metal.json")
    assert (facts["edac"]["mc1"]["ue_count"], facts["edac"]["mc1"]["ce_count"]) == (2, 412)
    assert facts["cpufreq"] == [{"driver": "acpi-cpufreq", "governor": "powersave", "epp": None, "policies": 96}]


def test_a_section_that_was_not_read_is_absent():
    assert parse("sysfs", '{"edac": {}}') == {"edac": {}}


def test_reader(tmp_path):
    tree(
        tmp_path,
        {
            "sys/class/infiniband/rdmap79s0/ports/1/state": "4: ACTIVE\n",
            "sys/class/infiniband/rdmap79s0/ports/1/phys_state": "5: LinkUp\n",
            "sys/class/infiniband/rdmap79s0/device/p2p": "NVIDIA\n",
            "sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n",
            "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
            "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
            "sys/devices/system/cpu/cpufreq/boost": "1\n",
            "sys/devices/system/edac/mc/mc0/ue_count": "0\n",
            "sys/class/net/ens5/mtu": "9001\n",
            "sys/class/net/docker0/mtu": "1500\n",
            "sys/module/nvidia/taint": "OE\n",
        },
    )
    link(tmp_path / "sys/class/infiniband/rdmap79s0/device/driver", "../../../../bus/pci/drivers/efa")
    link(tmp_path / "sys/class/infiniband/mlx5_0/device/driver", "../../../../bus/pci/drivers/mlx5_core")
    link(tmp_path / "sys/class/net/ens5/device/driver", "../../../../bus/pci/drivers/ena")
    written = json.loads(read_sysfs(str(tmp_path)))
    assert written == {
        "efa_ports": {
            "rdmap79s0": {"ports": {"1": {"state": "4: ACTIVE", "phys_state": "5: LinkUp"}}, "p2p": "NVIDIA"}
        },
        "cpufreq": [{"driver": None, "governor": "performance", "epp": None, "policies": 2}],
        "edac": {"mc0": {"ue_count": "0"}},
        "net": {"ens5": {"mtu": "9001", "driver": "ena"}},
        "nvidia_taint": "OE",
    }


def test_reader_tells_what_it_cannot_read(tmp_path):
    port = tmp_path / "sys/class/infiniband/rdmap79s0/ports/1"
    (port / "state").mkdir(parents=True)  # opening a directory for reading fails, like a device that is gone
    link(tmp_path / "sys/class/infiniband/rdmap79s0/device/driver", "../../../../bus/pci/drivers/efa")
    ports = json.loads(read_sysfs(str(tmp_path)))["efa_ports"]["rdmap79s0"]["ports"]
    assert ports == {"1": {"state": f"error: {os.strerror(21)}"}}


def test_reader_of_a_bare_root(tmp_path):
    assert parse("sysfs", read_sysfs(str(tmp_path))) == {"efa_ports": {}, "cpufreq": [], "edac": {}, "net": {}}


def test_clock_source_lustre_network_and_arrays():
    facts = read("sysfs", "sysfs/p5-storage.json")
    assert facts["clocksource"] == {"current": "tsc", "available": "tsc kvm-clock hpet acpi_pm"}
    assert facts["lnet"] == {"nets": {"lo": {"up": 1, "down": []}, "tcp": {"up": 1, "down": []}}}
    assert [(array["name"], array["level"], len(array["members"]), array["failed"]) for array in facts["md"]] == [
        ("md127", "raid0", 8, []),
        ("md1", "raid1", 2, ["sdb1"]),
    ]


def test_reader_of_clock_source_lustre_and_arrays(tmp_path):
    clocks = "sys/devices/system/clocksource/clocksource0"
    tree(
        tmp_path,
        {
            f"{clocks}/current_clocksource": "kvm-clock\n",
            "sys/module/lnet/version": "2.15\n",
            "proc/mdstat": "Personalities :\nunused devices: <none>\n",
        },
    )
    facts = parse("sysfs", read_sysfs(str(tmp_path)))
    assert (facts["clocksource"]["current"], facts["lnet"], facts["md"]) == ("kvm-clock", {"nets": None}, [])


def test_reader_of_the_boots(tmp_path):
    def record(kind, seconds):
        return kind.to_bytes(2, "little") + bytes(338) + seconds.to_bytes(4, "little") + bytes(40)

    wtmp = tmp_path / "var/log/wtmp"
    wtmp.parent.mkdir(parents=True)
    wtmp.write_bytes(record(2, 1000) + record(7, 1500) + record(1, 1600) + record(2, 2000))
    assert parse("sysfs", read_sysfs(str(tmp_path)))["boots"] == [1000, 2000]
    wtmp.write_bytes(record(2, 1000) + b"cut")
    assert "boots" not in json.loads(read_sysfs(str(tmp_path)))
