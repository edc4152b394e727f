"""efa_count: against the type and between bus, driver and libfabric."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import fi_info
from tests.harness import BROKEN, judge_facts, only, sample, status


def sources(pci=None, driver=None, libfabric=None):
    facts = {}
    if pci is not None:
        facts["lspci"] = {"efa": pci}
    if driver is not None:
        facts["efa_counters"] = {"devices": {f"rdmap{n}s27": {} for n in range(driver)}, "count": driver}
    if libfabric is not None:
        facts["fi_info"] = {
            "devices": [f"rdmap{n}s27" for n in range(libfabric)],
            "rdm_endpoints": libfabric,
            "error": None,
        }
    return facts


@pytest.mark.parametrize(
    ("given", "wanted", "remedy"),
    [
        (sources(32, 32, 32), Status.PASS, Remedy.NONE),
        (sources(libfabric=32), Status.PASS, Remedy.NONE),
        (sources(pci=32), Status.PASS, Remedy.NONE),
        (sources(32, 31, 31), Status.FAIL, Remedy.REBOOT),
        (sources(32, 32, 31), Status.FAIL, Remedy.REBOOT),
        (sources(31, 31, 31), Status.FAIL, Remedy.REPLACE),
        (sources(30, 30, 30), Status.FAIL, Remedy.REPLACE),
        (sources(29, 29, 29), Status.FAIL, Remedy.FIX_CONFIG),
        (sources(16, 16, 16), Status.FAIL, Remedy.FIX_CONFIG),
        (sources(driver=0), Status.FAIL, Remedy.FIX_CONFIG),
        (sources(33, 33, 33), Status.WARN, Remedy.FIX_CONFIG),
    ],
)
def test_p5(given, wanted, remedy):
    finding = only(judge_facts("efa_count", given), wanted)
    assert (finding.remedy, finding.expected) == (remedy, 32)


def test_disagreement_names_the_sources_and_the_device():
    finding = only(judge_facts("efa_count", sources(32, 32, 31)), Status.FAIL)
    assert "PCI (lspci) 32" in finding.message
    assert "libfabric (fi_info) 31" in finding.message
    assert finding.evidence == ("rdmap31s27",)


def test_whole_outputs():
    facts = fi_info.parse({"fi-info.txt": sample("fi_info/p5-32-devices.txt")})
    assert status(judge_facts("efa_count", {"fi_info": facts})) is Status.PASS
    one_gone = {**facts, "devices": facts["devices"][1:], "rdm_endpoints": 31}
    assert status(judge_facts("efa_count", {"fi_info": one_gone})) is Status.FAIL


def test_one_broken_source_leaves_the_others():
    assert status(judge_facts("efa_count", {**sources(pci=32), "fi_info": BROKEN})) is Status.PASS


def test_a_source_without_a_number_is_no_evidence():
    assert status(judge_facts("efa_count", {"lspci": {"nvidia_gpus": 8}})) is Status.UNKNOWN


def test_types():
    assert status(judge_facts("efa_count", sources(0), "g4dn.xlarge")) is Status.SKIP
    assert status(judge_facts("efa_count", sources(4), "p6e-gb200.36xlarge")) is Status.SKIP
    assert status(judge_facts("efa_count", sources(4), "none")) is Status.SKIP
    assert status(judge_facts("efa_count", sources(4), "p6e-gb200.36xlarge", expected={"efa_count": 8})) is Status.FAIL
