"""fio_disk: no floor set, floor kept or missed, a job that failed or moved nothing."""

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status
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
    assert status(judge_facts("fio_disk", {})) is Status.UNKNOWN
    assert status(judge_facts("fio_disk", {}, "g5g.xlarge")) is Status.SKIP
    assert status(judge_facts("fio_disk", {}, "none")) is Status.SKIP
    assert status(judge_facts("fio_disk", READ, "none")) is Status.INFO


def test_failed_job():
    findings = judge_facts("fio_disk", {"fio": read("fio", "fio/fio2-read.json")})
    assert "error 5" in only(findings, Status.FAIL).message


def test_nothing_moved_is_unknown():
    idle = {"fio": {"jobs": [{"name": "a", "rw": None, "error": 0}]}}
    assert status(judge_facts("fio_disk", idle)) is Status.UNKNOWN
    assert status(judge_facts("fio_disk", {"fio": BROKEN})) is Status.UNKNOWN
