"""edac: uncorrected errors block, many corrected ones warn."""

from flightline_node.read.parsers import sysfs
from tests.harness import sample

from .table import FAIL, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def judge(controllers, **rest):
    return judging("edac", {"sysfs": {"edac": controllers}}, **rest)


def counted(ue, ce, **more):
    return {"mc0": {"mc_name": "x", "ue_count": ue, "ce_count": ce, **more}}


test_edac = table(
    row("clean", judge(counted(0, 3)), PASS, measured=3),
    row("uncorrected and many corrected",
        judging("edac", {"sysfs": sysfs.parse({"sysfs.json": sample("sysfs/g4dn-metal.json")})}, "g4dn.metal"), FAIL,
        device={"name": "mc1"}, measured=2, remedy=REPLACE).also(WARN, device={"name": "mc1"}, measured=412),
    row("errors without a place count", judge(counted(0, 0, ue_noinfo_count=1)), FAIL, measured=1),
    row("threshold", judge(counted(0, 99)), PASS),
    row("threshold", judge(counted(0, 100)), WARN),
    row("threshold", judge(counted(0, 100), thresholds={"edac.corrected": 500}), PASS),
    row("no controller is no pass", judge({}), SKIP, says="virtual"),
    *(row("unreadable", judge(counters), UNKNOWN, ends="could not be read: error: Input/output error")
        for counters in (counted("error: Input/output error", 0), counted(0, "error: Input/output error"))),
    *(row("unreadable", judge(counters), UNKNOWN) for counters in (counted(0, None), {"mc0": {}})),
)  # fmt: skip
