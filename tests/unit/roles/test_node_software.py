"""What software the roles install for an instance type."""

import pytest

from flightline.configure.node_software import software
from flightline_node.know.expected import known_types, resolve
from flightline_node.model import SettingsError


@pytest.mark.parametrize(
    ("instance_type", "kernel_module", "fabric_manager", "nvlsm", "architecture"),
    [
        ("p3dn.24xlarge", "proprietary", False, False, "70"),
        ("p4d.24xlarge", "open", True, False, "80"),
        ("p5.48xlarge", "open", True, False, "90"),
        ("p5.4xlarge", "open", False, False, "90"),
        ("p6-b200.48xlarge", "open", True, True, "100"),
        ("p6-b300.48xlarge", "open", True, True, "103"),
        ("g5.48xlarge", "open", False, False, "86"),
        ("g6e.48xlarge", "open", False, False, "89"),
        ("g7e.48xlarge", "open", False, False, "120"),
        ("none", "any", False, False, ""),
    ],
)
def test_software(instance_type, kernel_module, fabric_manager, nvlsm, architecture):
    found = software(instance_type)
    assert found["kernel_module"] == kernel_module
    assert found["fabric_manager"] is fabric_manager
    assert found["nvlsm"] is nvlsm
    assert found["architecture"] == architecture


def test_minimums_come_from_the_hardware_table():
    assert software("p6-b300.48xlarge")["driver_minimum"] == "580"
    assert software("p6-b300.48xlarge")["ofi_nccl_minimum"] == "1.17.1"


def test_every_type_with_an_nvidia_gpu_has_an_architecture():
    gpu_types = [name for name in known_types() if resolve(name, {}).has_nvidia_gpu]
    assert gpu_types
    assert [name for name in gpu_types if not software(name)["architecture"]] == []


def test_a_rack_type_has_no_fabric_manager_of_its_own():
    rack = [name for name in known_types() if name.startswith("p6e-")]
    assert not any(software(name)["fabric_manager"] for name in rack)


def test_a_neuron_type_wants_nothing_of_nvidia():
    found = software("trn1.32xlarge")
    assert (found["neuron"], found["gpu"], found["driver_minimum"]) == (True, False, "")
    assert software("p5.48xlarge")["neuron"] is False


def test_an_unknown_type_is_an_error():
    with pytest.raises(SettingsError):
        software("p9.48xlarge")
