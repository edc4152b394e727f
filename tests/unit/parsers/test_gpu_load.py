"""gpu-load.json: figures per GPU joined with its samples by PCI address."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.unit.parsers.hosttools import read


def parse(document):
    return PARSERS["gpu_load"].parse({"gpu-load.json": json.dumps(document).encode()})


def test_figures_and_samples_of_each_gpu():
    facts = read("gpu_load", "gpu_load/simulated-8-gpus.json")
    assert [gpu["index"] for gpu in facts["gpus"]] == list(range(8))
    assert facts["order"] == 16
    first = facts["gpus"][0]
    assert (first["pci"], first["sm_count"], first["mismatches"]) == ("0000:10:00.0", 132, 0)
    assert first["digest"] == first["digest_at_end"]
    assert (first["power_w_max"], first["samples"] > 0, first["throttled"]) == (690.12, True, {})


def test_a_mismatch_says_where():
    good, bad = read("gpu_load", "gpu_load/simulated-wrong.json")["gpus"]
    assert (good["mismatches"], bad["mismatches"]) == (0, 117)
    assert bad["first_mismatch"]["element"] == "5"
    assert "first_mismatch" not in good


def test_not_run():
    assert read("gpu_load", "gpu_load/no-cublas.json") == {"not_run": "libcuda.so.1: not found"}


def test_reasons_by_bit():
    gpu = {"index": 0, "pci": "0000:53:00.0"}
    masks = {"0x48": 3, "0x60": 2, "0x4": 9, "zz": 1}
    facts = parse({"gpus": [gpu], "samples": {"00000000:53:00.0": {"samples": 14, "throttle": masks}}})
    assert facts["gpus"][0]["throttled"] == {"hw_slowdown": 3, "hw_thermal_slowdown": 5, "sw_thermal_slowdown": 2}


def test_a_missing_library_is_the_gpus_error():
    assert (
        parse({"gpus": [{"index": 0, "missing": "libcublas.so.13: no"}]})["gpus"][0]["error"] == "libcublas.so.13: no"
    )


@pytest.mark.parametrize("document", [{}, {"gpus": []}, {"gpus": "8"}, {"gpus": [{}] * 65}, []])
def test_anything_else_is_refused(document):
    with pytest.raises(ParseError):
        parse(document)
