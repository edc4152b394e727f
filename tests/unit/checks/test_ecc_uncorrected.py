"""ecc_uncorrected: volatile counts fail, aggregate counts are history."""

from functools import partial

from tests.harness import only, status

from . import gpus
from .table import FAIL, INFO, PASS, RESET_GPU, SKIP, UNKNOWN, judging, row, table

judge = partial(judging, "ecc_uncorrected")

test_ecc_uncorrected = table(
    row("none", judge(gpus.node()), PASS),
    row("volatile fails and names the memory",
        judge(gpus.put(gpus.one(2, "ecc_uncorrected_volatile", 3), 2, "ecc.volatile.dram_uncorrectable", 3)), FAIL,
        index=2, measured=3, remedy=RESET_GPU, evidence=("volatile dram_uncorrectable: 3",)),
    row("aggregate is information", judge(gpus.one(2, "ecc_uncorrected_aggregate", 7)), INFO, measured=7),
    *(row("one unreadable is unknown", judge(gpus.one(1, "ecc_uncorrected_volatile", value)), UNKNOWN, index=1)
        for value in ["ERR!", None]),
    *(each for facts in [gpus.every("ecc_uncorrected_volatile", None)] for each in (
        row("no counts", judge(facts), UNKNOWN),
        row("no counts", [judge(facts, "none"), judge(facts, "g6f.large")], SKIP),
        row("no counts", judge(gpus.put_all(facts, "ecc_mode", "Disabled")), SKIP, says="ECC is off"),
    )),
)  # fmt: skip


def test_a_counter_that_only_one_gpu_lacks_is_unknown():
    facts = gpus.every("ecc", {"volatile": {"dram_uncorrectable": 0, "sram_uncorrectable": 0}})
    assert status(judge(facts)) is PASS
    gpus.put(facts, 5, "ecc", {"volatile": {"dram_uncorrectable": None, "sram_uncorrectable": 0}})
    assert only(judge(facts), UNKNOWN).device["index"] == 5


def test_a_gpu_with_mig_on_shows_the_count_of_its_instances_or_none():
    facts = gpus.every("ecc", {"volatile": {"dram_uncorrectable": 0}})
    gpus.put(gpus.put(facts, 5, "mig_mode", "Enabled"), 5, "ecc", {"volatile": {"dram_uncorrectable": None}})
    assert status(judge(facts)) is PASS
    gpus.put(facts, 5, "ecc_uncorrected_volatile", 2)
    assert only(judge(facts), FAIL).device["index"] == 5
    gpus.put(facts, 5, "ecc_uncorrected_volatile", None)
    assert status(judge(facts)) is PASS
    gpus.put(facts, 5, "ecc_uncorrected_volatile", "[Unknown Error]")
    assert only(judge(facts), UNKNOWN).device["index"] == 5
    facts = gpus.put_all(gpus.every("mig_mode", "Enabled"), "ecc_uncorrected_volatile", None)
    assert "MIG" in only(judge(facts), SKIP).message
