"""The registry of faults, and faults as pure functions on a node's files."""

import re

import pytest

from flightline.demo import FAULTS
from flightline.demo.faults import CONNECTION, FLEET, NODE, broken
from flightline.demo.hardware import machine
from flightline.demo.tree import healthy
from flightline_node.judge.checks import CHECKS
from flightline_node.model import SettingsError, Status

WITH_FILES = [name for name, fault in FAULTS.items() if fault.scope != CONNECTION]


def test_every_entry_is_complete():
    for name, fault in FAULTS.items():
        assert fault.name == name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert fault.what and "\n" not in fault.what, name
        assert fault.scope in (NODE, FLEET, CONNECTION), name
        assert fault.status is not Status.PASS, name
        assert fault.scope != NODE or {fault.check, *fault.also} <= set(CHECKS), name


def test_a_fault_changes_the_node_and_only_the_node():
    for name in WITH_FILES:
        kind = FAULTS[name].type
        before = healthy(kind)
        assert broken(machine(kind), [name]) != before, name
        assert healthy(kind) == before, name


def test_faults_apply_where_they_can_and_say_where_they_cannot():
    for kind in ("p5.48xlarge", "p6-b200.48xlarge", "g5.48xlarge", "g4dn.xlarge", "p3dn.24xlarge", "inf2.48xlarge"):
        for name in WITH_FILES:
            try:
                assert broken(machine(kind), [name]) != healthy(kind)
            except SettingsError as error:
                assert re.match(f"saw that fault {name} (does not apply to|changes nothing on) {kind}", str(error))
                assert f"wanted a type that has it: {FAULTS[name].type}" in str(error)


def test_faults_add_up_in_any_order():
    kind, names = "p5.48xlarge", ["gpu_missing", "driver_drift", "nvme_missing", "efa_missing", "xid_dbe"]
    assert broken(machine(kind), names) == broken(machine(kind), names[::-1])


def test_unknown_faults_are_all_named():
    with pytest.raises(
        SettingsError,
        match=r"unknown fault 'no_such'.*unknown fault 'neither'.*do: flightline demo --faults lists them",
    ):
        broken(machine("p5.48xlarge"), ["no_such", "gpu_missing", "neither"])
