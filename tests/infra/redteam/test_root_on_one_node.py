"""Root on one GPU node has its role's rights, and changes nothing of any other node.

Each attempt that IAM (tests/infra/redteam/evaluator.py) allows is carried out in a stack of its own; then the functions
get what would reach them, and what is known of the other nodes is compared with a stack that nobody attacked.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from flightline.cloud.functions.common import services as common
from infra.planning.iam.kubernetes import POD
from tests.emulated import lead_to
from tests.infra import engine, program
from tests.infra.redteam.attempts import READS, attempts, may, rights, role_policies
from tests.infra.redteam.evaluator import Request, allowed
from tests.infra.redteam.world import NAMES, PLACE, STACK, World, boot_record
from tests.infra.stacks import STACKS

KNOWN = {
    "cloudwatch:PutMetricData": "CloudWatch binds a metric to a namespace and to nobody: no verdict rests on a metric",
}
"""What is left (docs/security.md): allowed, about other nodes, and why IAM cannot hold it to its writer."""


@pytest.fixture
def made(server, monkeypatch):
    monkeypatch.setattr(common, "client", server.client)
    plan = program.planned(STACK)

    def anew() -> World:
        lead_to(server, monkeypatch)
        return World(server, plan)

    return anew


def test_root_on_one_node_changes_nothing_of_another(made):
    world = made()
    tries, plan = attempts(world.plan, world), world.plan
    world.deliver()
    untouched = world.seen()
    carried = [number for number, one in enumerate(tries) if one.action not in KNOWN and may(plan, one, world.root)]
    assert len(tries) >= 60 and carried

    def changed(numbers: Sequence[int]) -> dict[str, Any]:
        world = made()
        own = attempts(plan, world)
        for number in numbers:
            own[number].do(world)
        world.deliver()
        found = world.seen()
        gone = {key: [one for one in value if one not in found[key]] for key, value in untouched.items()}
        come = {key: [one for one in value if one not in untouched[key]] for key, value in found.items()}
        return {} if found == untouched else {"gone": gone, "come": come}

    def guilty(numbers: Sequence[int]) -> list[str]:
        """All in one stack first, and then half by half, down to those that change something alone."""
        what, half = changed(numbers), len(numbers) // 2
        if not what or not half:
            return [f"{tries[number].name}: {what}" for number in numbers] if what else []
        return guilty(numbers[:half]) + guilty(numbers[half:]) or [f"{len(numbers)} together: {what}"]

    found = guilty(carried)
    assert not found, "\n".join(found)


def test_what_is_left_is_still_allowed_and_touches_no_verdict(made):
    world = made()
    world.deliver()
    before, plan = world.seen(), world.plan
    left = [one for one in attempts(plan, world) if one.action in KNOWN and may(plan, one, world.root)]
    assert {one.action for one in left} == set(KNOWN)
    for one in left:
        one.do(world)
    world.deliver()
    after = world.seen()
    assert {key: after[key] for key in after if key != "done"} == {key: before[key] for key in before if key != "done"}


@pytest.mark.parametrize(("stack", "key"), [(STACK, "access-gpu-node"), ("eks", "pods-agent")])
def test_no_node_speaks_to_a_group(stack, key):
    """The instance is a parameter of a lifecycle action, and IAM has no key for it."""
    plan = program.planned(stack)
    name = plan.one(key).props["name"]
    assert not [action for action, _ in rights(plan, name) if action.startswith("autoscaling:")]


def test_a_right_that_nobody_knows_how_to_try_is_an_error_of_the_suite(made):
    world = made()
    role = world.plan.one("access-gpu-node-boot")
    more = {"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": ["*"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [more]})
    wider = engine.Run([*world.plan.requests, replace(role, props={**role.props, "policy": policy})])
    with pytest.raises(KeyError, match="sqs:SendMessage"):
        attempts(wider, world)


@pytest.mark.parametrize("stack", [STACK, "eks"])
def test_a_node_becomes_nobody_else(stack):
    """No role of a stack lets a node's role assume it, itself included: it would choose the session's name."""
    plan = program.planned(stack)
    node = f"arn:aws:iam::{PLACE.account}:role/{NAMES.node_role}"
    for role in plan.of("aws:iam/role:Role"):
        asked = Request("sts:AssumeRole", role.arn, {"aws:PrincipalAccount": PLACE.account}, node)
        trust = json.loads(role.props["assumeRolePolicy"])
        statements = [{**one, "Resource": "*"} for one in trust["Statement"]]
        assert not allowed([], asked, [{**trust, "Statement": statements}]), role.name


def test_an_agent_on_kubernetes_writes_as_its_own_pod_and_proves_nothing_of_a_node(made):
    plan, world = program.planned("eks"), made()
    (role,) = [one.props["name"] for one in plan.of("aws:iam/role:Role") if one.name == "pods-agent"]
    pod = {"aws:PrincipalTag/kubernetes-pod-name": "flightline-node-own01", "aws:SecureTransport": "true"}
    policies = role_policies(plan, role)
    tried = 0
    # Its other writes: a stream of a name that is bound as well, and metrics, which are no evidence (KNOWN).
    changes = {one for one, _ in rights(plan, role) if not one.partition(":")[2].startswith(READS)}
    assert changes == {"s3:PutObject", "logs:PutLogEvents", "logs:CreateLogStream", *KNOWN}
    for action, pattern in rights(plan, role):
        if action not in ("s3:PutObject", "logs:PutLogEvents"):
            continue
        own = pattern.replace(POD, "flightline-node-own01").replace("*", "x")
        assert POD in pattern and allowed(policies, Request(action, own, pod))
        for other in ("flightline-node-other", world.sick.instance, world.sick.stream, world.sick.boots, "x"):
            tried += 1
            assert not allowed(policies, Request(action, pattern.replace(POD, other).replace("*", "x"), pod))
    assert tried
    before = world.seen()
    world.log("flightline-node-own01", boot_record(world.sick, "go"), "forged")
    assert world.seen() == before


@pytest.mark.parametrize("stack", STACKS)
def test_a_container_reaches_no_metadata_service_unless_the_site_says_so(stack):
    """A hop limit of one: the answer does not get past the node's own network stack."""
    for template in program.planned(stack).of("aws:ec2/launchTemplate:LaunchTemplate"):
        assert template.props["metadataOptions"]["httpPutResponseHopLimit"] == 1, template.name
