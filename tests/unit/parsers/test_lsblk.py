"""lsblk -J: numbers or strings, one mount point or a list, RAID members, sizes with a suffix."""

from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    devices = {item["name"]: item for item in read("lsblk", "lsblk/debian12.json")["devices"]}
    assert devices["vda"]["size_bytes"] == 274877906944
    assert (devices["vda"]["type"], devices["vda"]["mountpoint"], devices["vda"]["model"]) == ("disk", "/", None)
    assert devices["vda"]["rotational"] is True


def test_raid_is_one_device_with_eight_parents():
    devices = {item["name"]: item for item in read("lsblk", "lsblk/p4d-strings.json")["devices"]}
    assert len(devices) == 11
    assert devices["nvme3n1"]["model"] == "Amazon EC2 NVMe Instance Storage"
    assert devices["nvme3n1"]["size_bytes"] == 1000204886016
    assert devices["md0"]["parents"] == [f"nvme{number}n1" for number in range(1, 9)]
    assert devices["md0"]["mountpoint"] == "/scratch"
    assert devices["nvme0n1"]["rotational"] is False


def test_lists_of_mount_points():
    devices = {item["name"]: item for item in read("lsblk", "lsblk/g5-mountpoints.json")["devices"]}
    assert devices["nvme0n1"]["mountpoint"] is None
    assert devices["nvme0n1p1"]["mountpoint"] == "/"
    assert devices["nvme1n1"]["mountpoint"] == "/opt/dlami/nvme"


def test_sizes_with_a_suffix():
    facts = parse("lsblk", '{"blockdevices": [{"name": "a", "size": "3.5T"}, {"name": "b", "size": "lots"}]}')
    assert [item["size_bytes"] for item in facts["devices"]] == [int(3.5 * 1024**4), None]
