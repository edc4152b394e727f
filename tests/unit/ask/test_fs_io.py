"""The write-and-read test on real files of this machine: content, bounds, what it refuses, and that nothing stays."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flightline_node.ask.active import fs_io
from flightline_node.ask.active.fs_io import BLOCK, Bounds, measure, targets

FEW = Bounds(4 * BLOCK, 30.0)


def test_content_comes_back(tmp_path):
    found = measure(str(tmp_path), FEW)
    assert found["verified"] is True
    assert found["written_bytes"] == found["read_bytes"] == 4 * BLOCK
    assert found["write_mb_s"] > 0
    assert found["read_mb_s"] > 0
    assert "wrong" not in found
    assert list(tmp_path.iterdir()) == []


def test_it_stops_when_the_time_is_over(tmp_path):
    assert measure(str(tmp_path), Bounds(1 << 40 >> 10, 0.0))["written_bytes"] == BLOCK


@pytest.mark.parametrize("position", [0, fs_io.STAMP_BYTES, BLOCK + 3, 4 * BLOCK - 1])
def test_one_wrong_byte_is_found(tmp_path, monkeypatch, position):
    read = os.preadv

    def spoiled(handle, buffers, offset):
        done = read(handle, buffers, offset)
        if offset <= position < offset + BLOCK:
            buffers[0][position - offset] ^= 0x40
        return done

    monkeypatch.setattr(os, "preadv", spoiled)
    found = measure(str(tmp_path), FEW)
    assert found["verified"] is False
    assert found["wrong"].startswith(f"byte {position}: wrote 0x")


def test_a_block_in_another_s_place_is_found(tmp_path, monkeypatch):
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda handle, buffers, offset: read(handle, buffers, 0))
    assert measure(str(tmp_path), FEW)["wrong"].startswith(f"byte {BLOCK}:")


def test_a_file_system_that_it_would_fill_is_refused(tmp_path, monkeypatch):
    class Nearly:
        f_blocks, f_bavail, f_frsize = 1000 << 20, 40 << 20, 1024

    monkeypatch.setattr(os, "statvfs", lambda _: Nearly)
    monkeypatch.setattr(fs_io, "nameless", lambda *_: pytest.fail("written in spite of it"))
    assert measure(str(tmp_path), fs_io.SHORT) == {"refused": "40960 of 1024000 MiB free: nearly full"}


@pytest.mark.parametrize(
    ("free_mib", "written"), [(1 << 20, 1 << 30), (1000, 100 << 20), (100, 0)], ids=["roomy", "small", "tiny"]
)
def test_it_takes_a_small_share_of_what_is_free(monkeypatch, free_mib, written):
    class State:
        f_blocks, f_bavail, f_frsize = 2 * free_mib, free_mib, 1 << 20

    monkeypatch.setattr(os, "statvfs", lambda _: State)
    assert fs_io.room("/", fs_io.SHORT)[0] == written


def test_a_place_that_may_not_be_written_to_is_no_fault(root, monkeypatch):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(fs_io, "nameless", denied)
    found = {target["mount"]: target for target in fs_io.run(str(root), FEW)["targets"]}
    assert found["/fsx"]["refused"] == f"not writable by user {os.geteuid()}: Permission denied"


def test_without_o_tmpfile_the_name_is_gone_at_once(tmp_path, monkeypatch):
    opened = os.open

    def old(path, flags, mode=0o777):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", old)
    handle = fs_io.nameless(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert os.write(handle, b"still a file") == 12
    os.close(handle)


def test_where_direct_is_not_possible_nothing_stays_either(tmp_path, monkeypatch):
    """As on a tmpfs of older kernels: the file is made, and then the opening fails."""
    opened = os.open

    def old(path, flags, mode=0o777):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        handle = opened(path, flags & ~os.O_DIRECT, mode)
        if flags & os.O_DIRECT:
            os.close(handle)
            raise OSError(errno.EINVAL, "Invalid argument")
        return handle

    monkeypatch.setattr(os, "open", old)
    found = measure(str(tmp_path), FEW)
    assert (found["direct"], found["verified"]) == (False, True)
    assert list(tmp_path.iterdir()) == []


def test_killed_in_the_middle_it_leaves_nothing(tmp_path):
    """SIGKILL while it writes: the kernel frees the file, which has no name."""
    code = (
        "import sys; from flightline_node.ask.active.fs_io import measure, Bounds\n"
        "import os; write = os.pwrite\n"
        "def told(*a):\n    done = write(*a); print('written', flush=True); return done\n"
        "os.pwrite = told\n"
        "measure(sys.argv[1], Bounds(1 << 30, 60.0))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(fs_io.__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout.readline() == "written\n"
    process.kill()
    process.wait()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def root(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text(
        "/dev/nvme0n1p1 / xfs rw 0 0\n"
        "10.0.0.9@tcp:/abc /fsx lustre rw,flock 0 0\n"
        "10.0.0.9@tcp:/def /reference lustre ro,flock 0 0\n"
        "server:/home /home nfs4 rw 0 0\n"
        "/dev/md0 /scratch ext4 rw 0 0\n"
    )
    for mount in ("fsx", "reference", "home", "scratch"):
        (tmp_path / mount).mkdir()
    return tmp_path


def block_device(root, model):
    """/dev/md0 of one disk, as sysfs shows it, under the number of the device that the test's files are on."""
    number = (root / "scratch").stat().st_dev
    block = root / "sys/class/block"
    (block / "md0/slaves/nvme1n1").mkdir(parents=True)
    (block / "nvme1n1/device").mkdir(parents=True)
    (block / "nvme1n1/device/model").write_text(model)
    link = root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../class/block/md0")


