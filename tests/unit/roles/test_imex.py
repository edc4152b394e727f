"""What the role nvidia_driver writes and runs on nodes whose NVLink reaches over a rack: one list on every node of it."""

import pytest

from flightline.configure import imex_plan
from flightline.configure.node_software import software
from flightline_node.know.expected import known_types
from flightline_node.model import SettingsError

from .render import Role

RACK = "p6e-gb200.36xlarge"


def fleet(racks, **more):
    """An inventory of rack nodes; racks: what EC2 says of each one's capacity block."""
    return {
        f"i-{number:02d}": {
            "instance_type": RACK,
            "node_address": f"10.0.0.{number + 9}",
            "ec2_capacity_reservation_id": rack,
            **more,
        }
        for number, rack in enumerate(racks)
    }


def role(hostvars, name="i-00", **given):
    known = {"hostvars": hostvars, "groups": {"nvidia_driver": list(hostvars)}, "inventory_hostname": name}
    return Role("nvidia_driver", "Ubuntu 24.04", {**hostvars[name], **known, **given}, ansible_managed="Flightline")


def test_each_rack_has_its_own_list_and_all_its_nodes_the_same():
    hostvars = fleet(["cr-a", "cr-b", "cr-a", "cr-b"])
    files = {name: role(hostvars, name).file("imex-nodes.j2") for name in hostvars}
    assert files["i-00"] == files["i-02"] == "10.0.0.9\n10.0.0.11\n"
    assert files["i-01"] == files["i-03"] == "10.0.0.10\n10.0.0.12\n"


def test_the_list_needs_no_answer_of_any_node():
    """Facts of a neighbour that vanished would shorten it, and the nodes with the longer list would refuse this one."""
    hostvars = fleet(["cr-a"] * 3)
    with_facts = fleet(["cr-a"] * 3, ansible_facts={"default_ipv4": {"address": "192.0.2.1"}})
    assert role(hostvars).file("imex-nodes.j2") == role(with_facts).file("imex-nodes.j2")


def test_a_sites_own_name_of_the_rack_stands_above_ec2s():
    hostvars = fleet(["cr-a", "cr-a"])
    hostvars["i-01"]["nvidia_driver_imex_rack"] = "rack-2"
    assert imex_plan.nodes("i-00", hostvars, hostvars) == ["10.0.0.9"]


def test_nodes_of_other_types_are_not_in_it():
    hostvars = fleet(["", ""])
    hostvars["i-01"]["instance_type"] = "p5.48xlarge"
    assert imex_plan.nodes("i-00", hostvars, hostvars) == ["10.0.0.9"]


def test_more_nodes_than_a_rack_has_are_refused():
    hostvars = fleet([""] * 19)
    with pytest.raises(SettingsError, match=r"saw: 19 nodes in no named rack; wanted: at most 18 .*; do: set nvidia"):
        imex_plan.nodes("i-00", hostvars, hostvars)
    assert len(imex_plan.nodes("i-00", list(hostvars)[:18], hostvars)) == 18


def test_an_address_that_is_no_address_is_refused():
    hostvars = fleet(["cr-a"], node_address="gpu-01.example.org")
    with pytest.raises(SettingsError, match=r"saw: gpu-01.example.org as the address of i-00; wanted: an IP address"):
        imex_plan.nodes("i-00", hostvars, hostvars)


@pytest.mark.parametrize("instance_type", known_types())
def test_the_service_runs_where_nvlink_leaves_the_node_and_nowhere_else(instance_type):
    hostvars = {"gpu-01": {"instance_type": instance_type, "node_address": "10.0.0.9"}}
    found = role(hostvars, "gpu-01")
    units = [unit["name"] for unit in found["_nvidia_driver_units"]]
    rack = bool(software(instance_type)["imex"])
    assert ("nvidia-imex.service" in units) is rack
    assert ("options nvidia NVreg_CreateImexChannel0=1" in found.file("modprobe.j2")) is rack


def test_jobs_may_start_it_themselves():
    found = role(fleet(["cr-a"]), nvidia_driver_imex_service=False)
    assert "nvidia-imex=580.95.05*" in found["_nvidia_driver_together"]
    assert "nvidia-imex.service" not in [unit["name"] for unit in found["_nvidia_driver_units"]]
    assert found["nvidia_driver_module_options"] == {}
