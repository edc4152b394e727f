"""gpu_memory: within the tolerance, too small, too large, unreadable."""

from functools import partial

import pytest

from . import gpus
from .table import FAIL, FIX_CONFIG, NONE, PASS, REPLACE, SKIP, UNKNOWN, judging, row, table

judge = partial(judging, "gpu_memory")

test_gpu_memory = table(
    # 15109: drivers before 510 leave out what they reserve
    *(row("sizes nvidia-smi prints", judge(gpus.every("memory_total_mib", mib), instance_type), PASS)
        for mib, instance_type in [
            (81559, "p5.48xlarge"), (40536, "p4d.24xlarge"), (81251, "p4de.24xlarge"), (15360, "g4dn.metal"),
            (15360, "g5g.metal"), (15109, "g4dn.metal"), (15109, "g5g.metal"), (23028, "g5.48xlarge"),
            (23034, "g6.48xlarge"), (3072, "g6f.large"), (32510, "p3dn.24xlarge"), (97887, "g7e.48xlarge"),
        ]),
    *(row("wrong size fails", judge(gpus.one(7, "memory_total_mib", mib)), FAIL, measured=mib, expected=81559,
        remedy=remedy)
        for mib, remedy in [(72000, REPLACE), (143771, FIX_CONFIG)]),
    *(each for facts in [gpus.every("memory_total_mib", 80000)] for each in (
        row("tolerance is the site's", judge(facts), PASS),
        row("tolerance is the site's", judge(facts, thresholds={"gpu_memory.tolerance_percent": 1}), FAIL),
    )),
    *(row("unreadable is unknown", judge(gpus.one(1, "memory_total_mib", value)), UNKNOWN, index=1)
        for value in [None, "GPU is lost", "[Unknown Error]"]),
    row("no expectation no answer", judge(gpus.node(), "none"), SKIP),
    *(row("the tolerance ends where it says",
        judge(gpus.every("memory_total_mib", mib), expected={"gpu_memory_mib": 100_000},
        thresholds={"gpu_memory.tolerance_percent": 10}), wanted)
        for mib, wanted in [(90_000, PASS), (89_999, FAIL)]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("mib", "wanted", "remedy"),
    [
        (93_000, PASS, NONE),
        (92_999, FAIL, REPLACE),
        (115_000, PASS, NONE),
        (115_001, FAIL, FIX_CONFIG),
    ],
)
def test_seven_percent_less_and_fifteen_more_are_accepted(mib, wanted, remedy):
    facts = gpus.every("memory_total_mib", mib)
    findings = judge(facts, expected={"gpu_memory_mib": 100_000})
    assert {(finding.status, finding.remedy) for finding in findings} == {(wanted, remedy)}
