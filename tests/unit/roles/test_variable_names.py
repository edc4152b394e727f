"""A misspelt variable of a role is named before any node is touched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flightline.configure import variable_names
from tools.roledocs import ROLES

KNOWN = variable_names.known(ROLES)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("base_sysctls", "base_sysctl"),
        ("nvidia_driver_verison", "nvidia_driver_version"),
        ("efa_sha_256", "efa_sha256"),
        ("instance_store_options_", "instance_store_options"),
        ("slurm_proc_track", "slurm_proctrack"),
    ],
)
def test_a_slip_of_the_pen_is_named_with_what_was_meant(name, meant):
    (said,) = variable_names.mistakes([name], KNOWN)
    assert f"seen: the variable {name}, which no role reads; wanted: {meant};" in said


@pytest.mark.parametrize(
    "name", ["base_domain", "slurm_site_partitions", "efa_owner", "my_base_sysctl", "ansible_user"]
)
def test_a_sites_own_variable_is_left_alone(name):
    assert variable_names.mistakes([name], KNOWN) == []


def test_every_variable_of_every_role_is_known():
    every = set().union(*KNOWN.values())
    assert len(every) > 100
    assert variable_names.mistakes(every, KNOWN) == []


def test_the_playbook_stops_before_any_node_is_touched(tmp_path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {a: {instance_type: none, base_sysctls: {}}}}\n")
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [program, "-i", str(tmp_path / "hosts.yml"), "-i", "inventory/roles.yml", "playbooks/site.yml"],
        cwd=ROLES.parent,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "seen: the variable base_sysctls, which no role reads; wanted: base_sysctl" in " ".join(done.stdout.split())
    assert "Gathering Facts" not in done.stdout
