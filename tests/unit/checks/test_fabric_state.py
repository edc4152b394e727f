"""fabric_state: registration, health, domains, products that do not report."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(index=3, instance_type="p5.48xlarge", **values):
    facts = gpus.node()
    for name, value in values.items():
        gpus.put(facts, index, name, value)
    return judge_facts("fabric_state", facts, instance_type)


def test_completed():
    assert only(judge(), Status.PASS).message == "fabric registration completed on 8 GPUs"


@pytest.mark.parametrize(
    ("values", "wanted", "remedy"),
    [
        ({"fabric_state": "In Progress"}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"fabric_state": "Not Started"}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"fabric_status": "NVML_ERROR_UNKNOWN"}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_health": {"bandwidth": "Degraded"}}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_health": {"bandwidth": "Full", "route_unhealthy": "True"}}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_health": {"summary": "Limited Capacity"}}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_health": {"incorrect_configuration": "Insufficient NVLinks"}}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_health": {"summary": "Healthy", "partition_assigned": "False"}}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_cluster_uuid": "b2daed23-0000-0000-0000-000000000000"}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_clique_id": 1}, Status.FAIL, Remedy.REBOOT),
        ({"fabric_state": "[Unknown Error]"}, Status.UNKNOWN, Remedy.INVESTIGATE),
        ({"fabric_state": None}, Status.UNKNOWN, Remedy.INVESTIGATE),
        ({"fabric_state": "Pondering"}, Status.UNKNOWN, Remedy.INVESTIGATE),
        ({"fabric_status": None}, Status.UNKNOWN, Remedy.INVESTIGATE),
        ({"fabric_health": {"bandwidth": "[Unknown Error]"}}, Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_faults(values, wanted, remedy):
    findings = judge(**values)
    assert status(findings) is wanted
    assert only(findings, wanted).remedy is remedy
    assert not [finding for finding in findings if finding.status is Status.PASS]


@pytest.mark.parametrize(
    "health",
    [
        None,
        {"bandwidth": None, "route_unhealthy": None},
        {
            "summary": "Healthy",
            "access_timeout_recovery": "False",
            "partition_assigned": None,
            "gfm_state": "Connected",
        },
        {"summary": "Healthy", "bandwidth": "Full", "incorrect_configuration": "None", "partition_assigned": "True"},
    ],
)
def test_healthy_health(health):
    assert status(judge(fabric_health=health)) is Status.PASS


def test_a100_does_not_report():
    assert "A100" in only(judge_facts("fabric_state", gpus.node(gpus.A100), "p4d.24xlarge"), Status.SKIP).message
    assert "A100" in only(judge_facts("fabric_state", gpus.node(gpus.A100), "none"), Status.SKIP).message
    nameless = gpus.put_all(gpus.node(gpus.A100), "name", "ERR!")
    assert "A100" in only(judge_facts("fabric_state", nameless, "p4d.24xlarge"), Status.SKIP).message


def test_na_on_a_switched_hopper_is_unknown():
    facts = gpus.put_all(gpus.node(), "fabric_state", None)
    assert status(judge_facts("fabric_state", facts)) is Status.UNKNOWN
    assert status(judge_facts("fabric_state", facts, "none")) is Status.SKIP


def test_old_driver_or_no_switch():
    facts = gpus.drop_all(gpus.node(), "fabric_state")
    assert "525" in only(judge_facts("fabric_state", facts), Status.SKIP).message
    assert status(judge(instance_type="p5.4xlarge", fabric_state="In Progress")) is Status.SKIP


@pytest.mark.parametrize("value", [None, "[Unknown Error]"])
@pytest.mark.parametrize("name", ["fabric_clique_id", "fabric_cluster_uuid"])
def test_a_domain_that_is_not_printed_is_no_other_domain(name, value):
    assert only(judge(**{name: value}), Status.PASS)


@pytest.mark.parametrize(
    ("clique_ids", "culprit"), [([1, 1, 1, 2], 3), ([2, 1, 1, 1], 0), ([1, 1, 2, 2], None), ([1, 2], None)]
)
def test_the_one_gpu_in_another_domain_is_named(clique_ids, culprit):
    facts = gpus.node(count=len(clique_ids))
    for index, clique_id in enumerate(clique_ids):
        gpus.put(facts, index, "fabric_clique_id", clique_id)
    finding = only(judge_facts("fabric_state", facts), Status.FAIL)
    assert finding.device.get("index") == culprit
    assert (finding.measured, finding.expected) == ("1, 2", "one domain")
    assert f"GPU 1: fabric_clique_id {clique_ids[1]}" in finding.evidence


@pytest.mark.parametrize(
    ("health", "wanted", "said"),
    [
        ("0x2aa", Status.FAIL, "incorrect configuration 2"),
        ("0xaa", Status.PASS, ""),
        ("0", Status.PASS, ""),
        ("0x1aa", Status.PASS, ""),
        ("0xa9", Status.FAIL, "bandwidth degraded"),
        ("0xa6", Status.FAIL, "route recovery"),
        ("0x9a", Status.FAIL, "route unhealthy"),
        ("0x6a", Status.FAIL, "access time-out"),
        ("90", Status.FAIL, "route unhealthy"),
        ("Healthy", Status.PASS, ""),
        ("Unhealthy", Status.FAIL, "Unhealthy"),
        ("[Unknown Error]", Status.UNKNOWN, "Unknown Error"),
    ],
)
def test_a_health_mask_printed_as_a_number(health, wanted, said):
    """Values by hand after nvml.h: two bits a condition, 1 is a fault and 2 in order."""
    facts = gpus.put(gpus.node(), 2, "fabric_health", health)
    findings = judge_facts("fabric_state", facts)
    assert status(findings) is wanted
    if said:
        assert said in only(findings, wanted).message
