"""edac: uncorrected errors block, many corrected ones warn."""

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import sysfs
from tests.harness import judge_facts, only, sample, status


def judge(controllers, **rest):
    return judge_facts("edac", {"sysfs": {"edac": controllers}}, **rest)


def counted(ue, ce, **more):
    return {"mc0": {"mc_name": "x", "ue_count": ue, "ce_count": ce, **more}}


def test_clean():
    assert only(judge(counted(0, 3)), Status.PASS).measured == 3


def test_uncorrected_and_many_corrected():
    facts = sysfs.parse({"sysfs.json": sample("sysfs/g4dn-metal.json")})
    findings = judge_facts("edac", {"sysfs": facts}, "g4dn.metal")
    worst, many = only(findings, Status.FAIL), only(findings, Status.WARN)
    assert (worst.device, worst.measured, worst.remedy) == ({"name": "mc1"}, 2, Remedy.REPLACE)
    assert (many.device, many.measured) == ({"name": "mc1"}, 412)


def test_errors_without_a_place_count():
    assert only(judge(counted(0, 0, ue_noinfo_count=1)), Status.FAIL).measured == 1


def test_threshold():
    assert status(judge(counted(0, 99))) is Status.PASS
    assert status(judge(counted(0, 100))) is Status.WARN
    assert status(judge(counted(0, 100), thresholds={"edac.corrected": 500})) is Status.PASS


def test_no_controller_is_no_pass():
    assert "virtual" in only(judge({}), Status.SKIP).message


def test_unreadable():
    for counters in (counted("error: Input/output error", 0), counted(0, "error: Input/output error")):
        assert only(judge(counters), Status.UNKNOWN).message.endswith("could not be read: error: Input/output error")
    for counters in (counted(0, None), {"mc0": {}}):
        assert status(judge(counters)) is Status.UNKNOWN
