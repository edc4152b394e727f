"""persistence_mode: on, off, expected off, unreadable."""

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, UNKNOWN, WARN, judging, row, table

test_persistence_mode = table(
    row("on", [judging("persistence_mode", gpus.node()), judging("persistence_mode", gpus.node(), "none")],
        PASS),
    *(row("off warns and fails where the site expects it",
        judging("persistence_mode", gpus.put(gpus.node(), 0, "persistence_mode", "Disabled"), expected=expected),
        wanted, index=0, remedy=FIX_CONFIG)
        for expected, wanted in [(None, WARN), ({"persistence_mode": "Enabled"}, FAIL)]),
    row("site may expect it off", judging("persistence_mode",
        gpus.put_all(gpus.node(), "persistence_mode", "Disabled"), expected={"persistence_mode": "Disabled"}), PASS),
    *(each for value in [None, "[Unknown Error]", "GPU is lost"] for each in (
        row("unreadable is unknown", judging("persistence_mode",
            gpus.put(gpus.node(), 3, "persistence_mode", value)), UNKNOWN, index=3),
        row("unreadable is unknown", judging("persistence_mode",
            gpus.put_all(gpus.node(), "persistence_mode", None)), UNKNOWN),
    )),
)  # fmt: skip
