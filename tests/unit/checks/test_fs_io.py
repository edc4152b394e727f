"""fs_io: wrong content and errors fail, slowness warns, what was refused is not a pass."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read


def target(**more):
    base = {"mount": "/fsx", "fstype": "lustre", "kind": "lustre", "write_mb_s": 900.0, "read_mb_s": 1200.0}
    return {**base, "verified": True, **more}


def judge(*targets, **more):
    return judge_facts("fs_io", {"fs_io": {"targets": list(targets)}}, **more)


def test_recorded_passes():
    (finding,) = judge_facts("fs_io", {"fs_io": read("fs_io", "fs_io/debian12.json")})
    assert finding.status is Status.PASS
    assert "/opt/dlami/nvme 545.1 and 672.3" in finding.message


@pytest.mark.parametrize(("kind", "remedy"), [("instance-store", Remedy.REPLACE), ("lustre", Remedy.CONTACT_SUPPORT)])
def test_wrong_content(kind, remedy):
    finding = only(judge(target(kind=kind, verified=False, wrong="byte 12: wrote 0x01, read 0x00")), Status.FAIL)
    assert (finding.remedy, finding.device) == (remedy, {"mount": "/fsx"})
    assert "byte 12" in finding.message


@pytest.mark.parametrize("way", ["write", "read"])
def test_slow(way):
    assert status(judge(target(**{f"{way}_mb_s": 50.0}))) is Status.PASS
    finding = only(judge(target(**{f"{way}_mb_s": 49.0})), Status.WARN)
    assert (finding.measured, finding.expected, finding.unit) == (49.0, 50, "MB/s")
    assert status(judge(target(**{f"{way}_mb_s": 49.0}), thresholds={f"fs_io.min_{way}_mb_s": 40})) is Status.PASS


def test_each_of_several():
    findings = judge_facts("fs_io", {"fs_io": read("fs_io", "fs_io/bad.json")})
    by_mount = {finding.device["mount"]: finding.status for finding in findings}
    assert by_mount == {
        "/opt/dlami/nvme": Status.FAIL,
        "/fsx": Status.FAIL,
        "/data": Status.FAIL,
        "/scratch": Status.UNKNOWN,
        "/reference": Status.SKIP,
    }


def test_one_read_only_beside_a_good_one_passes():
    findings = judge(target(), {"mount": "/reference", "kind": "lustre", "refused": "mounted read-only"})
    assert [finding.status for finding in findings] == [Status.SKIP, Status.PASS]


def test_nothing_compared_is_unknown():
    for change in ({"verified": False}, {"write_mb_s": None}, {"read_mb_s": None}):
        (finding,) = judge(target(**change))
        assert (finding.status, finding.device) == (Status.UNKNOWN, {"mount": "/fsx"})


def test_nothing_to_test_and_not_run():
    assert status(judge()) is Status.SKIP


def test_only_read_only_ones_are_no_pass():
    (finding,) = judge({"mount": "/reference", "kind": "lustre", "refused": "mounted read-only"})
    assert finding.status is Status.SKIP
