"""neuron_ecc_corrected: many warn, few do not, none shown is no answer."""

import pytest

from flightline_node.model import Status
from tests.harness import judge_facts, only, status

from .neurons import TRN1, node


@pytest.mark.parametrize(("count", "wanted"), [(100, Status.PASS), (101, Status.WARN), ("ERR", Status.PASS)])
@pytest.mark.parametrize("counter", ["mem_ecc_corrected", "sram_ecc_corrected"])
def test_threshold(counter, count, wanted):
    facts = node()
    facts["neuron_monitor"]["devices"][1][counter] = count
    finding = only(judge_facts("neuron_ecc_corrected", facts, TRN1), wanted)
    assert wanted is Status.PASS or (finding.measured, finding.device["name"]) == (101, "neuron1")


def test_not_shown():
    assert status(judge_facts("neuron_ecc_corrected", node(neuron_monitor={"devices": []}), TRN1)) is Status.SKIP
    assert status(judge_facts("neuron_ecc_corrected", node(neuron_monitor=None), TRN1)) is Status.UNKNOWN
