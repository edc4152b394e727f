"""Every AWS call that the project's own code makes is allowed by the role that makes it."""

from pathlib import Path

import ansible_collections
import pytest

from infra.planning.functions import functions
from infra.planning.names import FUNCTIONS
from infra.planning.user_data import template
from tests.infra.iam_documents import allowed, kubernetes_roles, roles
from tests.infra.rights.aws_calls import SERVICES, Call, calls, clients, live, reachable, shell_actions, sources
from tests.infra.stacks import ROOT, place, planned_names

STACK = "p5-reservation"
HANDLERS = {name: f"flightline/cloud/functions/{name.replace('-', '_')}/handler.py" for name in FUNCTIONS}
CONTROL = ("flightline", "library", "plugins", "infra/link.py")
"""Code that runs on the control node, with the head node's role or an operator's."""

TELLS_NOBODY = "it tells nobody: its environment has neither topic nor secret"
CANNOT_HAPPEN = {
    # (role, action): why code that mentions the call never comes to it.
    ("training-input", "dynamodb:BatchWriteItem"): TELLS_NOBODY,
    ("training-input", "secretsmanager:GetSecretValue"): TELLS_NOBODY,
    ("training-input", "sns:Publish"): TELLS_NOBODY,
    (
        "head",
        "eks:DescribeNodegroup",
    ): "its instances carry no tag of an EKS node group; pods of `control` have the right",
    **{
        ("head", action): "the monitoring's proof finds the stack's queue; it makes one where there is no stack"
        for action in (
            *(f"sqs:{name}" for name in ("CreateQueue", "DeleteQueue", "GetQueueAttributes", "SetQueueAttributes")),
            *("sns:Subscribe", "sns:Unsubscribe"),
        )
    },
    ("verdict", "dynamodb:ConditionCheckItem"): "AwsStore.save is the control node's; answers are kept by ResultStore",
}


def denied(role: str, found: list[Call]) -> list[str]:
    """Calls that the role may not make, each with the action that it lacks."""
    documents = roles(STACK)[role].values()
    return [
        f"{call.path}:{call.line} {call.text} takes {action}; add it to infra/planning/iam for {role}"
        for call in found
        for action in call.actions
        if (role, action) not in CANNOT_HAPPEN and not allowed(documents, action)
    ]


def control_side() -> dict[str, str]:
    """Its sources, less what a person runs with credentials of their own (prices, leftovers), and the functions."""
    return {
        path: text
        for path, text in sources(*CONTROL).items()
        if not path.startswith(("flightline/money/", "flightline/cloud/functions/"))
    }


def found_in(files) -> list[Call]:
    """Calls of these files, given as path -> source."""
    return [call for path, source in files.items() for call in calls(source, path)]


def test_the_control_side_may_do_what_it_does():
    found = found_in(control_side())
    assert {"put_item", "batch_write_item", "get_object", "get_console_output"} <= {call.operation for call in found}
    assert denied("head", found) == []


