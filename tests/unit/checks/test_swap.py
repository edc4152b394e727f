"""swap: off, on, not printed, unreadable."""

from tests.harness import BROKEN

from .table import FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table

test_swap = table(
    row("off", judging("swap", {"meminfo": {"swap_total_kib": 0}}), PASS),
    row("on warns", judging("swap", {"meminfo": {"swap_total_kib": 2 << 20}}), WARN, measured=2048, remedy=FIX_CONFIG),
    row("not printed is no answer", judging("swap", {"meminfo": {"total_kib": 5}}), SKIP),
    row("unknown", judging("swap", {"meminfo": BROKEN}), UNKNOWN),
)  # fmt: skip
