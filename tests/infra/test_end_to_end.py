"""From planned arguments to a stored verdict, on AWS emulated by moto's server.

The program's own plan of the `local` stack is created there; its group launches the instances; the real
amazon.aws.aws_ec2 inventory plugin lists them; playbooks/validate.yml and preflight.yml run. The nodes behind the
instances are simulated ones of the demo fleet, because an emulated instance is no machine.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from flightline import contract
from flightline.cloud import items
from infra import link
from tests.emulated import Cloud
from tests.infra import emulated, program
from tests.infra.stacks import ROOT

BIN = Path(sys.executable).parent


@dataclass
class Account:
    """An emulated account with the stack in it, and a control node's copy of inventory/."""

    cloud: Cloud
    world: emulated.World
    outputs: dict[str, Any]
    home: Path

    def ansible(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE", "AWS", "FLIGHT"))}
        env.update(self.cloud.env, AWS_DEFAULT_REGION=self.outputs["region"], PATH=f"{BIN}:{env['PATH']}")
        env.update(
            ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), FLIGHTLINE_STORE=str(self.home / "runs.sqlite"), **variables
        )
        return subprocess.run(command, env=env, cwd=self.home, capture_output=True, text=True, timeout=300, check=False)

    def inventory(self) -> dict[str, Any]:
        run = self.ansible("ansible-inventory", "-i", "inventory/aws_ec2.yml", "--list")
        assert run.returncode == 0, run.stderr
        listed: dict[str, Any] = json.loads(run.stdout, object_hook=_plain)
        return listed

    def play(self, playbook: str, *more: str) -> subprocess.CompletedProcess[str]:
        path = str(ROOT / "playbooks" / playbook)
        return self.ansible("ansible-playbook", "-i", "inventory/aws_ec2.yml", path, *more)

    @property
    def instances(self) -> list[dict[str, Any]]:
        pages = self.world.client("ec2").describe_instances()["Reservations"]
        found = [instance for page in pages for instance in page["Instances"]]
        return [instance for instance in found if instance["State"]["Name"] == "running"]


def _plain(value: dict[str, Any]) -> Any:
    """ansible-inventory marks text that came from outside, so that it is not taken for a template."""
    return value.get("__ansible_unsafe", value)


@pytest.fixture(scope="module")
def account(tmp_path_factory):
    cloud = Cloud()
    planned = program.planned("local")
    world = emulated.create(planned, cloud.url, str(planned.outputs["region"]))
    home = tmp_path_factory.mktemp("control")
    shutil.copytree(ROOT / "inventory", home / "inventory", ignore=shutil.ignore_patterns("stack.json", "known_hosts"))
    outputs = world.real(planned.outputs)
    (home / "outputs.json").write_text(json.dumps(outputs))
    yield Account(cloud, world, outputs, home)
    cloud.close()


@pytest.fixture
def linked(account):
    outputs = link.checked(json.loads((account.home / "outputs.json").read_text()))
    link.link(outputs, account.home / "inventory")
    return account


def test_without_the_outputs_no_host_is_listed(account):
    (account.home / "inventory/group_vars/aws_ec2/stack.json").unlink(missing_ok=True)
    run = account.ansible("ansible-inventory", "-i", "inventory/aws_ec2.yml", "--list")
    assert run.returncode != 0
    assert "stack.json" in run.stderr


def test_the_inventory_lists_the_group_s_nodes_and_no_others_with_the_stack_s_variables(linked):
    ec2 = linked.world.client("ec2")
    tags = [{"Key": contract.TAG_PROJECT, "Value": "flightline"}, {"Key": contract.TAG_CLUSTER, "Value": "other"}]
    specification = [{"ResourceType": "instance", "Tags": tags}]
    image, nodes = linked.instances[0]["ImageId"], {one["InstanceId"] for one in linked.instances}
    (other,) = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=specification)["Instances"]
    try:
        listed = linked.inventory()
    finally:
        ec2.terminate_instances(InstanceIds=[other["InstanceId"]])
    hosts = listed["gpu_nodes"]["hosts"]
    assert len(hosts) == linked.outputs["node_count"] and set(hosts) == set(listed["_meta"]["hostvars"]) == nodes
    assert {"cluster_flightline_local", "zone_us_east_1a", "capacity_on_demand"} <= set(listed["all"]["children"])
    variables = listed["_meta"]["hostvars"][hosts[0]]
    assert variables["instance_type"] == variables["ec2_instance_type"] == "p5.48xlarge"
    assert variables["ec2_tags"][contract.TAG_EFA_COUNT] == "32"
    assert variables["flightline_stack"]["results_table"] == linked.outputs["results_table"]
    assert variables["instance_id"] == hosts[0]


