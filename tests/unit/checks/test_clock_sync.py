"""clock_sync: in step, adrift, unsynchronised, no source, no daemon, no offset."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

SERVICES = {"services": read("services", "systemctl/p5.json")}
NO_DAEMON = {"services": {"units": {"chronyd.service": {"active": "failed"}, "sshd.service": {"active": "active"}}}}


def judged(file, **more):
    return judge_facts("clock_sync", {"chrony": read("chrony", f"chrony/{file}"), **more})


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("ec2.txt", "PASS"),
        ("debian12-synchronised.txt", "PASS"),
        ("debian12-synchronised.csv", "PASS"),
        ("timesync.txt", "PASS"),
        ("ec2-adrift.txt", "FAIL"),
        ("debian12-unsynchronised.txt", "FAIL"),
        ("debian12-unsynchronised.csv", "FAIL"),
        ("timesync-waiting.txt", "FAIL"),
        ("timedatectl-status.txt", "FAIL"),
        ("debian12-no-daemon.txt", "FAIL"),
        ("debian12-local-reference.txt", "WARN"),
    ],
)
def test_fixtures(file, wanted):
    assert status(judged(file)) == wanted


def test_adrift_says_how_far():
    finding = only(judged("ec2-adrift.txt"), Status.FAIL)
    assert (finding.measured, finding.unit, finding.remedy) == (-12.481902313, "s", Remedy.FIX_CONFIG)
    assert "12.4819 s slow" in finding.message


@pytest.mark.parametrize(
    ("offset_s", "wanted"), [(0.049, "PASS"), (-0.05, "WARN"), (0.127, "WARN"), (0.128, "FAIL"), (-3600, "FAIL")]
)
def test_offset_of_either_sign(offset_s, wanted):
    facts = {"tool": "chronyc", "leap": "Normal", "stratum": 4, "offset_s": offset_s}
    assert status(judge_facts("clock_sync", {"chrony": facts})) == wanted


@pytest.mark.parametrize("stratum", [0, 16])
def test_stratum_without_a_source(stratum):
    facts = {"leap": "Normal", "stratum": stratum, "offset_s": 0.0}
    assert status(judge_facts("clock_sync", {"chrony": facts})) is Status.FAIL


def test_leap_second_is_no_fault():
    facts = {"leap": "Insert second", "stratum": 3, "offset_s": 0.0}
    assert status(judge_facts("clock_sync", {"chrony": facts})) is Status.PASS


@pytest.mark.parametrize(("spread_s", "wanted"), [(0.9, Status.PASS), (1.0, Status.WARN)])
def test_a_source_long_silent(spread_s, wanted):
    facts = {"tool": "chronyc", "leap": "Normal", "stratum": 4, "offset_s": 1e-6, "root_dispersion_s": spread_s}
    finding = only(judge_facts("clock_sync", {"chrony": facts}), wanted)
    assert wanted is Status.PASS or (finding.measured, finding.expected) == (1.0, 1.0)


def test_kernel_flag_alone_needs_a_running_daemon():
    assert status(judged("timedatectl-show.txt", **SERVICES)) is Status.WARN
    assert status(judged("timedatectl-show.txt")) is Status.WARN
    assert status(judged("timedatectl-show.txt", **NO_DAEMON)) is Status.FAIL


def test_unknown():
    assert status(judge_facts("clock_sync", {"chrony": {"stratum": 3, "offset_s": 0.0}})) is Status.UNKNOWN
    no_bus = {"tool": "timedatectl", "error": "Failed to connect to bus"}
    assert status(judge_facts("clock_sync", {"chrony": no_bus})) is Status.UNKNOWN