def test_lustre_and_named_mounts_are_tested_others_are_not(root):
    found = {target["mount"]: target for target in targets(str(root), ["/home", "/data"])}
    assert {mount: target["kind"] for mount, target in found.items()} == {
        "/fsx": "lustre", "/reference": "lustre", "/home": "named", "/data": "named",
    }  # fmt: skip
    assert found["/reference"]["refused"] == "mounted read-only"
    assert found["/data"]["error"] == "not mounted"


@pytest.mark.parametrize(
    ("model", "tested"), [("Amazon EC2 NVMe Instance Storage        ", True), ("Amazon Elastic Block Store", False)]
)
def test_a_raid_of_instance_store_disks_is_tested(root, model, tested):
    block_device(root, model)
    kinds = {target["mount"]: target["kind"] for target in targets(str(root), [])}
    assert (kinds.get("/scratch") == "instance-store") is tested


def test_a_partition_counts_as_its_disk(root):
    disks = root / "sys/class/block/nvme2n1p1"
    disks.mkdir(parents=True)
    assert list(fs_io._disks(str(disks.parent), "nvme2n1p1")) == ["nvme2n1"]


def test_run_tests_each_and_an_error_costs_only_its_own(root, monkeypatch):
    (root / "home").rmdir()
    report = {target["mount"]: target for target in fs_io.run(str(root), FEW, ["/home"])["targets"]}
    assert report["/fsx"]["verified"] is True
    assert report["/home"]["error"].startswith("No such file or directory")
    assert "verified" not in report["/reference"]


def test_a_simulated_node_answers_from_its_file(tmp_path):
    (tmp_path / "run/flightline").mkdir(parents=True)
    (tmp_path / "run/flightline/fs-io.json").write_text('{"targets": []}')
    for reader in (fs_io.short, fs_io.long):
        assert json.loads(reader(str(tmp_path), ["/nowhere"])) == {"targets": []}


def test_reading_is_bounded_too(tmp_path, monkeypatch):
    clock, read = [0.0], os.preadv

    def slow(handle, buffers, offset):
        clock[0] += 60.0
        return read(handle, buffers, offset)

    monkeypatch.setattr(os, "preadv", slow)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    found = measure(str(tmp_path), FEW)
    assert found["read_bytes"] == 2 * BLOCK < found["written_bytes"]
