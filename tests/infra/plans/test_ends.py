"""Where a setting ends, seen from outside: change it alone, run the program, and see what is made of it."""

import json
import shutil
from collections.abc import Iterator
from functools import cache
from typing import Any
from unittest import mock

import pytest

from infra import node_package
from infra.config.declare import Key
from infra.config.model import BY_NAME, KEYS
from infra.guard import PolicyGuard
from tests.infra import engine, program
from tests.infra.program import JOINED, TOPIC, VPC

ROLE = "arn:aws:iam::123456789012:role/second"
SSH = {"accessMode": "ssh", "sshKeyName": "me", "sshCidrs": ["203.0.113.0/24"], "headNode": True}
GROUND: dict[str, tuple[str, dict[str, Any]]] = {
    "publicSubnetId": ("dev", {**JOINED, **SSH, "publicSubnetId": "subnet-01234567"}),
    "existingEndpoints": ("dev", {**JOINED, "interfaceEndpoints": True}),
    **dict.fromkeys(("subnetIds", "securityGroupId", "routeTableIds", "fsxId"), ("dev", JOINED)),
    "alertsTopic": ("dev", TOPIC),
    "eksCluster": ("eks", {}),
    "kubernetes": ("eks", {}),
    "podsPerNode": ("eks", {}),
    "cpu": ("eks", {}),
    "spotAllocation": ("spot", {"efa": "off", "placementGroup": "none", "spotInstanceTypes": ["g6.48xlarge"]}),
    "spot": ("spot", {"efa": "off", "placementGroup": "none"}),
    "gpuIdleScaleIn": ("dev", {"gpuIdleHours": 1}),
    "nodeScheduleTimeZone": ("dev", {"nodeSchedule": ["0 8 * * * = 1"]}),
    "ssh": ("dev", SSH),
    "head": ("dev", {"headNode": True}),
    "fsx": ("p5-reservation", {}),
    "capacityChosen": ("dev", {"capacityOrder": ["on-demand", "spot"]}),
    "capacityReservationId": ("p5-reservation", {}),
    "thresholdEfa": ("p5-reservation", {}),
    "packageSource": ("dev", {"ami": "ami-0123456789abcdef0"}),
    "emulatorEndpoint": ("local", {}),
    "accessMode": ("dev", {"headNode": True}),
    "efa": ("p5-reservation", {"fsxEfa": False}),
}
"""The beginning of a key's name -> the stack that it means something to, and what else that needs; dev for the others."""

OTHER: dict[str, Any] = {
    "vpcId": VPC,
    "subnetIds": ["subnet-01234567"],
    "publicSubnetId": "subnet-01234568",
    "securityGroupId": "sg-01234567",
    "routeTableIds": ["rtb-01234567"],
    "existingEndpoints": ["ssm"],
    "fsxId": "fs-01234567",
    "dataBucket": "theirs-data",
    "checkpointsBucket": "theirs-saves",
    "alertsTopic": "another",
    "alertsTopicKey": TOPIC["alertsTopicKey"][:-1] + "1",
    "eksCluster": "theirs",
    "clusterName": "another",
    "orchestrator": "slurm",
    "availabilityZones": ["us-east-1b"],
    "capacityOrder": ["spot", "on-demand"],
    "capacityChosen": "spot",
    "efa": "off",
    "vpcCidr": "10.0.0.0/17",
    "publicSubnetCidrs": ["10.0.3.0/24", "10.0.4.0/24"],
    "privateSubnetCidrs": ["10.0.103.0/24", "10.0.104.0/24"],
    "gpuInstanceType": "g6.2xlarge",
    "gpuNodeMaximum": 3,
    "capacityReservationId": "cr-0123456789abcdef1",
    "capacityType": "spot",
    "spotInstanceTypes": ["g6.48xlarge"],
    "spotMaxPriceUsd": "12.5",
    "nodeSchedule": ["0 8 * * * = 1"],
    "nodeScheduleTimeZone": "Europe/Berlin",
    "placementGroup": "mine",
    "ami": "ami-0123456789abcdef1",
    "amiPin": "ami-0123456789abcdef1",
    "amiUser": "trainer",
    "sshCidrs": ["198.51.100.0/24"],
    "sshKeyName": "another",
    "headInstanceType": "m7i.2xlarge",
    "kubernetesCharts": "off",
    "kubernetesPublicCidrs": ["198.51.100.0/24"],
    "kubernetesAdmins": [ROLE],
    "kubernetesNodeRelease": "1.36.1-20260610",
    "kubernetesAddOnVersions": ["vpc-cni=v1.20.4-eksbuild.2"],
    "cpuInstanceType": "m7i.2xlarge",
    "fsxSizeGib": 38400,
    "fsxThroughput": 500,
    "fsxDataRepository": "s3://theirs/prefix",
    "alertEmails": ["others@example.com"],
    "slackWebhook": program.WEBHOOK,
    "logRetentionDays": 14,
    "bootPreflightLevel": "standard",
    "tags": ["Owner=others"],
    "permissionsBoundary": "arn:aws:iam::123456789012:policy/boundary",
    "emulatorEndpoint": "",
}
"""A value of the keys that do not say by their own rule which others there are."""

