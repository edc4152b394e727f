"""The contract between the stack and Ansible: tags and outputs."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flightline import contract
from infra.config.model import KEYS
from infra.planning.tags import common_tags, instance_tags
from tests.infra.stacks import ROOT, STACKS, settings

# Invented, one for each output.
OUTPUTS = {
    "cluster_name": "train-p5",
    "stack": "p5-reservation",
    "region": "us-east-1",
    "gpu_zone": "us-east-1a",
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "fabric_security_group_id": "sg-0123456789abcdef0",
    "orchestrator": "slurm",
    "instance_type": "p5.48xlarge",
    "node_count": 8,
    "efa_count": 32,
    "node_group": "train-p5-gpu",
    "head_instance_id": "i-0123456789abcdef0",
    "access_mode": "ssm",
    "node_user": "ubuntu",
    "image_id": "ami-0123456789abcdef0",
    "data_bucket": "train-p5-data-123456789012-us-east-1",
    "checkpoints_bucket": "train-p5-checkpoints-123456789012-us-east-1",
    "results_bucket": "train-p5-results-123456789012-us-east-1",
    "transfer_bucket": "train-p5-transfer-123456789012-us-east-1",
    "results_table": "train-p5-results",
    "training_table": "train-p5-training",
    "alerts_topic_arn": "arn:aws:sns:us-east-1:123456789012:train-p5-alerts",
    "slack_secret_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:flightline/train-p5/slack-webhook-AbCdEf",
    "fsx_id": "fs-0123456789abcdef0",
    "fsx_dns_name": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
    "fsx_mount_name": "abcdefgh",
    "fsx_data_repository": "s3://train-p5-data-123456789012-us-east-1",
    "checkpoints_url": "s3://train-p5-checkpoints-123456789012-us-east-1/",
    "fsx_efa": True,
    "results_log_group": "/flightline/train-p5/results",
    "system_log_group": "/flightline/train-p5/system",
    "package_source": "internet",
    "drain_minutes": 30,
    "log_retention_days": 90,
    "metric_namespace": "Flightline/train-p5",
}
OPTIONAL = [output.name for output in contract.OUTPUTS if output.optional]
REQUIRED = [output.name for output in contract.OUTPUTS if not output.optional]


def test_good_outputs_have_no_mistake():
    assert contract.mistakes(OUTPUTS) == []
    assert set(OUTPUTS) == {output.name for output in contract.OUTPUTS}


@pytest.mark.parametrize("name", list(OUTPUTS))
def test_a_missing_output_is_named(name):
    given_outputs = {key: value for key, value in OUTPUTS.items() if key != name}
    (mistake,) = contract.mistakes(given_outputs)
    assert mistake.startswith(f"{name}: missing; wanted ")


@pytest.mark.parametrize("name", list(OUTPUTS))
def test_a_wrong_output_is_named_with_what_was_seen(name):
    (mistake,) = contract.mistakes({**OUTPUTS, name: "<none of it>"})
    assert mistake.startswith(f"{name}: saw '<none of it>'; wanted ")


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("empty", ["", None, []])
def test_a_required_output_is_not_empty(name, empty):
    assert len(contract.mistakes({**OUTPUTS, name: empty})) == 1


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_output_may_be_empty(name):
    assert contract.mistakes({**OUTPUTS, name: ""}) == []


def test_a_list_is_wanted_where_there_are_many_and_nowhere_else():
    assert len(contract.mistakes({**OUTPUTS, "private_subnet_ids": "subnet-0123456789abcdef0"})) == 1
    assert len(contract.mistakes({**OUTPUTS, "vpc_id": ["vpc-0123456789abcdef0"]})) == 1


def test_all_mistakes_come_at_once():
    assert len(contract.mistakes({})) == len(contract.OUTPUTS)


@given(
    st.dictionaries(st.sampled_from(list(OUTPUTS)), st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text())))
)
def test_any_outputs_can_be_judged(changes):
    contract.mistakes({**OUTPUTS, **changes})


@pytest.mark.parametrize("output", contract.OUTPUTS, ids=lambda output: output.name)
def test_an_output_is_read_where_it_says_or_is_for_people(output):
    """By its name as a reader writes it: of Ansible's variable, as a key, or to `pulumi stack output`."""
    if output.people:
        return
    path = ROOT / (output.read_by if not output.read_by.startswith("roles/") else "inventory/group_vars/aws_ec2")
    files = [path] if path.is_file() else sorted(path.glob("*.yml"))
    found = rf"flightline_stack\.{output.name}\b|[\"']{output.name}[\"']|stack output {output.name}\b"
    assert any(re.search(found, file.read_text()) for file in files), f"{output.name} is read by nothing in {path}"


@pytest.mark.parametrize("key", [key for key in KEYS if key.variable], ids=lambda key: key.name)
def test_a_setting_that_reaches_a_role_is_a_variable_that_the_role_uses(key):
    (output,) = [one for one in contract.OUTPUTS if one.name == key.output]
    role = ROOT / output.read_by
    assert key.variable in yaml.safe_load((role / "defaults/main.yml").read_text())
    used = [path for part in ("tasks", "templates", "vars") for path in (role / part).glob("*")]
    assert any(re.search(rf"\b{key.variable}\b", path.read_text()) for path in used), f"{role.name} does not use it"


def test_no_output_can_hold_the_webhook():
    """Outputs are plain in the state and in Ansible's variables."""
    webhook = "https://hooks.slack.com/services/T0/B0/x"
    assert not [output.name for output in contract.OUTPUTS if re.fullmatch(output.pattern, webhook)]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("role", contract.ROLES)
def test_an_instance_has_every_tag_of_the_contract(stack, role):
    tags = instance_tags(settings(stack), stack, role)
    assert set(contract.INSTANCE_TAGS) | {"Name"} <= set(tags)
    assert tags[contract.TAG_ROLE] == role
    assert len(tags) <= 50
    assert all(len(key) <= 128 and 0 < len(value) <= 256 for key, value in tags.items())
    assert all(re.fullmatch(r"[\w .:/=+@-]+", f"{key}{value}") for key, value in tags.items())


def test_tags_say_what_the_nodes_are():
    tags = instance_tags(settings("p5-reservation"), "prod", contract.ROLE_GPU)
    assert tags[contract.TAG_INSTANCE_TYPE] == "p5.48xlarge"
    assert tags[contract.TAG_EFA_COUNT] == "32"
    assert tags[contract.TAG_CAPACITY] == "reservation"
    assert tags[contract.TAG_ORCHESTRATOR] == "slurm"
    assert tags[contract.TAG_STACK] == "prod"
    assert tags["Owner"] == "ml-platform"
    head = instance_tags(settings("p5-reservation"), "prod", contract.ROLE_HEAD)
    assert (head[contract.TAG_INSTANCE_TYPE], head[contract.TAG_EFA_COUNT]) == ("m7i.xlarge", "0")


def test_a_site_cannot_take_the_tags_that_inventory_relies_on():
    tags = common_tags(settings("dev", tags=["Team=a"]), "dev")
    assert tags["Team"] == "a"
    assert tags[contract.TAG_PROJECT] == contract.PROJECT
