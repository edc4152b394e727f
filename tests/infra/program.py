"""Runs the whole Pulumi program for an example stack, on the stand-in engine."""

import base64
import hashlib
import json
import runpy
import shlex
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from infra import node_package, node_roles
from tests.infra import engine, stacks
from tools.nodepackage import NodePackage

WEBHOOK = "https://hooks.slack.com/services/T000/B000/notarealwebhook"
VPC, SUBNETS = "vpc-0123456789abcdef0", ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1")
JOINED = {"vpcId": VPC, "subnetIds": [*SUBNETS]}
TOPIC = {"alertsTopic": "theirs", "alertsTopicKey": "arn:aws:kms:us-east-1:123456789012:key/" + "0" * 36}
SECRET_KEYS = ("flightline:slackWebhook",)


def image(architecture: str = "x86_64", size_gib: int = 75) -> dict[str, Any]:
    """EC2's answer about an image."""
    root = {"deviceName": "/dev/sda1", "ebs": {"volume_size": str(size_gib)}, "noDevice": "", "virtualName": ""}
    found = {"id": "ami-0123456789abcdef0", "architecture": architecture, "rootDeviceName": "/dev/sda1"}
    return {**found, "blockDeviceMappings": [root]}


def answers(in_region: str, account: str = stacks.ACCOUNT) -> dict[str, Any]:
    """What AWS says to the program's questions; invented."""
    offer = stacks.offer(in_region)
    return {
        "aws:index/getAvailabilityZones:getAvailabilityZones": {
            "names": [zone.name for zone in offer.zones],
            "zoneIds": [zone.zone_id for zone in offer.zones],
            "id": in_region,
        },
        "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": {
            "locations": sorted(offer.offering or ()),
            "instanceTypes": [],
            "locationTypes": [],
            "id": in_region,
        },
        "aws:index/getPartition:getPartition": {"partition": "aws", "dnsSuffix": "amazonaws.com", "id": "aws"},
        "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": account, "arn": "", "userId": "", "id": account},
        "aws:ec2/getAmi:getAmi": image(),
        # What is there already, where a stack joins it.
        "aws:ec2/getSubnet:getSubnet": lambda asked: {
            "vpcId": VPC,
            "id": asked["id"],
            "availabilityZone": f"{in_region}{'b' if asked['id'] == SUBNETS[1] else 'a'}",
        },
        "aws:ec2/getVpc:getVpc": {"cidrBlock": "172.31.0.0/16", "id": VPC},
        "aws:eks/getCluster:getCluster": {
            "endpoint": "https://theirs",
            "certificateAuthorities": [{"data": "bm90IG9uZQ=="}],
            "vpcConfig": {"clusterSecurityGroupId": "sg-theirs"},
            "id": "theirs",
        },
        "aws:ssm/getParameter:getParameter": {"insecureValue": "ami-0123456789abcdef0", "value": "", "id": "x"},
    }


def text_config(values: Mapping[str, Any]) -> dict[str, str]:
    """Configuration as the engine hands it over: text, structures as JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}


@lru_cache(maxsize=32)
def planned(stack: str, preview: bool = False) -> engine.Run:
    """An example stack as it stands; one run serves every test that only reads it."""
    return _whole(run(stack, preview=preview))


def _whole(done: engine.Run) -> engine.Run:
    """A run that tests read as the plan; half of one would fail them with anything but its own error."""
    if done.error:
        raise AssertionError(f"the program ended early, after {len(done.requests)} resources") from done.error
    return done


def run(
    stack: str,
    *,
    preview: bool = False,
    changes: Mapping[str, Any] | None = None,
    program: Callable[[], Any] | None = None,
    said: Mapping[str, Any] | None = None,
) -> engine.Run:
    """Run `infra/__main__.py` (or another program) with a stack's configuration and some keys changed.

    said: other answers of AWS than those above.
    """
    config = {**stacks.config(stack), **{f"{stacks.PREFIX}{key}": value for key, value in (changes or {}).items()}}
    return engine.run(
        program or _main,
        calls={**answers(str(config["aws:region"])), **(said or {})},
        config=text_config(config),
        secret_keys=SECRET_KEYS,
        stack=stack,
        preview=preview,
    )


@lru_cache(maxsize=4)
def _package(chosen: str | None) -> NodePackage:
    """The node package, built once for all runs: what it is made of may change under a long test session."""
    return _built(chosen)


_built = node_package.package


@lru_cache(maxsize=1)
def _roles() -> node_roles.RolesBundle:
    """A stand-in for the roles' bundle: what is in it is no matter to the program (test_node_roles.py builds it)."""
    path = Path(tempfile.mkdtemp(prefix="flightline-roles-")) / "roles.tar.gz"
    path.write_bytes(b"roles")
    return node_roles.RolesBundle(path, hashlib.sha256(b"roles").hexdigest())


def packaged(main: Callable[[], Any]) -> None:
    """Run a program with packages that stand in for those that nodes get."""
    package = mock.patch.object(node_package, "package", _package)
    with package, mock.patch.object(node_roles, "package", _roles):
        main()


def rendered(folder: Path) -> Path:
    """The package's template, as `pulumi new` renders it into a folder."""
    for path in (stacks.ROOT / "flightline_pulumi" / "template").glob("*.*"):
        text = path.read_text().replace("${PROJECT}", "trainers").replace("${DESCRIPTION}", "Ours")
        (folder / path.name).write_text(text)
    return folder


def _main() -> None:
    packaged(lambda: runpy.run_path(str(stacks.ROOT / "infra" / "__main__.py"), run_name="__main__"))


def user_data(run: engine.Run) -> dict[str, Any]:
    """The boot environment in a run's launch template, and the node's own settings."""
    text = base64.b64decode(run.one("nodes-template").props["userData"]).decode()
    files = {one["path"]: one["content"] for one in yaml.safe_load(text)["write_files"]}
    lines = files["/etc/flightline/boot.env"].splitlines()
    settings = json.loads(files["/etc/flightline/node.json"])
    return {**settings, **dict(shlex.split(line)[0].split("=", 1) for line in lines)}


FULL = {
    "slackWebhook": WEBHOOK,
    "alertEmails": ["ops@example.com"],
    "auditTrail": True,
    "monthlyBudgetUsd": 1000,
    "orchestrator": "slurm",
    "s3Express": True,
    "interfaceEndpoints": True,
    "flowLogs": True,
    "fsxSizeGib": 4800,
    "fsxThroughput": 1000,
    "fsxEfa": True,
    "fsxDataRepository": "data",
    "fsxExport": "new-and-changed",
    "permissionsBoundary": "arn:aws:iam::123456789012:policy/boundary",
}
"""Every option on: with these the p5-reservation stack has every component."""


def example(name: str, preview: bool = False) -> engine.Run:
    """An example stack, or `full`."""
    return full(preview) if name == "full" else planned(name, preview)


@lru_cache(maxsize=4)
def full(preview: bool = False) -> engine.Run:
    """The p5-reservation stack with every option on."""
    return _whole(run("p5-reservation", preview=preview, changes=FULL))
