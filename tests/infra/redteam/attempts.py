"""What root on one GPU node tries: every action of its role on every resource that the role names, in another's name.

A new right is attacked by itself: its statement is read from the plan, and an action that nobody here knows how to try
is an error of the suite, not a gap in it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from flightline.contract import BOOT_PREFIX, BOOT_TOLD
from tests.infra.engine import Run as Plan
from tests.infra.redteam.evaluator import Request, allowed
from tests.infra.redteam.world import (
    COMMAND,
    NAMES,
    PLACE,
    RUN,
    STAMP,
    Node,
    World,
    answer,
    boot_record,
    ending,
    outcome,
)

Do = Callable[[World], None]
READS = ("Get", "List", "Describe")
"""Verbs that change nothing; what a node may read is held by tests/infra/rights."""

SYSTEMS_MANAGER = (
    "Systems Manager's own protocol: it, not IAM, holds a call to the instance that the credentials are of"
)
JOBS = "data of jobs: every node that may run a job may write what jobs keep (docs/security.md)"
OWN_CHOICE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *(f"ec2messages:{name}" for name in ("AcknowledgeMessage", "DeleteMessage", "FailMessage", "SendReply")),
            *(f"ssmmessages:{name}Channel" for name in ("CreateControl", "CreateData", "OpenControl", "OpenData")),
            *(f"ssm:{name}" for name in ("UpdateAssociationStatus", "UpdateInstanceAssociationStatus")),
            *(f"ssm:{name}" for name in ("PutInventory", "PutComplianceItems", "UpdateInstanceInformation")),
        ),
        SYSTEMS_MANAGER,
    ),
    "s3express:CreateSession": JOBS,
}
"""Actions that reach other nodes' things and are not tried: why."""


@dataclass(frozen=True)
class Attempt:
    """name: says what is tried. do: carries it out on the emulator as far as IAM lets it."""

    name: str
    action: str
    resource: str
    do: Do = field(repr=False)
    context: Mapping[str, str] = field(default_factory=dict)


def role_policies(plan: Plan, role: str) -> list[dict[str, Any]]:
    """The inline policies of a role, from the plan. A managed one would have to be read too."""
    assert not [
        one for one in plan.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment") if one.props["role"] == role
    ]
    found = plan.of("aws:iam/rolePolicy:RolePolicy")
    return [json.loads(one.props["policy"]) for one in found if one.props["role"] == role]


def bucket_policies(plan: Plan) -> list[dict[str, Any]]:
    """Policies of the buckets."""
    return [json.loads(one.props["policy"]) for one in plan.of("aws:s3/bucketPolicy:BucketPolicy")]


def node_context(node: Node) -> dict[str, str]:
    """What a request with the instance profile's credentials carries. Source: IAM user guide, "Global condition keys"."""
    return {
        "aws:userid": f"AROAEXAMPLE:{node.instance}",
        "ec2:SourceInstanceARN": node.arn,
        "aws:Ec2InstanceSourcePrivateIPv4": node.ip,
        "aws:Ec2InstanceSourceVpc": "vpc-1",
        "aws:PrincipalAccount": PLACE.account,
        "aws:ResourceAccount": PLACE.account,
        "aws:SecureTransport": "true",
    }


def may(plan: Plan, attempt: Attempt, node: Node, role: str = NAMES.node_role) -> bool:
    """Whether IAM lets the node do it."""
    principal = f"arn:aws:iam::{PLACE.account}:role/{role}"
    context = {**node_context(node), **attempt.context}
    request = Request(attempt.action, attempt.resource, context, principal)
    of_bucket = bucket_policies(plan) if attempt.action.startswith("s3:") else []
    return allowed(role_policies(plan, role), request, of_bucket)


def rights(plan: Plan, role: str = NAMES.node_role) -> Iterator[tuple[str, str]]:
    """(action, resource pattern) of every statement that allows something."""
    for policy in role_policies(plan, role):
        for statement in policy["Statement"]:
            if statement["Effect"] == "Allow":
                yield from ((a, r) for a in statement["Action"] for r in statement["Resource"])


