"""gpu_vbios: pin, one version within the node, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def test_one_version():
    assert "96.00.A5.00.01" in only(judge_facts("gpu_vbios", gpus.node()), Status.PASS).message


def test_other_version_within_the_node_warns():
    facts = gpus.put(gpus.node(), 4, "vbios_version", "96.00.74.00.01")
    findings = judge_facts("gpu_vbios", facts)
    assert only(findings, Status.WARN).measured == "96.00.74.00.01, 96.00.A5.00.01"
    assert status(findings) is Status.WARN
    assert not [finding for finding in findings if finding.status is Status.PASS]


def test_two_models_have_two_versions():
    facts = gpus.put(gpus.put(gpus.node(), 4, "vbios_version", "90.04.38.00.03"), 4, "name", "Tesla T4")
    assert status(judge_facts("gpu_vbios", facts)) is Status.PASS


@pytest.mark.parametrize(
    ("pin", "wanted"),
    [
        ("96.00.A5.00.01", Status.PASS),
        ("96.00.a5", Status.PASS),
        ("96.00.B5.00.01", Status.FAIL),
        ("96.00.A", Status.FAIL),
    ],
)
def test_pin_counts_hexadecimal_groups(pin, wanted):
    findings = judge_facts("gpu_vbios", gpus.node(), expected={"vbios_version": pin})
    assert status(findings) is wanted
    assert findings[0].remedy is (Remedy.REPLACE if wanted is Status.FAIL else Remedy.NONE)


def test_unreadable_is_unknown():
    assert (
        status(judge_facts("gpu_vbios", gpus.put(gpus.node(), 0, "vbios_version", "[Unknown Error]"))) is Status.UNKNOWN
    )
    assert status(judge_facts("gpu_vbios", gpus.put(gpus.node(), 0, "vbios_version", None))) is Status.UNKNOWN


def test_not_printed_matters_only_to_a_pin():
    facts = gpus.drop_all(gpus.node(), "vbios_version")
    assert status(judge_facts("gpu_vbios", facts)) is Status.SKIP
    assert status(judge_facts("gpu_vbios", facts, expected={"vbios_version": "96"})) is Status.UNKNOWN
