"""fio_disk: no floor set, floor kept or missed, a job that failed or moved nothing."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

READ = {"fio": read("fio", "fio/debian12-read.json")}


def test_without_a_floor_it_only_informs():
    finding = only(judge_facts("fio_disk", READ), Status.INFO)
    assert (finding.measured, finding.unit) == (1.177, "GB/s")


def test_floor():
    assert status(judge_facts("fio_disk", READ, thresholds={"fio_disk.min_read_gb_s": 1})) is Status.PASS
    slow = only(judge_facts("fio_disk", READ, thresholds={"fio_disk.min_read_gb_s": 2}), Status.FAIL)
    assert (slow.expected, slow.remedy) == (2, Remedy.REPLACE)
    assert status(judge_facts("fio_disk", READ, thresholds={"fio_disk.min_write_gb_s": 2})) is Status.INFO


def test_one_finding_per_slow_disk_only():
    jobs = [{"name": f"nvme{n}n1", "rw": "read", "error": 0, "bw_bytes_s": 7e9 if n else 1e9} for n in range(8)]
    floor = {"fio_disk.min_read_gb_s": 3}
    slow = only(judge_facts("fio_disk", {"fio": {"jobs": jobs}}, thresholds=floor), Status.FAIL)
    assert (slow.device, slow.measured) == ({"name": "nvme0n1"}, 1.0)
    (all_well,) = judge_facts("fio_disk", {"fio": {"jobs": jobs[1:]}}, thresholds=floor)
    assert all_well.status is Status.PASS


def test_not_run():
    assert status(judge_facts("fio_disk", {}, "g5g.xlarge")) is Status.SKIP
    assert status(judge_facts("fio_disk", {}, "none")) is Status.SKIP
    assert status(judge_facts("fio_disk", READ, "none")) is Status.INFO


def test_failed_job():
    findings = judge_facts("fio_disk", {"fio": read("fio", "fio/fio2-read.json")})
    assert "error 5" in only(findings, Status.FAIL).message


def test_nothing_moved_is_unknown():
    idle = {"fio": {"jobs": [{"name": "a", "rw": None, "error": 0}]}}
    assert status(judge_facts("fio_disk", idle)) is Status.UNKNOWN


def written(bandwidth, **changes):
    return {"fio": {"jobs": [{"name": "nvme1n1", "rw": "write", "error": 0, "bw_bytes_s": bandwidth, **changes}]}}


def test_the_floor_is_the_least_that_passes():
    floor = {"fio_disk.min_write_gb_s": 2}
    assert status(judge_facts("fio_disk", written(2e9), thresholds=floor)) is Status.PASS
    assert only(judge_facts("fio_disk", written(1.999e9), thresholds=floor), Status.FAIL).measured == 1.999
    assert status(judge_facts("fio_disk", written(5e8))) is Status.INFO  # no floor is set


@pytest.mark.parametrize("job", [written(0), written(None), written(2e9, rw=None)])
def test_a_job_without_a_figure_or_a_direction_moved_nothing(job):
    assert "moved no data" in only(judge_facts("fio_disk", job), Status.UNKNOWN).message


def disks(*speeds):
    return [{"name": f"nvme{n}n1", "rw": "read", "error": 0, "bw_bytes_s": speed} for n, speed in enumerate(speeds, 1)]


@pytest.mark.parametrize(("speed", "wanted"), [(0.3e9, Status.FAIL), (2.5e9, Status.WARN), (4.5e9, Status.INFO)])
def test_a_disk_beside_the_nodes_others(speed, wanted):
    finding = only(judge_facts("fio_disk", {"fio": {"jobs": disks(*[5.4e9] * 7, speed)}}), wanted)
    if wanted is not Status.INFO:
        assert (finding.device, finding.measured) == ({"name": "nvme8n1"}, speed / 1e9)
        assert finding.expected > finding.measured


@pytest.mark.parametrize(
    ("jobs", "instance_type"),
    [
        (disks(5e9, 0.2e9, 5e9), "p5.48xlarge"),  # too few to tell
        (disks(*[5e9] * 8, 0.2e9), "p5.48xlarge"),  # one more than the type has: the root volume
        (disks(*[5e9] * 7, 0.2e9), "none"),
        ([{**job, "name": f"job{n}"} for n, job in enumerate(disks(5e9, 5e9, 5e9, 5e9, 0.2e9))], "p5.48xlarge"),
        ([*disks(5e9, 5e9, 5e9, 5e9), {**disks(0.2e9)[0], "rw": "write"}], "p5.48xlarge"),
    ],
)
def test_what_cannot_be_compared(jobs, instance_type):
    assert status(judge_facts("fio_disk", {"fio": {"jobs": jobs}}, instance_type)) is Status.INFO


@pytest.mark.parametrize(
    ("speed", "wanted"), [(6e9, Status.INFO), (5.99e9, Status.WARN), (2.5e9, Status.WARN), (2.49e9, Status.FAIL)]
)
def test_forty_percent_behind_three_others_warns_and_seventy_five_fails(speed, wanted):
    assert status(judge_facts("fio_disk", {"fio": {"jobs": disks(10e9, 10e9, 10e9, speed)}})) is wanted