def attempts(plan: Plan, world: World) -> list[Attempt]:
    """Every attempt. Raises KeyError for an action that nobody knows how to try."""
    found: dict[tuple[str, str, str], Attempt] = {}
    for action, pattern in rights(plan):
        if action in OWN_CHOICE or action.partition(":")[2].startswith(READS):
            continue
        for one in TRIES[action](action, pattern, world):
            found[one.name, one.action, one.resource] = one
    return list(found.values())


def _others(world: World) -> tuple[Node, Node]:
    return world.sick, world.well


def _writes(action: str, pattern: str, world: World) -> Iterator[Attempt]:
    """Objects of others, under their keys, under keys that look like the writer's own, and where no node writes."""
    bucket = pattern.split(":::")[1].split("/")[0]
    if bucket != NAMES.results_bucket:
        return  # JOBS
    root, invented = world.root, "i-0eeeeeeeeeeeeeee1"
    for node in _others(world):
        lie, state = ("CONTINUE", "go") if node is world.sick else ("ABANDON", "no-go")
        folders = {
            "its own folder": node.boots,
            "another stamp": node.boots.replace(STAMP, "20261121T110000Z-2"),
            "the old layout": f"{BOOT_PREFIX}{node.instance}/{STAMP}",
            "a folder below one's own": f"{BOOT_PREFIX}{root.arn}/{node.instance}/{STAMP}",
            "one's own folder below the other's": f"{BOOT_PREFIX}{node.arn}/{root.arn}/{STAMP}",
            "a way up": f"{BOOT_PREFIX}{root.arn}/../{node.instance}/{STAMP}",
            "a role's session": f"{BOOT_PREFIX}AROAEXAMPLE:{node.instance}/{STAMP}",
            "one's own folder": root.boots,
        }
        for where, folder in folders.items():
            yield _boot(action, bucket, f"{lie} for {node.host} in {where}", folder, node, lie, state)
        yield _object(action, bucket, f"evidence of {node.host}", f"{node.boots}/bundle/kernel.log", b"all well")
        yield _object(action, bucket, f"an answer to {node.host}", f"{node.boots}/{BOOT_TOLD}", b"{}")
        for writer in (node, root):
            key = f"{writer.boots}/outcome.json"
            yield _object(action, bucket, f"an end of {node.host} in {writer.host}'s folder", key, ending(node))
        forged = answer(node) if node is world.sick else b"nothing"
        words = (COMMAND, "d" * 36, "c-1")
        for command in words:
            key = node.answer_key.replace(COMMAND, command)
            yield _object(action, bucket, f"an answer of {node.host}, command {command}", key, forged)
            yield _object(action, bucket, f"a go of {node.host}, command {command}", key, answer(node))
    for number in range(6):
        other = Node("gpu-99", 9, f"{invented[:-1]}{number}", "10.9.9.9")
        yield _boot(action, bucket, f"no-go of {other.instance}, which is none", other.boots, other, "ABANDON", "no-go")
    for key in ("artifacts/flightline-node.pyz", f"runs/{RUN}/report.json", f"runs/{RUN}/asked.json.zlib"):
        yield _object(action, bucket, f"write over {key}", key, b"forged")
    yield _object(action, bucket, "a manifest", "training/job/request.json", b"forged")
    yield _object(action, bucket, "a bad event", "bad-events/storage/x.json", b"forged")


def _boot(action: str, bucket: str, name: str, folder: str, node: Node, result: str, state: str) -> Attempt:
    def do(world: World) -> None:
        world.put(f"{folder}/record.json", json.dumps(boot_record(node, state)).encode())
        world.put(f"{folder}/outcome.json", outcome(node, result))

    return Attempt(name, action, f"arn:aws:s3:::{bucket}/{folder}/outcome.json", do)


