"""compute_mode: open, exclusive, closed, unreadable, not printed."""

from functools import partial

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, judging, row, table

judge = partial(judging, "compute_mode")

test_compute_mode = table(
    *(each
        for mode in ["Default", "Exclusive_Process", "Exclusive_Thread"]
        for facts in [gpus.every("compute_mode", mode)]
        for each in (
        row("a mode that lets programs in", judge(facts), PASS, message=f"compute mode {mode}"),
        row("a mode that lets programs in", judge(facts, "none"), PASS),
    )),
    *(row("a closed GPU fails", judge(gpus.one(5, "compute_mode", mode)), FAIL, index=5, remedy=FIX_CONFIG,
        measured=mode, expected="Default")
        for mode in ["Prohibited", "PROHIBITED"]),
    *(row("unreadable on one is unknown", judge(gpus.one(3, "compute_mode", value)), UNKNOWN, index=3)
        for value in [None, "[Unknown Error]", "GPU is lost"]),
    row("not printed by any is skipped with its reason", judge(gpus.silent("compute_mode")), SKIP, says="not printed"),
    row("not printed by any is skipped with its reason", judge(gpus.every("compute_mode", None)), SKIP,
        says="this product has none"),
)  # fmt: skip
