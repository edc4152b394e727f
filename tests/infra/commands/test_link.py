"""From the stack's outputs to what Ansible reads."""

import json

import pytest
from click.testing import CliRunner

from flightline import contract
from infra import link
from tests.infra.test_contract import OUTPUTS

# Written after what cloud-init prints on the console (cc_keys_to_console); the keys are invented.
CONSOLE = """\
[   12.3] cloud-init[1]: -----BEGIN SSH HOST KEY KEYS-----
ssh-ed25519 AAAAold root@ip-10-0-101-7
-----END SSH HOST KEY KEYS-----
ci-info: no authorized SSH keys fingerprints found for user ubuntu.
-----BEGIN SSH HOST KEY KEYS-----
ecdsa-sha2-nistp256 AAAAE2Vj root@ip-10-0-101-7
ssh-ed25519 AAAAC3Nz root@ip-10-0-101-7
-----END SSH HOST KEY KEYS-----
[   14.0] login:
"""


class Ec2:
    """Answers like EC2; invented instances."""

    def __init__(self, consoles):
        self.consoles = consoles

    def get_paginator(self, name):
        assert name == "describe_instances"
        return self

    def paginate(self, Filters):
        assert {"Name": f"tag:{contract.TAG_CLUSTER}", "Values": ["train-p5"]} in Filters
        found = [{"InstanceId": name, "PrivateIpAddress": "10.0.101.7"} for name in self.consoles]
        return [{"Reservations": [{"Instances": found}]}]

    def get_console_output(self, InstanceId, Latest):
        return {"Output": self.consoles[InstanceId]}


def run(tmp_path, outputs, *more):
    path = tmp_path / "outputs.json"
    path.write_text(outputs if isinstance(outputs, str) else json.dumps(outputs))
    return CliRunner().invoke(link.main, ["--outputs", str(path), "--inventory", str(tmp_path / "inventory"), *more])


def test_outputs_become_variables_of_the_hosts(tmp_path):
    assert run(tmp_path, OUTPUTS).exit_code == 0
    written = json.loads((tmp_path / "inventory/group_vars/aws_ec2/stack.json").read_text())
    assert written == {"flightline_stack": OUTPUTS}


def test_what_is_not_in_the_contract_does_not_get_there(tmp_path):
    run(tmp_path, {**OUTPUTS, "secret_of_another_program": "x"})
    assert "another_program" not in (tmp_path / "inventory/group_vars/aws_ec2/stack.json").read_text()


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({**OUTPUTS, "vpc_id": "vpc"}, ["vpc_id", "'vpc'", "pulumi up"]),
        ({"vpc_id": "vpc-0123456789abcdef0"}, ["results_bucket: missing", "cluster_name: missing"]),
        ([], ["list", "wanted an object"]),
        ("{", ["not JSON"]),
    ],
)
def test_wrong_outputs_are_refused_and_the_earlier_ones_stay(tmp_path, outputs, words):
    run(tmp_path, OUTPUTS)
    ended = run(tmp_path, outputs)
    assert ended.exit_code == 2
    assert all(word in ended.output for word in words), ended.output
    kept = json.loads((tmp_path / "inventory/group_vars/aws_ec2/stack.json").read_text())
    assert kept == {"flightline_stack": OUTPUTS}


def test_without_pulumi_it_says_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    ended = CliRunner().invoke(link.main, [])
    assert ended.exit_code == 2 and "install its command line" in ended.output


def test_the_last_boot_s_host_keys_are_taken():
    assert link.host_keys(CONSOLE) == ["ecdsa-sha2-nistp256 AAAAE2Vj", "ssh-ed25519 AAAAC3Nz"]
    assert link.host_keys("[ 0.0] Linux version 6.8") == []


def test_nodes_without_a_key_yet_are_named():
    lines, silent = link.known_hosts(Ec2({"i-1": CONSOLE, "i-2": ""}), "train-p5")
    assert lines == ["10.0.101.7 ecdsa-sha2-nistp256 AAAAE2Vj", "10.0.101.7 ssh-ed25519 AAAAC3Nz"]
    assert silent == ["i-2"]
