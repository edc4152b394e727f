"""power_limit: at, below and far below the default, unreadable."""

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(limit):
    return judging("power_limit", gpus.one(5, "power.limit_w", limit))


test_power_limit = table(
    row("limit against the default", judge(629.9), FAIL, index=5, expected=700.0, remedy=FIX_CONFIG),
    *(row("limit against the default", judge(limit), wanted)
        for limit, wanted in [(700.0, PASS), (699.0, PASS), (698.9, WARN), (630.0, WARN)]),
    row("site may run lower", judging("power_limit", gpus.every("power.limit_w", 500.0),
        thresholds={"power_limit.min_percent": 70}), WARN),
    *(row("unreadable is unknown", judging("power_limit", gpus.one(5, path, "ERR!")), UNKNOWN, index=5)
        for path in ["power.limit_w", "power.default_limit_w", "power.draw_w"]),
    row("no default to compare with never passes", judging("power_limit", gpus.every("power.default_limit_w", None)),
        WARN),
    *(each for facts in [gpus.every("power.limit_w", None)] for each in (
        row("not available", judging("power_limit", facts), UNKNOWN),
        row("not available", judging("power_limit", facts, "none"), SKIP),
    )),
)  # fmt: skip