def test_the_control_side_may_do_what_its_ansible_plugins_do():
    """The SSM connection moves files through the transfer bucket; the inventory lists instances."""
    plugins = Path(ansible_collections.__path__[0]) / "amazon" / "aws" / "plugins"
    files = {path.name: path.read_text(encoding="utf-8") for path in (plugins / "plugin_utils" / "ssm").glob("*.py")}
    found = [call for call in found_in(files) if call.actions_known]
    assert {"start_session", "delete_object", "upload_fileobj"} <= {call.operation for call in found}
    assert denied("head", found) == []
    moved = f"arn:aws:s3:::{planned_names(STACK).transfer_bucket}/i-0123456789abcdef0/AnsiballZ_ping.py"
    documents = roles(STACK)["head"].values()
    assert all(allowed(documents, f"s3:{action}Object", moved) for action in ("Get", "Put", "Delete"))
    assert all(allowed(documents, action) for action in ("ec2:DescribeInstances", "ec2:DescribeRegions"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does(function):
    if not (ROOT / HANDLERS[function]).is_file():
        pytest.skip(f"{HANDLERS[function]} does not exist")
    found = live(HANDLERS[function])
    assert "put_item" in {call.operation for call in found}
    assert denied(function, found) == []


def test_what_cannot_happen_is_so():
    environment = functions(False, 5, planned_names(STACK), place(STACK))["training-input"].environment
    assert "FLIGHTLINE_CHANNELS" not in environment
    assert "notifier" not in (ROOT / HANDLERS["training-input"]).read_text(encoding="utf-8")
    mentioned = {action for call in live(HANDLERS["training-input"]) for action in call.actions}
    assert {action for role, action in CANNOT_HAPPEN if role == "training-input"} <= mentioned
    assert allowed(kubernetes_roles("eks")["control"].values(), "eks:DescribeNodegroup")
    verdict = "".join(sources("flightline/cloud/functions/verdict").values())
    assert "self.results.save(" in verdict and "self.store.save(" not in verdict


def test_every_function_folder_has_a_role():
    folders = {path.parent.name for path in (ROOT / "flightline" / "cloud" / "functions").glob("*/handler.py")}
    assert folders <= {name.replace("-", "_") for name in FUNCTIONS}


def test_the_boot_script_may_do_what_it_does():
    actions = shell_actions(template("flightline-boot"))
    assert actions == {"s3:GetObject", "s3:PutObject"}
    assert all(allowed(roles(STACK)["node"].values(), action) for action in actions)


def test_no_call_is_left_unread():
    """Each call names one operation of one service; a client of an unknown service would hide its calls."""
    files = {**control_side(), **sources("flightline/cloud/functions", "module_utils")}
    unclear = [f"{call.path}:{call.line} {call.text}: {call.operation} of {call.services or 'no known service'}"
               for call in found_in(files) if not call.actions_known]  # fmt: skip
    assert unclear == []
    assert {service for source in files.values() for service in clients(source)} <= set(SERVICES)


def test_nodes_call_aws_only_by_the_boot_script():
    """The node library has no boto3; what it may do is in the boot script."""
    assert found_in(sources("module_utils/flightline_node")) == []


@pytest.mark.parametrize(
    ("source", "action"),
    [
        ("client.delete_table(TableName='x')", "dynamodb:DeleteTable"),
        ("later(self.client.delete_table)", "dynamodb:DeleteTable"),
        ("s3.get_paginator('list_multipart_uploads')", "s3:ListMultipartUploads"),
        ("s3.generate_presigned_url('get_object_acl', Params={})", "s3:GetObjectAcl"),
        ("ec2.stop_instances(InstanceIds=[i])", "ec2:StopInstances"),
    ],
)
def test_a_call_without_its_permission_is_caught(source, action):
    found = list(calls(source, "new.py"))
    assert [call.actions for call in found] == [(action,)]
    assert len(denied("head", found)) == 1
    assert "new.py:1" in denied("head", found)[0]


def test_a_hidden_service_is_caught():
    assert list(clients("clients.get('bedrock').invoke_model()")) == ["bedrock"]
    (call,) = calls("client.get_paginator(name)", "new.py")
    assert not call.actions_known


def test_what_a_function_imports_and_does_not_use_is_not_counted():
    assert "flightline/cloud/blobs.py" in reachable(HANDLERS["storage"])
    found = {(call.path, call.operation) for call in live(HANDLERS["storage"])}
    assert ("flightline/cloud/blobs.py", "put_object") in found
    assert ("flightline/cloud/blobs.py", "get_object") not in found


def test_imports_are_followed():
    found = reachable(HANDLERS["storage"])
    assert {
        "flightline/cloud/functions/common/claims.py",
        "flightline/cloud/batches.py",
        "module_utils/flightline_node/tell/logline.py",
    } <= found