WITH: dict[str, dict[str, Any]] = {
    "accessMode": {"sshKeyName": "me", "sshCidrs": ["203.0.113.0/24"]},
    "vpcId": JOINED,
    "eksCluster": {
        **JOINED,
        **{name: BY_NAME[name].default for name in ("natGateways", "privateSubnetCidrs", "cpuNodeCount")},
        **{name: BY_NAME[name].default for name in ("cpuNodeMaximum", "kubernetesAdmins", "kubernetesPublicCidrs")},
    },
}
"""What a value needs beside it."""


def _ground(key: Key) -> tuple[str, dict[str, Any]]:
    return next((ground for name, ground in GROUND.items() if key.name.startswith(name)), ("dev", {}))


def others(key: Key, now: Any) -> Iterator[Any]:
    """Values that a key may have instead; of nodePackage none, which names a file."""
    if key.name in OTHER:
        yield OTHER[key.name]
    elif key.kind == "boolean":
        yield not now
    elif key.choices:
        yield next(one for one in key.choices if one != now)
    elif key.kind == "integer":
        yield now - 1 if key.within and now == key.within[1] else now + 1


def _shape(value: Any) -> Any:
    """A file by what is in it: two objects of one file are the same."""
    return {key: one for key, one in vars(value).items() if key in ("assets", "path", "text")} or repr(value)


def _made(run: engine.Run) -> dict[str, str]:
    """Every resource by its name."""
    return {
        one.urn: json.dumps([one.props, one.protect, one.retain], default=_shape, sort_keys=True)
        for one in run.requests
    }


@cache
def _run(stack: str, changes: str) -> engine.Run:
    """The program without its policies, which end no setting and take a third of the time."""
    with mock.patch.object(PolicyGuard, "install"):
        return program.run(stack, changes=json.loads(changes))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_setting_ends_in_a_resource_or_in_an_output_that_a_role_reads(key, tmp_path):
    stack, changes = _ground(key)
    before = _run(stack, json.dumps(changes))
    assert before.error is None, before.error
    now = {**program.stacks.values(stack), **changes}.get(key.name, key.default)
    package = tmp_path / "made-elsewhere.pyz"
    if key.name == "nodePackage":
        shutil.copy(node_package.package(None).path, package)
    for other in [str(package)] if package.exists() else others(key, now):
        after = _run(stack, json.dumps({**changes, key.name: other, **WITH.get(key.name, {})}))
        assert after.error is None, after.error
        if key.variable:
            assert after.outputs[key.output] == other != before.outputs[key.output]
        assert _made(after) != _made(before), f"{key.name} {other!r} changes no resource of {stack}"


def test_nothing_but_a_setting_tells_two_runs_apart():
    assert _made(program.run("dev")) == _made(program.run("dev"))
