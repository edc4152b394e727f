"""fio's JSON: bytes and nanoseconds of fio 3, KiB and microseconds of fio 2, notes before it, failed jobs."""

import subprocess

import pytest

from flightline_node.ask.probes import BY_ID
from tests.harness import sample
from tests.unit.parsers.hosttools import parse, read


def test_recorded_read():
    facts = read("fio", "fio/debian12-read.json")
    (job,) = facts["jobs"]
    assert facts["fio_version"] == "fio-3.33"
    assert (job["name"], job["rw"], job["error"]) == ("seq-read", "read", 0)
    assert job["bw_bytes_s"] == 1177348491
    assert job["lat_mean_us"] == 877.907
    assert job["lat_p99_us"] == 17432.576


def test_recorded_mixed_job_has_both_directions():
    jobs = read("fio", "fio/debian12-randrw.json")["jobs"]
    assert [(job["name"], job["rw"]) for job in jobs] == [("rand", "read"), ("rand", "write")]
    assert jobs[0]["iops"] == pytest.approx(14977.443609)


def test_notes_before_and_after():
    noisy = (
        b"fio: this platform does not support process shared mutexes\n" + sample("fio/debian12-read.json") + b"\nbye\n"
    )
    assert parse("fio", noisy) == read("fio", "fio/debian12-read.json")


def test_fio_2_units_and_failed_job():
    good, broken = read("fio", "fio/fio2-read.json")["jobs"]
    assert (good["bw_bytes_s"], good["lat_mean_us"], good["lat_p99_us"]) == (2147483648, 488.25, 900)
    assert (broken["rw"], broken["error"]) == (None, 5)


def run_probe(root, *, disks):
    """The probe's script on a tree with these disks; fio itself is replaced by one that prints its arguments."""
    for name, model in disks.items():
        folder = root / "sys/block" / name / "device"
        folder.mkdir(parents=True)
        (folder / "model").write_text(f"{model}\n")
    tools = root / "tools"
    tools.mkdir()
    (tools / "fio").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tools / "fio").chmod(0o755)
    script = BY_ID["fio"].commands[0][2].replace("{root}", str(root))
    path = {"PATH": f"{tools}:/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=path, check=False)


def test_probe_reads_instance_store_disks_only(tmp_path):
    store, ebs = "Amazon EC2 NVMe Instance Storage        ", "Amazon Elastic Block Store"
    done = run_probe(tmp_path, disks={"nvme0n1": ebs, "nvme1n1": store, "nvme2n1": store})
    given = done.stdout.splitlines()
    assert done.returncode == 0
    assert "--readonly" in given
    assert "--rw=read" in given
    assert [word for word in given if word.startswith("--filename")] == [
        "--filename=/dev/nvme1n1",
        "--filename=/dev/nvme2n1",
    ]


def test_probe_without_disks_says_so(tmp_path):
    done = run_probe(tmp_path, disks={})
    assert (done.returncode, done.stderr) == (1, "no instance-store disk\n")
