"""A row of the hardware table is whole or refused, and everything that knows types reads it."""

import json

import pytest

from flightline.configure.node_software import software
from flightline_node.know import expected, hardware
from flightline_node.model import SettingsError
from infra.planning import efa, instance_types

P6 = "p6-b300.48xlarge"
NEW = "p0-invented.48xlarge"
"""Invented."""


def row(**changes):
    found = json.loads(next(line for line in hardware.TABLE.splitlines() if f'"{P6}"' in line))
    return {**found, "instance_type": NEW, **changes}


@pytest.fixture
def table(monkeypatch):
    def add(**changes):
        entry = {name: value for name, value in row(**changes).items() if value is not None}
        text = json.dumps(entry, separators=(",", ":"))
        monkeypatch.setattr(expected, "TABLE", f"{hardware.TABLE}{text}\n")
        instance_types.known.cache_clear()
        instance_types.facts.cache_clear()

    yield add
    instance_types.known.cache_clear()
    instance_types.facts.cache_clear()


@pytest.mark.parametrize("line", hardware.TABLE.splitlines(), ids=lambda line: line.split('"')[3])
def test_every_row_is_whole(line):
    assert expected.lacking(json.loads(line)) == []


@pytest.mark.parametrize(
    "name",
    [
        *("accelerator", "sold", "efa_cards", "fsx_efa", "compute_capability", "kernel_module", "nvlsm"),
        *("gpu_pcie_gen", "nvlink_gb_s", "network_gbps", "gpu_tflops"),
    ],
)
def test_a_row_with_a_hole_is_refused_by_its_name(table, name):
    table(**{name: None})
    with pytest.raises(SettingsError, match=f"its row lacks .*{name}"):
        expected.resolve(NEW)


def test_one_row_is_all_that_stack_roles_and_judgement_need(table):
    table(gpu_count=4, efa_count=8, efa_cards=list(range(1, 9)), sold=["reservation"])
    wanted = software(NEW)
    assert (wanted["architecture"], wanted["nvlsm"], wanted["fabric_manager"], wanted["imex"]) == (
        "103", True, True, False,
    )  # fmt: skip
    facts = instance_types.facts(NEW)
    assert (facts.efa_count, facts.capacities, facts.fsx_efa) == (8, {"reservation"}, True)
    assert [item.card for item in efa.interfaces(NEW, efa=True)] == list(range(9))


@pytest.mark.parametrize("name", expected.PLANNED)
def test_what_a_stack_plans_with_is_no_inventory_s_to_set(name):
    with pytest.raises(SettingsError, match=f"unknown expected value '{name}'"):
        expected.resolve(P6, {name: [1]})
