"""nccom_test: completed, failed at once, failed in the middle, wrong data, cut off."""

from flightline_node.read.parsers import PARSERS
from tests.harness import sample

from .neurons import TRN1, fixture, node
from .table import FAIL, INVESTIGATE, PASS, REPLACE, SKIP, UNKNOWN, UPDATE_SOFTWARE, judging, row, table

GOOD = sample("nccom_test/trn1-32-ranks.txt").decode()


def judge(text):
    facts = PARSERS["nccom_test"].parse({"nccom-test.txt": text.encode()})
    return judging("nccom_test", node(nccom_test=facts), TRN1)


test_nccom_test = table(
    *(row("failed", judging("nccom_test", node(nccom_test=fixture("nccom_test", f"nccom_test/{name}.txt")), TRN1), FAIL,
        remedy=remedy, measured="exit status 1")
        for name, remedy in [("bench-failed", INVESTIGATE), ("no-driver", UPDATE_SOFTWARE)]),
    row("wrong data is a failure though the table is whole",
        judge(GOOD.replace("Avg bus", "Output mismatch on rank 7: golden differs\nAvg bus", 1)), FAIL, remedy=REPLACE,
        measured="wrong data"),
    row("an exit status is enough", judge(GOOD.replace("# exit 0", "# exit 139", 1)), FAIL, measured="exit status 139",
        ends=" failed with exit status 139"),
    *(row("cut off is no pass", judge(GOOD[: int(len(GOOD) * keep)]), UNKNOWN) for keep in [0.3, 0.45]),
    row("not installed", judge("# nccom-test -r 32 allr\nsh: 7: nccom-test: not found\n# exit 127\n"), UNKNOWN,
        remedy=UPDATE_SOFTWARE),
    row("a table without a command line",
        judging("nccom_test", node(nccom_test=fixture("nccom_test", "nccom_test/bare-table.txt")), TRN1), PASS),
    row("a table without a command line", judging("nccom_test", {}, "p5.48xlarge"), SKIP),
    row("a table without a command line", judging("nccom_test", {}, TRN1), UNKNOWN),
)  # fmt: skip


def test_completed():
    findings = judge(GOOD)
    assert [finding.status for finding in findings] == [PASS, PASS]
    assert "all_reduce of 32 ranks completed, 6 sizes, data checked" in findings[0].message
