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
    assert (facts.efa_count, facts.capacities, facts.fsx_efa) == (8, frozenset({"reservation"}), True)
    assert [item.card for item in efa.interfaces(NEW, efa=True)] == list(range(9))


@pytest.mark.parametrize("name", expected.PLANNED)
def test_what_a_stack_plans_with_is_no_inventory_s_to_set(name):
    with pytest.raises(SettingsError, match=f"unknown expected value '{name}'"):
        expected.resolve(P6, {name: [1]})


@pytest.mark.parametrize("family", ["p6e-gb300", "trn3"])
@pytest.mark.parametrize("size", [".36xlarge", ".48xlarge", "r.36xlarge", "pd98.3xlarge"])
def test_a_family_that_nobody_has_described_is_refused_with_what_is_not_sourced(family, size):
    row = next(json.loads(line) for line in hardware.UNSOURCED.splitlines() if f'"{family}"' in line)
    with pytest.raises(
        SettingsError, match=f"no source gives its .*{', .*'.join(expected.lacking(row))}.*{row['checks_of']}"
    ):
        expected.resolve(f"{family}{size}", {"gpu_count": 4})
    with pytest.raises(ValueError, match="no source gives its"):
        instance_types.facts(f"{family}{size}")
    assert expected.resolve(row["checks_of"]).accelerator == row["accelerator"]
    assert not any(name.startswith(family) for name in expected.known_types())
