"""disk_space: full root, no inodes, roomy scratch, images full by design, a mount that does not answer."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status
from tests.unit.parsers.hosttools import read

GIB = 1 << 20


def fs(mount, percent, **rest):
    return {"mount": mount, "filesystem": f"/dev{mount}x", "size_kib": 200 * GIB, "used_percent": percent, **rest}


def df(*entries, errors=()):
    return {"df": {"filesystems": list(entries), "errors": list(errors)}}


def mounts(*entries):
    return {"mounts": {"mounts": [dict(zip(("mount", "fstype", "options"), e, strict=True)) for e in entries]}}


def test_recorded_machine():
    finding = only(
        judge_facts("disk_space", {"df": read("df", "df/debian12-kP.txt", "df/debian12-iP.txt")}), Status.PASS
    )
    assert "1 local file systems: / at" in finding.message


@pytest.mark.parametrize(
    ("percent", "wanted"), [(0, "PASS"), (89, "PASS"), (90, "WARN"), (94, "WARN"), (95, "FAIL"), (100, "FAIL")]
)
def test_root(percent, wanted):
    assert status(judge_facts("disk_space", df(fs("/", percent, available_kib=500 * GIB)))) == wanted


def test_full_disk_and_inodes_are_two_findings():
    findings = judge_facts("disk_space", {"df": read("df", "df/full-kP.txt", "df/full-iP.txt")})
    assert [(f.status, f.device, f.measured) for f in findings] == [(Status.FAIL, {"mount": "/"}, 100)] * 2
    assert findings[0].remedy is Remedy.FIX_CONFIG
    assert "inodes" in findings[1].message


def test_scratch_with_room_left_only_warns():
    roomy, tight = fs("/scratch", 96, available_kib=900 * GIB), fs("/scratch", 96, available_kib=40 * GIB)
    assert status(judge_facts("disk_space", df(fs("/", 10), roomy))) is Status.WARN
    assert status(judge_facts("disk_space", df(fs("/", 10), tight))) is Status.FAIL


def test_what_is_full_by_design_or_not_ours():
    entries = [
        fs("/", 30),
        fs("/snap/core20", 100, filesystem="/dev/loop0"),
        fs("/mnt/image", 100, filesystem="/dev/sr0"),
        fs("/dev/shm", 100, filesystem="tmpfs"),
        fs("/var/lib/kubelet/pods/x/volumes/y", 100),
        fs("/boot/efi", 100),
        fs("/var/lib/docker/overlay2/m", 100, filesystem="overlay"),
        fs("/data/reference", 100),
        fs("/proc/sys/fs/binfmt_misc", None, size_kib=None),
    ]
    mounted = mounts(("/mnt/image", "iso9660", ["ro"]), ("/data/reference", "xfs", ["ro", "noatime"]))
    assert status(judge_facts("disk_space", {**df(*entries), **mounted})) is Status.PASS


def test_full_overlay_root_counts():
    assert status(judge_facts("disk_space", df(fs("/", 99, filesystem="overlay")))) is Status.FAIL


def test_bind_mounts_are_one_disk():
    twice = [fs("/scratch", 97, filesystem="/dev/md0"), fs("/var/lib/containers", 97, filesystem="/dev/md0")]
    assert only(judge_facts("disk_space", df(fs("/", 3), *twice)), Status.FAIL).device == {"mount": "/scratch"}


def test_wrapped_fixture_names_the_stale_mount():
    findings = judge_facts("disk_space", {"df": read("df", "df/wrapped.txt")})
    assert "Stale file handle" in only(findings, Status.FAIL).message
    assert only(findings, Status.WARN).device == {"mount": "/opt/dlami/nvme"}


@pytest.mark.parametrize("given", [{"df": BROKEN}, {}, df(), df(fs("/", None))])
def test_unknown(given):
    assert status(judge_facts("disk_space", given)) is Status.UNKNOWN


def test_thresholds():
    given = df(fs("/", 80))
    assert (
        status(
            judge_facts("disk_space", given, thresholds={"disk_space.fail_percent": 80, "disk_space.warn_percent": 70})
        )
        is Status.FAIL
    )


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"type": "ext4"}, Status.FAIL),
        ({"type": "ext4", "filesystem": "UUID=0a"}, Status.FAIL),
        ({"type": "tmpfs"}, Status.PASS),
        ({"type": "nfs4", "filesystem": "10.0.0.4:/x"}, Status.PASS),
        ({"type": "squashfs"}, Status.PASS),
        ({"type": "ext4", "filesystem": "/dev/loop3"}, Status.PASS),
    ],
)
def test_the_type_that_df_prints_tells_what_is_local(entry, wanted):
    assert status(judge_facts("disk_space", df(fs("/", 3), fs("/data", 100, **entry)))) is wanted


def test_the_type_of_the_mount_table_where_df_prints_none():
    lustre = mounts(("/data", "lustre", ["rw"]))
    assert status(judge_facts("disk_space", {**df(fs("/", 3), fs("/data", 100)), **lustre})) is Status.PASS
    local = mounts(("/data", "xfs", ["rw"]))
    assert status(judge_facts("disk_space", {**df(fs("/", 3), fs("/data", 100)), **local})) is Status.FAIL


@pytest.mark.parametrize(("percent", "wanted", "limit"), [(90, Status.WARN, 90), (95, Status.FAIL, 95)])
def test_the_limit_that_was_passed_is_named(percent, wanted, limit):
    finding = only(judge_facts("disk_space", df(fs("/", percent))), wanted)
    assert (finding.expected, finding.message) == (limit, f"/ is {percent}% full, wanted under {limit}%")


@pytest.mark.parametrize(("free_kib", "wanted"), [(100 * GIB, Status.WARN), (100 * GIB - 1, Status.FAIL)])
def test_a_data_disk_with_a_hundred_gib_left_does_not_block(free_kib, wanted):
    data = fs("/scratch", 99, available_kib=free_kib)
    assert status(judge_facts("disk_space", df(fs("/", 3), data))) is wanted
