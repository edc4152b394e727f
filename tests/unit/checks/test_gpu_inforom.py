"""gpu_inforom: corruption warnings, unreadable objects, products without one."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


@pytest.mark.parametrize("place", ["errors", "warnings"])
def test_corruption_warning_fails(place):
    facts = gpus.node()
    text = "WARNING: infoROM is corrupted at gpu 0000:53:00.0"
    facts["nvidia_smi"][place] = [{"pci_bus_id": "0000:53:00.0", "text": text}]
    finding = only(judge_facts("gpu_inforom", facts), Status.FAIL)
    assert (finding.remedy, finding.device, finding.evidence) == (Remedy.REPLACE, {"pci": "0000:53:00.0"}, (text,))


def test_corrupted_object_fails():
    facts = gpus.put(gpus.node(), 2, "inforom.ecc", "Corrupted infoROM")
    assert only(judge_facts("gpu_inforom", facts), Status.FAIL).device["index"] == 2


def test_unreadable_object_warns():
    facts = gpus.put(gpus.node(), 2, "inforom.oem", "[Unknown Error]")
    assert status(judge_facts("gpu_inforom", facts)) is Status.WARN


def test_unreadable_image_is_unknown():
    facts = gpus.put(gpus.node(), 2, "inforom.image", "ERR!")
    assert only(judge_facts("gpu_inforom", facts), Status.UNKNOWN).device["index"] == 2
    facts = gpus.put(gpus.node(), 2, "inforom.image", None)
    assert only(judge_facts("gpu_inforom", facts), Status.UNKNOWN).device["index"] == 2


def test_readable_or_not_kept():
    assert "G520.0200.00.05" in only(judge_facts("gpu_inforom", gpus.node()), Status.PASS).message
    assert status(judge_facts("gpu_inforom", gpus.put_all(gpus.node(), "inforom.image", None))) is Status.SKIP
    assert status(judge_facts("gpu_inforom", gpus.drop_all(gpus.node(), "inforom"))) is Status.SKIP
