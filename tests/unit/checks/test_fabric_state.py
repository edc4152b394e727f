"""fabric_state: registration, health, domains, products that do not report."""

import pytest

from tests.harness import only, status

from . import gpus
from .table import FAIL, FIX_CONFIG, INVESTIGATE, PASS, REBOOT, SKIP, UNKNOWN, judging, row, table


def judge(index=3, instance_type="p5.48xlarge", **values):
    facts = gpus.node()
    for name, value in values.items():
        gpus.put(facts, index, name, value)
    return judging("fabric_state", facts, instance_type)


test_fabric_state = table(
    row("completed", judge(), PASS, message="fabric registration completed on 8 GPUs"),
    *(row("healthy health", judge(fabric_health=health), PASS)
        for health in [
            None,
            {"bandwidth": None, "route_unhealthy": None},
            {"summary": "Healthy", "access_timeout_recovery": "False", "partition_assigned": None,
                "gfm_state": "Connected"},
            {"summary": "Healthy", "bandwidth": "Full", "incorrect_configuration": "None",
                "partition_assigned": "True"},
        ]),
    row("a100 does not report",
        [judging("fabric_state", gpus.node(gpus.A100), "p4d.24xlarge"),
        judging("fabric_state", gpus.node(gpus.A100), "none"),
        judging("fabric_state", gpus.put_all(gpus.node(gpus.A100), "name", "ERR!"), "p4d.24xlarge")], SKIP,
        says="A100"),
    *(each for facts in [gpus.every("fabric_state", None)] for each in (
        row("N/A on a switched Hopper is unknown", judging("fabric_state", facts), UNKNOWN),
        row("N/A on a switched Hopper is unknown", judging("fabric_state", facts, "none"), SKIP),
    )),
    row("old driver or no switch", judging("fabric_state", gpus.silent("fabric_state")), SKIP, says="525"),
    row("old driver or no switch", judge(instance_type="p5.4xlarge", fabric_state="In Progress"), SKIP),
    *(row("a domain that is not printed is no other domain", judge(**{name: value}), PASS, count=1)
        for name in ["fabric_clique_id", "fabric_cluster_uuid"]
        for value in [None, "[Unknown Error]"]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "wanted", "remedy"),
    [
        ({"fabric_state": "In Progress"}, FAIL, FIX_CONFIG),
        ({"fabric_state": "Not Started"}, FAIL, FIX_CONFIG),
        ({"fabric_status": "NVML_ERROR_UNKNOWN"}, FAIL, REBOOT),
        ({"fabric_health": {"bandwidth": "Degraded"}}, FAIL, REBOOT),
        ({"fabric_health": {"bandwidth": "Full", "route_unhealthy": "True"}}, FAIL, REBOOT),
        ({"fabric_health": {"summary": "Limited Capacity"}}, FAIL, REBOOT),
        ({"fabric_health": {"incorrect_configuration": "Insufficient NVLinks"}}, FAIL, REBOOT),
        ({"fabric_health": {"summary": "Healthy", "partition_assigned": "False"}}, FAIL, REBOOT),
        ({"fabric_cluster_uuid": "b2daed23-0000-0000-0000-000000000000"}, FAIL, REBOOT),
        ({"fabric_clique_id": 1}, FAIL, REBOOT),
        ({"fabric_state": "[Unknown Error]"}, UNKNOWN, INVESTIGATE),
        ({"fabric_state": None}, UNKNOWN, INVESTIGATE),
        ({"fabric_state": "Pondering"}, UNKNOWN, INVESTIGATE),
        ({"fabric_status": None}, UNKNOWN, INVESTIGATE),
        ({"fabric_health": {"bandwidth": "[Unknown Error]"}}, UNKNOWN, INVESTIGATE),
    ],
)
def test_faults(values, wanted, remedy):
    findings = judge(**values)
    assert status(findings) is wanted
    assert only(findings, wanted).remedy is remedy
    assert not [finding for finding in findings if finding.status is PASS]


@pytest.mark.parametrize(
    ("clique_ids", "culprit"), [([1, 1, 1, 2], 3), ([2, 1, 1, 1], 0), ([1, 1, 2, 2], None), ([1, 2], None)]
)
def test_the_one_gpu_in_another_domain_is_named(clique_ids, culprit):
    facts = gpus.node(count=len(clique_ids))
    for index, clique_id in enumerate(clique_ids):
        gpus.put(facts, index, "fabric_clique_id", clique_id)
    finding = only(judging("fabric_state", facts), FAIL)
    assert finding.device.get("index") == culprit
    assert (finding.measured, finding.expected) == ("1, 2", "one domain")
    assert f"GPU 1: fabric_clique_id {clique_ids[1]}" in finding.evidence


@pytest.mark.parametrize(
    ("health", "wanted", "said"),
    [
        ("0x2aa", FAIL, "incorrect configuration 2"),
        ("0xaa", PASS, ""),
        ("0", PASS, ""),
        ("0x1aa", PASS, ""),
        ("0xa9", FAIL, "bandwidth degraded"),
        ("0xa6", FAIL, "route recovery"),
        ("0x9a", FAIL, "route unhealthy"),
        ("0x6a", FAIL, "access time-out"),
        ("90", FAIL, "route unhealthy"),
        ("Healthy", PASS, ""),
        ("Unhealthy", FAIL, "Unhealthy"),
        ("[Unknown Error]", UNKNOWN, "Unknown Error"),
    ],
)
def test_a_health_mask_printed_as_a_number(health, wanted, said):
    """Values by hand after nvml.h: two bits a condition, 1 is a fault and 2 in order."""
    facts = gpus.one(2, "fabric_health", health)
    findings = judging("fabric_state", facts)
    assert status(findings) is wanted
    if said:
        assert said in only(findings, wanted).message