def test_roles_and_connection_take_their_values_from_the_stack(linked):
    names = sorted(
        name
        for path in (linked.home / "inventory/group_vars/aws_ec2").glob("*.yml")
        for name in yaml.safe_load(path.read_text())
    )
    wanted = "{" + ", ".join(f"'{name}': {name}" for name in names) + "}"
    run = linked.ansible(
        *("ansible", "gpu_nodes[0]", "-i", "inventory/aws_ec2.yml", "-m", "ansible.builtin.copy", "-o"),
        *("-a", f"dest={linked.home}/values.json content='{{{{ {wanted} | to_json }}}}'"),
        *("-e", f"ansible_connection=local ansible_python_interpreter={sys.executable}"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    values = json.loads((linked.home / "values.json").read_text())
    assert values["ansible_aws_ssm_bucket_name"] == linked.outputs["transfer_bucket"]
    assert values["cloudwatch_agent_results_log_group"] == linked.outputs["results_log_group"]
    assert values["lustre_client_mounts"] == [] and int(values["lustre_client_efa_interfaces"]) == 0
    assert values["flightline_publish"]["topic"] == linked.outputs["alerts_topic_arn"]


def test_validation_passes_on_what_was_planned(linked):
    run = linked.play("validate.yml", "-e", "ansible_connection=local")
    assert run.returncode == 0, run.stdout + run.stderr


def test_validation_names_what_this_machine_lacks_to_reach_the_nodes(linked):
    run = linked.play("validate.yml", "-e", f"ansible_aws_ssm_plugin={linked.home}/session-manager-plugin")
    assert run.returncode != 0
    said = run.stdout + run.stderr
    assert "all 2 hosts: ansible_connection aws_ssm: " in said and "install AWS's Session Manager plugin" in said


def test_validation_names_a_host_that_is_not_what_the_stack_says(linked):
    wrong = {contract.TAG_EFA_COUNT: "16", contract.TAG_INSTANCE_TYPE: "p5en.48xlarge", contract.TAG_STACK: "old"}
    ec2, instance = linked.world.client("ec2"), linked.instances[0]
    before = [item for item in instance["Tags"] if item["Key"] in wrong]
    ec2.create_tags(Resources=[instance["InstanceId"]], Tags=emulated.tag_list(wrong))
    try:
        run = linked.play("validate.yml", "-e", "ansible_connection=local")
    finally:
        ec2.create_tags(Resources=[instance["InstanceId"]], Tags=before)
    assert run.returncode != 0
    said = run.stdout + run.stderr
    for words in (
        ["efa-count", "16", "32"],
        ["EC2 says 'p5.48xlarge'", "p5en.48xlarge"],
        ["flightline:stack", "old", "local"],
    ):
        assert any(all(word in line for word in [instance["InstanceId"], *words]) for line in said.splitlines()), said


def test_validation_names_an_output_that_is_wrong_or_missing(linked):
    path = linked.home / "inventory" / link.STACK_FILE
    path.write_text(json.dumps({link.VARIABLE: {**linked.outputs, "results_bucket": "Not A Bucket", "vpc_id": ""}}))
    run = linked.play("validate.yml", "-e", "ansible_connection=local")
    assert run.returncode != 0
    assert all(word in run.stdout + run.stderr for word in ("results_bucket", "Not A Bucket", "vpc_id", "make outputs"))


def simulated(account, broken=""):
    """Demo nodes in the place of instances that are no machines."""
    return json.dumps(
        {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "demo_dir": f"{account.home}/nodes/{{{{ inventory_hostname }}}}",
            "demo_faults": f"{{{{ ['remap_pending'] if inventory_hostname == '{broken}' else [] }}}}",
            "flightline_root": "{{ demo_dir }}/root",
            "flightline_tool_path": ["{{ demo_dir }}/tools"],
        }
    )


def test_a_preflight_of_the_stack_is_stored_in_its_table(linked):
    broken = linked.instances[0]["InstanceId"]
    run = linked.play("preflight.yml", "-e", simulated(linked, broken))
    assert run.returncode == 1, run.stdout + run.stderr
    scan = linked.world.client("dynamodb").scan(TableName=linked.outputs["results_table"])
    stored = [item for item in map(items.unmarshal, scan["Items"]) if item["pk"].startswith("RUN#")]
    found = [item["check"] for item in stored if item["sk"].startswith(f"NODE#{broken}#")]
    assert found == ["row_remap"]
    hosts = {item["sk"].removeprefix("RECORD#") for item in stored if item["sk"].startswith("RECORD#")}
    assert hosts == {instance["InstanceId"] for instance in linked.instances}
    bucket = linked.world.client("s3").list_objects_v2(Bucket=linked.outputs["results_bucket"])
    assert any(entry["Key"].endswith("report.html") for entry in bucket["Contents"])


def test_a_node_of_the_stack_that_is_not_there_is_a_no_go(linked):
    path = linked.home / "inventory" / link.STACK_FILE
    path.write_text(json.dumps({link.VARIABLE: {**linked.outputs, "node_count": "3"}}))
    run = linked.play("preflight.yml", "-e", simulated(linked))
    assert run.returncode == 1, run.stdout + run.stderr
    assert "NO-GO  2 of 3 nodes go" in run.stdout
    assert "flightline-local-absent-1" in run.stdout
    some = linked.play("preflight.yml", "-e", simulated(linked), "--limit", linked.instances[0]["InstanceId"])
    assert some.returncode == 0, some.stdout + some.stderr
