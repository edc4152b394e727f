"""compute_mode: open, exclusive, closed, unreadable, not printed."""

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, judging, row, table

test_compute_mode = table(
    *(each
        for mode in ["Default", "Exclusive_Process", "Exclusive_Thread"]
        for facts in [gpus.put_all(gpus.node(), "compute_mode", mode)]
        for each in (
        row("a mode that lets programs in", judging("compute_mode", facts), PASS, message=f"compute mode {mode}"),
        row("a mode that lets programs in", judging("compute_mode", facts, "none"), PASS),
    )),
    *(row("a closed GPU fails", judging("compute_mode", gpus.put(gpus.node(), 5, "compute_mode", mode)), FAIL,
        index=5, remedy=FIX_CONFIG, measured=mode, expected="Default")
        for mode in ["Prohibited", "PROHIBITED"]),
    *(row("unreadable on one is unknown", judging("compute_mode", gpus.put(gpus.node(), 3, "compute_mode", value)),
        UNKNOWN, index=3)
        for value in [None, "[Unknown Error]", "GPU is lost"]),
    row("not printed by any is skipped with its reason",
        judging("compute_mode", gpus.drop_all(gpus.node(), "compute_mode")), SKIP, says="not printed"),
    row("not printed by any is skipped with its reason",
        judging("compute_mode", gpus.put_all(gpus.node(), "compute_mode", None)), SKIP,
        says="this product has none"),
)  # fmt: skip
