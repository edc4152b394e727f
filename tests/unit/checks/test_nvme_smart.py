"""nvme_smart: the controller's warning, spare blocks, wear, media errors; disks that do not answer."""

from tests.harness import only
from tests.unit.parsers.hosttools import read

from .table import FAIL, NONE, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def judge(*disks, **rest):
    return judging("nvme_smart", {"nvme_smart": {"disks": list(disks)}}, **rest)


def disk(**values):
    good = {"critical_warning": 0, "available_spare": 100, "spare_threshold": 10, "percentage_used": 1}
    return {"name": "nvme1", "serial": "AWS1", **good, "media_errors": 0, **values}


BLANK = {"name": "nvme0", "critical_warning": 0, "available_spare": 0, "media_errors": 0}


test_nvme_smart = table(
    *(row("fixtures", judging("nvme_smart", {"nvme_smart": read("nvme_smart", f"nvme_smart/{file}")}), wanted,
        remedy=remedy)
        for file, wanted, remedy in [
            ("reader-p5.json", PASS, NONE), ("nvme-cli.json", PASS, NONE), ("nvme-cli-2-failing.json", FAIL, REPLACE),
            ("smartctl.json", WARN, REPLACE), ("smartctl-refused.json", SKIP, NONE),
        ]),
    *(row("what blocks", judge(disk(**values)), FAIL, says=wanted, device={"name": "nvme1", "serial": "AWS1"})
        for values, wanted in [
            ({"critical_warning": 1}, "spare blocks are used up"),
            ({"critical_warning": 8}, "read-only"),
            ({"critical_warning": 64}, "0x40"),
            ({"available_spare": 9}, "9 % spare"),
        ]),
    row("what warns and its thresholds", judge(disk(percentage_used=99)), PASS),
    row("what warns and its thresholds", judge(disk(percentage_used=100)), WARN),
    row("what warns and its thresholds", judge(disk(percentage_used=100), thresholds={"nvme_smart.wear": 120}), PASS),
    row("what warns and its thresholds", judge(disk(media_errors=1)), WARN, measured=1),
    row("what warns and its thresholds",
        [judge(disk(media_errors=1), thresholds={"nvme_smart.media_errors": 1}), judge(disk(available_spare=10))],
        PASS),
    row("a warning that cannot be read is unknown", judge(disk(critical_warning=None)), UNKNOWN),
    row("nothing to judge", judge(BLANK), SKIP, says="zero"),
    row("nothing to judge", judge({"name": "nvme0", "error": "Permission denied"}), SKIP, ends="Permission denied"),
    row("nothing to judge", judge(), SKIP),
    row("nothing to judge", judge(BLANK, disk()), PASS, starts="1 of 2 disks"),
)  # fmt: skip


def test_the_most_worn_disk_and_the_log_are_shown():
    assert only(judge(disk(percentage_used=3), disk(name="nvme2", percentage_used=7)), PASS).measured == 7
    evidence = only(judge(disk(media_errors=1)), WARN).evidence[0]
    assert ("media_errors 1" in evidence, "AWS1" in evidence) == (True, False)
