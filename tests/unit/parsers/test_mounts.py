"""/proc/mounts, mount, findmnt as a tree and as JSON."""

import pytest

from tests.unit.parsers.hosttools import read


def of(facts, mount):
    return next(entry for entry in facts["mounts"] if entry["mount"] == mount)


@pytest.mark.parametrize("file", ["mounts.txt", "mount.txt", "findmnt.txt", "findmnt.json"])
def test_recorded_forms_agree(file):
    facts = read("mounts", f"proc/debian12-{file}")
    root = of(facts, "/")
    assert (root["source"], root["fstype"], root["options"][:2]) == ("/dev/vda", "ext4", ["rw", "relatime"])
    assert of(facts, "/dev/pts")["fstype"] == "devpts"
    assert {entry["mount"] for entry in facts["mounts"]} == {
        entry["mount"] for entry in read("mounts", "proc/debian12-mounts.txt")["mounts"]
    }


def test_escapes_and_network_file_systems():
    facts = read("mounts", "proc/fsx-mounts.txt")
    assert of(facts, "/srv/shared data")["options"][0] == "ro"
    assert of(facts, "/fsx")["source"] == "10.0.1.23@tcp:/abcdefgh"
    assert of(facts, "/efs")["fstype"] == "autofs"
