"""efa_provider: endpoints, errors and their remedies."""

import pytest

from flightline_node.read.parsers import fi_info
from tests.harness import BROKEN, only, sample

from .table import FAIL, FIX_CONFIG, PASS, REBOOT, SKIP, UNKNOWN, UPDATE_SOFTWARE, judging, row, table


def fixture(name):
    return fi_info.parse({"fi-info.txt": sample(f"fi_info/{name}")})


def judge(facts, instance_type="p5.48xlarge", **others):
    return judging("efa_provider", {"fi_info": facts, **others}, instance_type)


GONE = {"devices": [], "rdm_endpoints": 0, "error": "fi_getinfo: -61 (No data available)"}


test_efa_provider = table(
    row("endpoints", judge(fixture("p5-32-devices.txt")), PASS, measured=32, says="201.0"),
    row("other providers only",
        judge({"devices": [], "rdm_endpoints": 0, "error": None, "other_providers": ["tcp", "shm"]}), FAIL,
        says="only tcp, shm"),
    row("device without reliable endpoint", judge({"devices": ["a", "b"], "rdm_endpoints": 1, "error": None}), FAIL,
        expected=2),
    row("types", judge(fixture("none.txt"), "g4dn.xlarge"), SKIP),
    row("types", [judge(fixture("none.txt"), "none"), judge(fixture("none.txt"), "p6e-gb200.36xlarge")], FAIL),
    row("unreadable and missing", judge(BROKEN), UNKNOWN),
    row("without a type endpoints that are there are evidence",
        judging("efa_provider", {"fi_info": {"devices": ["rdmap0s0"], "rdm_endpoints": 1, "error": None,
        "provider_versions": ["122.0"]}}, "none"), PASS),
    row("without a type endpoints that are there are evidence", judging("efa_provider", {"fi_info": GONE}, "none"),
        FAIL),
    row("without a type endpoints that are there are evidence",
        judging("efa_provider", {"fi_info": {**GONE, "error": None}}, "none"), SKIP),
    row("why libfabric has none is shown",
        judge({**fixture("none.txt"), "warnings": ["ibv_open_device failed! errno: 2"]}), FAIL,
        evidence=("ibv_open_device failed! errno: 2",)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("others", "remedy"),
    [
        ({}, FIX_CONFIG),
        ({"lspci": {"efa": 0}, "efa_counters": {"devices": {}, "count": 0}}, FIX_CONFIG),
        ({"lspci": {"efa": 32}}, UPDATE_SOFTWARE),
    ],
)
def test_no_data_available(others, remedy):
    finding = only(judge(fixture("none.txt"), **others), FAIL)
    assert "-61 (No data available)" in finding.message
    assert finding.remedy is remedy
    assert ("the node has 32 EFA devices" in finding.message) == (remedy is UPDATE_SOFTWARE)


def test_a_link_that_is_down_is_named():
    text = sample("fi_info/verbose-2-devices.txt").decode()
    up = text.replace("mtu: 8760", "mtu: 8760\n            state: FI_LINK_UP")
    good = fi_info.parse({"fi-info.txt": up.encode()})
    assert "links_down" not in good
    facts = fi_info.parse({"fi-info.txt": up.replace("FI_LINK_UP", "FI_LINK_DOWN", 1).encode()})
    finding = only(judging("efa_provider", {"fi_info": facts}, "none"), FAIL)
    assert finding.device["name"] in good["devices"]
    assert (finding.measured, finding.remedy) == ("FI_LINK_DOWN", REBOOT)
