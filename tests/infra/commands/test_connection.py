"""How Ansible reaches the hosts of a stack: inventory/group_vars/aws_ec2/connection.yml, rendered for invented hosts."""

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


def play(hosts, name, **variables):
    """A play that writes down a host's variables; with -m on the command line they would be used to connect."""
    wanted = ", ".join(f"'{key}': {key}" for key in NAMES)
    content = f"{{{{ {{{wanted}}} | to_json }}}}"
    copy = {"dest": f"{{{{ playbook_dir }}}}/{name}.json", "content": content, "mode": "0600"}
    python = {"ansible_python_interpreter": sys.executable}
    task = {"ansible.builtin.copy": copy, "delegate_to": "localhost", "vars": python}
    return {"hosts": hosts, "gather_facts": False, "vars": variables, "tasks": [task]}


def reach(tmp_path, groups=tuple(HOSTS), site=None):
    """The variables of each host as Ansible makes them, and of a GPU node with Session Manager."""
    inventory = tmp_path / "inventory"
    shutil.copytree(ROOT / "inventory/group_vars", inventory / "group_vars")
    outputs = {**OUTPUTS, "access_mode": "ssh"}
    (inventory / link.STACK_FILE).write_text(json.dumps({link.VARIABLE: outputs}))
    (inventory / "group_vars/aws_ec2/site.yml").write_text(yaml.safe_dump(site or {}))
    children = {name: {"hosts": HOSTS[name]} for name in groups}
    (inventory / "hosts.yml").write_text(yaml.safe_dump({"aws_ec2": {"children": children}}))
    ssm = play("gpu_nodes", "ssm", **{link.VARIABLE: {**outputs, "access_mode": "ssm"}})
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play("all", "{{ inventory_hostname }}"), ssm]))
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
    return {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("ssh")


@pytest.fixture(scope="module")
def reached(place):
    return reach(place)


def proxy(values):
    """The proxy command among the arguments that Ansible gives to ssh."""
    found = [one for one in shlex.split(values["ansible_ssh_common_args"]) if one.startswith("ProxyCommand=")]
    return found[0].removeprefix("ProxyCommand=") if found else ""


def test_gpu_nodes_are_reached_through_the_head_node_with_host_keys_checked_twice(place, reached):
    values = reached["i-1"]
    assert (values["ansible_connection"], values["ansible_host"]) == ("ansible.builtin.ssh", "10.0.101.7")
    keys = f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={place}/inventory/known_hosts"
    assert values["ansible_ssh_common_args"].startswith(keys)
    assert proxy(values) == f"ssh -W %h:%p {keys} ubuntu@203.0.113.9"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client is not installed")
def test_ssh_takes_the_arguments(reached):
    values = reached["i-1"]
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


def test_the_head_node_is_reached_by_its_public_address(reached):
    assert reached["i-2"]["ansible_host"] == "203.0.113.9"
    assert proxy(reached["i-2"]) == ""


def test_session_manager_needs_no_way_in(reached):
    assert (reached["ssm"]["ansible_connection"], reached["ssm"]["ansible_host"]) == ("amazon.aws.aws_ssm", "i-1")
    assert proxy(reached["ssm"]) == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"groups": ("gpu_nodes",)}, "without a head node the nodes let the stack's ranges in"),
        ({"site": {"flightline_jump": ""}}, "on the head node itself"),
    ],
)
def test_no_detour_where_none_is_needed(tmp_path, options, why):
    assert proxy(reach(tmp_path, **options)["i-1"]) == "", why
