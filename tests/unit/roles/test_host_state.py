"""The record of a host: who may change it, what it holds, and whose name counts."""

import json

import pytest
from ansible.errors import AnsibleFilterError

from flightline.configure import host_state, slurm_plan
from plugins.filter.flightline_software import flightline_kept_state, flightline_signed_state

from .render import Role

STATE = {"name": "gpu-01", "machine": "aaaa", "parts": {"driver": {"adopted": True, "version": "580.126.09"}}}


def keep(directory, signed):
    (directory / "key").write_text("a key\n")
    (directory / "gpu-01.json").write_text(json.dumps(signed))


def test_what_this_side_signed_is_taken_and_nothing_else(tmp_path):
    keep(tmp_path, flightline_signed_state(STATE, "a key"))
    assert flightline_kept_state(str(tmp_path), "gpu-01") == STATE
    assert flightline_kept_state(str(tmp_path), "gpu-02") == {}
    changed = json.loads(json.dumps(flightline_signed_state(STATE, "a key")).replace("580.126.09", "570.1"))
    for bad in (changed, flightline_signed_state(STATE, "the node's own key"), {"state": STATE}, [], None):
        keep(tmp_path, bad)
        with pytest.raises(AnsibleFilterError, match=r"gpu-01\.json is not as this side signed it; wanted"):
            flightline_kept_state(str(tmp_path), "gpu-01")
    keep(tmp_path, flightline_signed_state(STATE, "a key"))
    (tmp_path / "key").unlink()
    with pytest.raises(host_state.NotSigned):
        host_state.kept(tmp_path, "gpu-01")


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ({}, "wrong-name"),
        ({"name": "gpu-01", "machine": "aaaa"}, "gpu-01"),
        ({"name": "gpu-01", "machine": "bbbb"}, "wrong-name"),
    ],
)
def test_slurm_takes_no_name_that_a_recorded_machine_was_given_since(kept, name):
    host = {"ansible_facts": {"hostname": "wrong-name", "machine_id": "aaaa"}, "host_state_kept": kept}
    assert slurm_plan.node_name("gpu-01", host, {}) == name


def ran(**more):
    given = {"__nvidia_driver_installs": False, "__cuda_nccl_installs": True, "efa_version": "1.44.0"}
    given |= {"__efa_bundle": {"facts": {"installer": "1.45.0"}}, "__instance_store_made": {"skipped": True}, **more}
    return Role("host_state", "Debian 12", given)["_host_state_parts"]


def test_only_parts_whose_roles_came_to_their_end_are_recorded_anew():
    assert ran() == {"driver": True, "nccl": False, "efa": True}
    assert ran(flightline_refused=["efa", "nvidia_driver"]) == {"nccl": False}
    assert ran(__slurm_served={"skipped": True}) == ran()
    more = ran(__slurm_served={"facts": {}}, __instance_store_made={"facts": {"adopted": True}})
    assert more == {**ran(), "slurm": False, "store": True}
    assert Role("host_state", "Debian 12")["_host_state_parts"] == {}


def test_each_package_of_the_image_is_held_at_its_version():
    found = {"facts": {"held": {"nvidia-open": "580.126.09-1", "libnvidia-compute-580": "580.126.09-1"}}}
    role = Role("host_state", "Ubuntu 24.04", {"__host_state_found": found})
    pin = "Package: nvidia-open\nPin: version 580.126.09-1\nPin-Priority: 1001\n"
    assert pin in role["_host_state_pin"] and role["_host_state_pin"].count("Package: ") == 2


@pytest.mark.parametrize(("installs", "driver"), [(True, "580.95.05"), (False, "570.172.08")])
def test_efa_is_judged_beside_the_driver_that_is_there(installs, driver):
    given = {"instance_type": "p5.48xlarge", "__nvidia_driver_installs": installs}
    given["__nvidia_driver_found"] = {"facts": {"version": "570.172.08"}}
    assert Role("efa", "Ubuntu 22.04", given)["_efa_nvidia_driver"] == driver
