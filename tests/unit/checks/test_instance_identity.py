"""instance_identity: as declared, wrong type, zone or group, no service, service that does not answer."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

P5 = read("imds", "imds/p5.json")


def judged(facts=P5, kind="p5.48xlarge", **expected):
    return judge_facts("instance_identity", {"imds": facts}, kind, expected=expected)


@pytest.mark.parametrize("zone", ["us-east-1a", "use1-az4"])
def test_as_declared(zone):
    finding = only(judged(availability_zone=zone, placement_group="train-a"), Status.PASS)
    assert finding.message == f"as declared: instance type p5.48xlarge, zone {zone}, placement group train-a"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("p5e.48xlarge", {}),
        ("p5.48xlarge", {"availability_zone": "us-east-1b"}),
        ("p5.48xlarge", {"placement_group": "train-b"}),
    ],
)
def test_not_as_declared(kind, expected):
    assert only(judged(kind=kind, **expected), Status.FAIL).remedy is Remedy.FIX_CONFIG


def test_no_placement_group_at_all():
    finding = only(judged({**P5, "placement_group": None}, placement_group="train-a"), Status.FAIL)
    assert finding.message == "placement group is none, wanted train-a"


def test_not_asked_or_not_answered_is_unknown():
    facts = {"available": True, "errors": {"meta-data/instance-type": "HTTP status 500"}}
    assert "HTTP status 500" in only(judged(facts), Status.UNKNOWN).evidence[0]


def test_tokens_optional_warns():
    assert status(judged({**P5, "tokens_required": False})) is Status.WARN
    assert status(judged({**P5, "tokens_required": True})) is Status.PASS


def test_no_service():
    off = {"available": False, "reason": "not an EC2 instance: the system vendor is QEMU"}
    silent = {"available": False, "reason": "no session token, timed out", "asked": "http://169.254.169.254"}
    assert status(judged(off)) is Status.SKIP
    assert only(judged(silent), Status.WARN).remedy is Remedy.FIX_CONFIG
    assert status(judged(silent, kind="none")) is Status.SKIP


def test_nothing_declared():
    assert status(judged(kind="none")) is Status.SKIP
    assert status(judged(kind="none", availability_zone="us-east-1a")) is Status.PASS
