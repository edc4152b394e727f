"""ecc_corrected: few, many, unreadable."""

import pytest

from tests.harness import only, status

from . import gpus
from .table import INVESTIGATE, PASS, SKIP, UNKNOWN, WARN, judging, row, table

test_ecc_corrected = table(
    row("limit is the site's",
        judging("ecc_corrected", gpus.one(5, "ecc_corrected_volatile", 101),
        thresholds={"ecc_corrected.max_corrected": 5000}), PASS),
    *(row("unreadable is unknown", judging("ecc_corrected", gpus.one(5, "ecc_corrected_volatile", value)), UNKNOWN,
        index=5)
        for value in ["[Unknown Error]", None]),
)  # fmt: skip


@pytest.mark.parametrize(("count", "wanted"), [(0, PASS), (100, PASS), (101, WARN)])
def test_count(count, wanted):
    facts = gpus.one(5, "ecc_corrected_volatile", count)
    findings = judging("ecc_corrected", facts)
    assert status(findings) is wanted
    if wanted is WARN:
        assert (findings[0].device["index"], findings[0].remedy) == (5, INVESTIGATE)


def test_a_gpu_with_mig_on_shows_no_count():
    facts = gpus.put(gpus.one(5, "mig_mode", "Enabled"), 5, "ecc_corrected_volatile", None)
    assert status(judging("ecc_corrected", facts)) is PASS
    facts = gpus.put_all(gpus.every("mig_mode", "Enabled"), "ecc_corrected_volatile", None)
    assert "MIG" in only(judging("ecc_corrected", facts), SKIP).message
