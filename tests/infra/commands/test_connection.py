"""How Ansible reaches the hosts of a stack: inventory/group_vars/aws_ec2/connection.yml, rendered for invented hosts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from infra import link
from tests.infra.stacks import ROOT
from tests.infra.test_contract import OUTPUTS

BIN = Path(sys.executable).parent
NAMES = ("ansible_connection", "ansible_host", "ansible_ssh_common_args")
HOSTS = {
    "gpu_nodes": {"i-1": {"instance_id": "i-1", "ec2_private_ip_address": "10.0.101.7"}},
    "head_nodes": {
        "i-2": {"instance_id": "i-2", "ec2_private_ip_address": "10.0.1.5", "ec2_public_ip_address": "203.0.113.9"}
    },
}


def reach(tmp_path, host, groups=tuple(HOSTS), mode="ssh", site=None):
    """The variables of a host, as Ansible makes them."""
    inventory = tmp_path / "inventory"
    shutil.copytree(ROOT / "inventory/group_vars", inventory / "group_vars")
    (inventory / link.STACK_FILE).write_text(json.dumps({link.VARIABLE: {**OUTPUTS, "access_mode": mode}}))
    (inventory / "group_vars/aws_ec2/site.yml").write_text(yaml.safe_dump(site or {}))
    children = {name: {"hosts": HOSTS[name]} for name in groups}
    (inventory / "hosts.yml").write_text(yaml.safe_dump({"aws_ec2": {"children": children}}))
    wanted = "{" + ", ".join(f"'{name}': {name}" for name in NAMES) + "}"
    values = tmp_path / "values.json"
    # A play of its own: with -m on the command line the connection's variables would be used to connect.
    play = {
        "hosts": host,
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.copy": {
                    "dest": str(values),
                    "content": "{{ " + wanted + " | to_json }}",
                    "mode": "0600",
                },
                "delegate_to": "localhost",
                "vars": {"ansible_python_interpreter": sys.executable},
            }
        ],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    run = subprocess.run(
        [BIN / "ansible-playbook", "-i", str(inventory / "hosts.yml"), str(tmp_path / "play.yml")],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(values.read_text())


def proxy(values):
    """The proxy command among the arguments that Ansible gives to ssh."""
    found = [one for one in shlex.split(values["ansible_ssh_common_args"]) if one.startswith("ProxyCommand=")]
    return found[0].removeprefix("ProxyCommand=") if found else ""


def test_gpu_nodes_are_reached_through_the_head_node_with_host_keys_checked_twice(tmp_path):
    values = reach(tmp_path, "i-1")
    assert (values["ansible_connection"], values["ansible_host"]) == ("ansible.builtin.ssh", "10.0.101.7")
    keys = f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={tmp_path}/inventory/known_hosts"
    assert values["ansible_ssh_common_args"].startswith(keys)
    assert proxy(values) == f"ssh -W %h:%p {keys} ubuntu@203.0.113.9"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client is not installed")
def test_ssh_takes_the_arguments(tmp_path):
    values = reach(tmp_path, "i-1")
    run = subprocess.run(
        ["ssh", "-G", *shlex.split(values["ansible_ssh_common_args"]), "10.0.101.7"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "stricthostkeychecking true" in run.stdout
    assert f"proxycommand {proxy(values)}" in run.stdout


def test_the_head_node_is_reached_by_its_public_address(tmp_path):
    values = reach(tmp_path, "i-2")
    assert values["ansible_host"] == "203.0.113.9"
    assert proxy(values) == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"groups": ("gpu_nodes",)}, "without a head node the nodes let the stack's ranges in"),
        ({"site": {"flightline_jump": ""}}, "on the head node itself"),
        ({"mode": "ssm"}, "Session Manager needs no way in"),
    ],
)
def test_no_detour_where_none_is_needed(tmp_path, options, why):
    assert proxy(reach(tmp_path, "i-1", **options)) == "", why
