"""hugepages: as declared, more, fewer, another default size, nothing declared."""

from tests.harness import BROKEN

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, judging, row, table


def judged(total, size=2048, wanted=5128):
    meminfo = {"hugepages_total": total, "hugepage_kib": size}
    return judging("hugepages", {"meminfo": meminfo}, expected={"hugepages_2m": wanted})


test_hugepages = table(
    *(row("count", judged(total), wanted)
        for total, wanted in [(5128, "PASS"), (9000, "PASS"), (5127, "FAIL"), (0, "FAIL")]),
    row("fewer is configuration", judged(100), FAIL, measured=100, expected=5128, remedy=FIX_CONFIG),
    row("other default size is unknown", judged(10, size=1048576), UNKNOWN),
    row("other default size is unknown", judged(0, size=1048576, wanted=0), PASS),
    row("unknown and skip", [judging("hugepages", {"meminfo": {"total_kib": 1}}, expected={"hugepages_2m": 1}),
        judging("hugepages", {"meminfo": BROKEN}, expected={"hugepages_2m": 1})], UNKNOWN),
    row("unknown and skip", judging("hugepages", {"meminfo": {"hugepages_total": 0, "hugepage_kib": 2048}}), SKIP),
    *(row("half of the lines is not enough", judged(total, size), UNKNOWN, says="not printed")
        for total, size in [(None, 2048), (5128, None)]),
)  # fmt: skip
