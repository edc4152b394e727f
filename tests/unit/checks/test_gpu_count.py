"""gpu_count: fewer GPUs than the type has, more, none readable, not collected."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status


def smi(count):
    return {"nvidia_smi": {"gpus": [{"index": index} for index in range(count)]}}


@pytest.mark.parametrize(
    ("count", "wanted", "remedy"),
    [
        (8, Status.PASS, Remedy.NONE),
        (7, Status.FAIL, Remedy.REBOOT),
        (0, Status.FAIL, Remedy.REBOOT),
        (9, Status.FAIL, Remedy.FIX_CONFIG),
    ],
)
def test_count_against_the_type(count, wanted, remedy):
    finding = only(judge_facts("gpu_count", smi(count)), wanted)
    assert (finding.measured, finding.expected, finding.remedy) == (count, 8, remedy)


def test_gpus_that_the_tool_could_not_list_are_not_missing():
    for text in ("Failed to initialize NVML: Driver/library version mismatch", "Unable to determine the device handle"):
        facts = {"nvidia_smi": {"gpus": [], "errors": [{"pci_bus_id": None, "text": text}]}}
        assert only(judge_facts("gpu_count", facts), Status.UNKNOWN).evidence == (text,)
    none = {"nvidia_smi": {"gpus": [], "errors": [{"pci_bus_id": None, "text": "No devices were found"}]}}
    assert only(judge_facts("gpu_count", none), Status.FAIL).measured == 0


def test_a_gpu_listed_twice_is_not_two():
    facts = smi(8)
    for gpu in facts["nvidia_smi"]["gpus"]:
        gpu["uuid"] = f"GPU-{min(gpu['index'], 6)}"
    assert "7 different of 8" in only(judge_facts("gpu_count", facts), Status.UNKNOWN).message


def test_no_type_no_answer():
    assert status(judge_facts("gpu_count", smi(8), "none")) is Status.SKIP
    assert status(judge_facts("gpu_count", smi(2), "none", expected={"gpu_count": 2})) is Status.PASS