def _object(action: str, bucket: str, name: str, key: str, body: bytes) -> Attempt:
    return Attempt(name, action, f"arn:aws:s3:::{bucket}/{key}", lambda world: world.put(key, body))


def _streams(action: str, pattern: str, world: World) -> Iterator[Attempt]:
    """Records of others in every stream whose name might be taken for theirs, and in runs that are not one's own."""
    group = pattern.split("log-group:")[1].split(":")[0]
    root = world.root
    for node in _others(world):
        state = "go" if node is world.sick else "no-go"
        streams = {
            "the other's stream": node.stream,
            "a stream of its id": node.instance,
            "its id, training": f"{node.instance}-training",
            "its training stream": f"{node.stream}-training",
            "a stream x": "x",
            "one's own address and its id": f"{root.ip}_{node.instance}",
            "its address and one's own id": f"{node.ip}_{root.instance}",
            "one's own stream": root.stream,
            "a stream of one's own id": root.instance,
            "one's own stream and its id": f"{root.stream}_{node.instance}",
            "one's own training stream": f"{root.stream}-training",
            "one's own address": f"{root.ip}_",
        }
        record = boot_record(node, state)
        lies = {"": record, ", without an id": {**record, "instance_id": ""}, ", as oneself": _as(record, root)}
        for (where, stream), (how, body) in product(streams.items(), lies.items()):
            resource = PLACE.arn("logs", f"log-group:{group}:log-stream:{stream}")
            for run in (f"self-{node.host}", "before", RUN):
                name = f"{state} of {node.host} in {where} of {group}{how}, run {run}"
                yield Attempt(name, action, resource, _logged(stream, body, group, run))


def _as(record: Mapping[str, Any], node: Node) -> dict[str, Any]:
    return {**record, "instance_id": node.instance}


def _logged(stream: str, record: Mapping[str, Any], group: str, run: str) -> Do:
    return lambda world: world.log(stream, dict(record), run, group)


def _noted(name: str) -> Do:
    return lambda world: world.done.append(name)


def _done_to_others(action: str, pattern: str, world: World) -> Iterator[Attempt]:
    """Calls that name another instance by a parameter, of which IAM knows nothing."""
    for node in _others(world):
        name = f"{action} for {node.host}"
        yield Attempt(name, action, pattern.replace("*", "uuid", 1), _noted(name))


def _to_the_group(action: str, pattern: str, world: World) -> Iterator[Attempt]:
    """Calls that act on what all nodes share."""
    yield Attempt(f"{action} on {pattern}", action, pattern, lambda world: world.done.append(action))


def _metrics(action: str, pattern: str, world: World) -> Iterator[Attempt]:
    for node in _others(world):
        for namespace in (NAMES.metric_namespace, "Flightline/other", "AWS/EC2"):
            name = f"a heartbeat of {node.host} in {namespace}"
            context = {"cloudwatch:namespace": namespace}
            yield Attempt(name, action, pattern, _measured(node, namespace), context)


def _measured(node: Node, namespace: str) -> Do:
    dimensions = [{"Name": "InstanceId", "Value": node.instance}]
    data = {"MetricName": "mem_used_percent", "Dimensions": dimensions, "Value": 1.0}
    return lambda world: world.cloud.client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=[data])


def _nothing(action: str, pattern: str, world: World) -> Iterator[Attempt]:
    """Of no effect without another that is tried."""
    yield from ()


TRIES: Mapping[str, Callable[[str, str, World], Iterator[Attempt]]] = {
    "s3:PutObject": _writes,
    "s3:AbortMultipartUpload": _nothing,
    "s3:DeleteObject": _writes,
    "logs:PutLogEvents": _streams,
    "logs:CreateLogStream": _nothing,
    "logs:PutRetentionPolicy": _to_the_group,
    "autoscaling:CompleteLifecycleAction": _done_to_others,
    "autoscaling:RecordLifecycleActionHeartbeat": _done_to_others,
    "cloudwatch:PutMetricData": _metrics,
}
"""Action -> how it is tried."""
