"""ecc_sram_threshold: flag not set, set, not printed, unreadable."""

from . import gpus
from .table import FAIL, PASS, REPLACE, SKIP, UNKNOWN, judging, row, table

test_ecc_sram_threshold = table(
    row("below", judging("ecc_sram_threshold", gpus.node()), PASS),
    row("exceeded", judging("ecc_sram_threshold", gpus.one(6, "sram_threshold_exceeded", True)), FAIL, index=6,
        remedy=REPLACE),
    *(row("not printed or not kept", judging("ecc_sram_threshold", facts), SKIP)
        for facts in (gpus.silent("sram_threshold_exceeded"), gpus.every("sram_threshold_exceeded", None))),
    *(row("one unreadable is unknown", judging("ecc_sram_threshold", gpus.one(6, "sram_threshold_exceeded", value)),
        UNKNOWN, index=6)
        for value in ["ERR!", None]),
)  # fmt: skip
