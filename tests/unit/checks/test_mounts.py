"""mounts: declared ones there or not, an automount, read-only disks and read-only bind mounts."""

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status
from tests.unit.parsers.hosttools import read

FSX = {"mounts": read("mounts", "proc/fsx-mounts.txt")}


def table(*rows):
    keys = ("source", "mount", "fstype", "options")
    return {"mounts": {"mounts": [dict(zip(keys, row, strict=True)) for row in rows]}}


def test_present():
    finding = only(judge_facts("mounts", FSX, expected={"mounts": ["/fsx/", "/scratch"]}), Status.PASS)
    assert finding.message.startswith("2 declared mounts")


def test_missing():
    finding = only(judge_facts("mounts", FSX, expected={"mounts": ["/fsx", "/checkpoints"]}), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"mount": "/checkpoints"}, Remedy.FIX_CONFIG)


def test_automount_is_not_proven():
    assert only(judge_facts("mounts", FSX, expected={"mounts": ["/efs"]}), Status.WARN).device == {"mount": "/efs"}


def test_healthy_machine_with_nothing_declared():
    assert status(judge_facts("mounts", {"mounts": read("mounts", "proc/debian12-mounts.txt")})) is Status.PASS
    assert status(judge_facts("mounts", FSX)) is Status.PASS  # /srv/shared data is a read-only bind mount


def test_read_only_root():
    rows = table(("/dev/nvme0n1p1", "/", "ext4", ["ro", "relatime"]))
    finding = only(judge_facts("mounts", rows), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"mount": "/"}, Remedy.REPLACE)


def test_other_read_only_disk():
    root = ("/dev/nvme0n1p1", "/", "ext4", ["rw"])
    rows = table(root, ("/dev/md0", "/scratch", "xfs", ["ro"]), ("/dev/sdb", "/boot", "ext4", ["ro"]))
    assert only(judge_facts("mounts", rows), Status.WARN).device == {"mount": "/scratch"}
    assert status(judge_facts("mounts", rows, expected={"mounts": ["/scratch"]})) is Status.FAIL


def test_ext4_since_linux_6_15_keeps_rw_after_an_error():
    for option in ("emergency_ro", "shutdown"):
        rows = table(("/dev/nvme0n1p1", "/", "ext4", ["rw", "relatime", option]))
        assert only(judge_facts("mounts", rows), Status.FAIL).device == {"mount": "/"}
    policy = table(("/dev/nvme0n1p1", "/", "ext4", ["rw", "errors=remount-ro"]))
    assert status(judge_facts("mounts", policy)) is Status.PASS


def test_unknown():
    assert status(judge_facts("mounts", {"mounts": BROKEN})) is Status.UNKNOWN
