"""row_remap_histogram: banks with, low on, and without spare rows."""

from tests.harness import only, status

from . import gpus
from .table import INFO, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def judge(**banks):
    facts = gpus.node()
    for name, value in banks.items():
        gpus.put(facts, 1, f"remap.histogram.{name}", value)
    return judging("row_remap_histogram", facts)


test_row_remap_histogram = table(
    row("all spares", judge(), PASS, says="2560"),
    row("bank without spares warns", judge(max=2558, none=2), WARN, index=1, measured=2, remedy=REPLACE),
    row("low bank is information", judge(max=2559, low=1), INFO, measured=1),
    *(row("unreadable is unknown", judge(**banks), UNKNOWN, index=1)
        for banks in ({"none": "ERR!"}, {"max": None}, {"max": 0})),
)  # fmt: skip


def test_no_histogram():
    assert status(judging("row_remap_histogram", gpus.every("remap", None))) is SKIP
    facts = gpus.node()
    for gpu in facts["nvidia_smi"]["gpus"]:
        del gpu["remap"]["histogram"]
    assert status(judging("row_remap_histogram", facts)) is SKIP


def test_a_gpu_with_mig_on_does_not_show_it():
    facts = gpus.put(gpus.one(4, "mig_mode", "Enabled"), 4, "remap", None)
    assert status(judging("row_remap_histogram", facts)) is PASS
    facts = gpus.put_all(gpus.every("mig_mode", "Enabled"), "remap", None)
    assert "MIG" in only(judging("row_remap_histogram", facts), SKIP).message
