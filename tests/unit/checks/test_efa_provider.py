"""efa_provider: endpoints, errors and their remedies."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import fi_info
from tests.harness import BROKEN, judge_facts, only, sample, status


def fixture(name):
    return fi_info.parse({"fi-info.txt": sample(f"fi_info/{name}")})


def judge(facts, instance_type="p5.48xlarge", **others):
    return judge_facts("efa_provider", {"fi_info": facts, **others}, instance_type)


def test_endpoints():
    finding = only(judge(fixture("p5-32-devices.txt")), Status.PASS)
    assert finding.measured == 32
    assert "201.0" in finding.message


@pytest.mark.parametrize(
    ("others", "remedy"),
    [
        ({}, Remedy.FIX_CONFIG),
        ({"lspci": {"efa": 0}, "efa_counters": {"devices": {}, "count": 0}}, Remedy.FIX_CONFIG),
        ({"lspci": {"efa": 32}}, Remedy.UPDATE_SOFTWARE),
    ],
)
def test_no_data_available(others, remedy):
    finding = only(judge(fixture("none.txt"), **others), Status.FAIL)
    assert "-61 (No data available)" in finding.message
    assert finding.remedy is remedy
    assert ("the node has 32 EFA devices" in finding.message) == (remedy is Remedy.UPDATE_SOFTWARE)


def test_other_providers_only():
    facts = {"devices": [], "rdm_endpoints": 0, "error": None, "other_providers": ["tcp", "shm"]}
    assert "only tcp, shm" in only(judge(facts), Status.FAIL).message


def test_device_without_reliable_endpoint():
    facts = {"devices": ["a", "b"], "rdm_endpoints": 1, "error": None}
    assert only(judge(facts), Status.FAIL).expected == 2


def test_types():
    none = fixture("none.txt")
    assert status(judge(none, "g4dn.xlarge")) is Status.SKIP
    assert status(judge(none, "none")) is Status.FAIL
    assert status(judge(none, "p6e-gb200.36xlarge")) is Status.FAIL


def test_unreadable_and_missing():
    assert status(judge(BROKEN)) is Status.UNKNOWN


def test_without_a_type_endpoints_that_are_there_are_evidence():
    there = {"devices": ["rdmap0s0"], "rdm_endpoints": 1, "error": None, "provider_versions": ["122.0"]}
    assert status(judge_facts("efa_provider", {"fi_info": there}, "none")) is Status.PASS
    gone = {"devices": [], "rdm_endpoints": 0, "error": "fi_getinfo: -61 (No data available)"}
    assert status(judge_facts("efa_provider", {"fi_info": gone}, "none")) is Status.FAIL
    assert status(judge_facts("efa_provider", {"fi_info": {**gone, "error": None}}, "none")) is Status.SKIP


def test_a_link_that_is_down_is_named():
    text = sample("fi_info/verbose-2-devices.txt").decode()
    up = text.replace("mtu: 8760", "mtu: 8760\n            state: FI_LINK_UP")
    good = fi_info.parse({"fi-info.txt": up.encode()})
    assert "links_down" not in good
    facts = fi_info.parse({"fi-info.txt": up.replace("FI_LINK_UP", "FI_LINK_DOWN", 1).encode()})
    finding = only(judge_facts("efa_provider", {"fi_info": facts}, "none"), Status.FAIL)
    assert finding.device["name"] in good["devices"]
    assert (finding.measured, finding.remedy) == ("FI_LINK_DOWN", Remedy.REBOOT)


def test_why_libfabric_has_none_is_shown():
    facts = {**fixture("none.txt"), "warnings": ["ibv_open_device failed! errno: 2"]}
    assert only(judge(facts), Status.FAIL).evidence == ("ibv_open_device failed! errno: 2",)
