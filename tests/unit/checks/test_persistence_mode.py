"""persistence_mode: on, off, expected off, unreadable."""

from functools import partial

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, UNKNOWN, WARN, judging, row, table

judge = partial(judging, "persistence_mode")

test_persistence_mode = table(
    row("on", [judge(gpus.node()), judge(gpus.node(), "none")], PASS),
    *(row("off warns and fails where the site expects it",
        judge(gpus.one(0, "persistence_mode", "Disabled"), expected=expected), wanted, index=0, remedy=FIX_CONFIG)
        for expected, wanted in [(None, WARN), ({"persistence_mode": "Enabled"}, FAIL)]),
    row("site may expect it off",
        judge(gpus.every("persistence_mode", "Disabled"), expected={"persistence_mode": "Disabled"}), PASS),
    *(each for value in [None, "[Unknown Error]", "GPU is lost"] for each in (
        row("unreadable is unknown", judge(gpus.one(3, "persistence_mode", value)), UNKNOWN, index=3),
        row("unreadable is unknown", judge(gpus.every("persistence_mode", None)), UNKNOWN),
    )),
)  # fmt: skip
