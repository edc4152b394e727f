"""The compliance suite itself: every test explains itself and can be shown to fail; waivers do not hide for ever."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import pytest

from tests.compliance import expected, waivers
from tests.compliance.mutations import MUTATIONS, UNBREAKABLE

SUITE = Path(__file__).parents[1] / "compliance"
TODAY = date(2026, 11, 21)
WAIVER = {
    "check": "test_swap_is_off",
    "scope": "gpu-0*",
    "reason": "old image",
    "owner": "ops@example.com",
    "expiry": "2026-12-01",
}


def functions():
    for path in sorted(SUITE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.name}::{node.name}", node


TESTS = dict(functions())


def test_there_are_tests():
    assert len(TESTS) > 50


@pytest.mark.parametrize("name", TESTS)
def test_the_docstring_says_why(name):
    assert len(ast.get_docstring(TESTS[name]) or "") > 25


def test_every_test_has_a_mutation_or_a_reason_why_none_is_possible():
    covered = {mutation.test for mutation in MUTATIONS} | set(UNBREAKABLE)
    assert covered == set(TESTS)


def test_every_role_of_the_site_is_covered():
    import yaml

    groups = yaml.safe_load(expected.ROLE_GROUPS.read_text())["all"]["children"]
    roles = {name for name in groups if (expected.ROOT / "roles" / name).is_dir()}
    assert roles == {path.stem.removeprefix("test_") for path in SUITE.glob("test_*.py")} - {"host"}


@pytest.mark.parametrize(
    ("test", "host", "today", "what"),
    [
        ("test_swap_is_off", "gpu-01", TODAY, "skip"),
        ("test_swap_is_off[x]", "gpu-01", TODAY, "skip"),
        ("test_swap_is_off", "db-01", TODAY, "run"),
        ("test_time_is_kept", "gpu-01", TODAY, "run"),
        ("test_swap_is_off", "gpu-01", date(2026, 12, 1), "skip"),
        ("test_swap_is_off", "gpu-01", date(2026, 12, 2), "fail"),
    ],
)
def test_a_waiver(test, host, today, what):
    found, why = waivers.verdict(waivers.parse([WAIVER]), test, host, today)
    assert found == what
    assert bool(why) is (what != "run")


@pytest.mark.parametrize("field", waivers.FIELDS)
def test_a_waiver_without_a_field_is_refused(field):
    with pytest.raises(ValueError, match=field):
        waivers.parse([{key: value for key, value in WAIVER.items() if key != field}])


def test_expected_values_are_defaults_under_the_inventory(tmp_path):
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(
        "all:\n  hosts:\n    gpu-01: {instance_type: p5.48xlarge, base_hugepages: 128}\n    gpu-02: {instance_type: g5.xlarge}\n"
        "  vars: {dcgm_version: 4.4.0, site_name: east, cloudwatch_agent_cluster: '{{ site_name }}'}\n"
        "  children: {gpu_nodes: {hosts: {gpu-01: {}}}}\n"
    )
    site = expected.Site([str(inventory)])
    first, second = site.expected("gpu-01"), site.expected("gpu-02")
    assert (first["base_hugepages"], second["base_hugepages"]) == (128, 0)
    assert first["dcgm_version"] == "4.4.0"
    assert first["cloudwatch_agent_namespace"] == "Flightline/east"
    assert (first["nvidia_driver_fabric_manager"], second["nvidia_driver_fabric_manager"]) == (True, False)
    assert "base" in site.groups_of("gpu-01")
    assert "base" not in site.groups_of("gpu-02")
    assert "vm.swappiness" in site.union("base_sysctl")
