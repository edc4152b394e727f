"""neuron_ecc_corrected: many warn, few do not, none shown is no answer."""

import pytest

from tests.harness import only

from .neurons import TRN1, node
from .table import PASS, SKIP, UNKNOWN, WARN, judging, row, table

test_neuron_ecc_corrected = table(
    row("not shown", judging("neuron_ecc_corrected", node(neuron_monitor={"devices": []}), TRN1), SKIP),
    row("not shown", judging("neuron_ecc_corrected", node(neuron_monitor=None), TRN1), UNKNOWN),
)  # fmt: skip


@pytest.mark.parametrize(("count", "wanted"), [(100, PASS), (101, WARN), ("ERR", PASS)])
@pytest.mark.parametrize("counter", ["mem_ecc_corrected", "sram_ecc_corrected"])
def test_threshold(counter, count, wanted):
    facts = node()
    facts["neuron_monitor"]["devices"][1][counter] = count
    finding = only(judging("neuron_ecc_corrected", facts, TRN1), wanted)
    assert wanted is PASS or (finding.measured, finding.device["name"]) == (101, "neuron1")
