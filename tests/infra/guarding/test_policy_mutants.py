"""Each policy is broken once in what the program registers, and must name the resource; once the program itself is stopped.

A mutant has other arguments, as after a careless edit of a component. That every breach stops the run is test_guard.py's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from flightline import contract
from infra import cluster, guard
from infra.policies import RULES, PolicyContext, judge, judge_stack
from infra.policies.locks import LOCK
from infra.policies.secrets import OUTPUTS
from tests.infra import program

SITE = PolicyContext(True, frozenset(contract.COMMON_TAGS))
ALL_ROLES = json.dumps({"Statement": [{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"}]})
EVERYBODY = json.dumps(
    {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}]}
)
OPEN = {"subnetIds": ["subnet-1", "subnet-2"], "endpointPrivateAccess": True, "endpointPublicAccess": True}
UNENCRYPTED = [{"deviceName": "/dev/sda1", "ebs": {"encrypted": "false", "volumeType": "gp3"}}]


def exports(*events: str) -> dict[str, Any]:
    return {"autoExportPolicy": {"events": list(events)}}


@dataclass(frozen=True)
class Mutant:
    """props: the changed ones by the engine's names, None for none. flags: `protect` or `retain`.

    owner: what the rule names when it looks from another side. stack: the example.
    """

    rule: str
    name: str
    props: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""
    stack: str = "full"

    @property
    def title(self) -> str:
        return f"{self.rule}-{self.name}-{'-'.join([*self.props, *self.flags])}"


def eks(rule: str, logical: str, /, **props: Any) -> Mutant:
    """A mutant of the Kubernetes example."""
    return Mutant(rule, logical, props, stack="eks")


MUTANTS = [
    eks("open-ingress", "kubernetes-cluster", vpcConfig=OPEN),
    eks("encryption-at-rest", "kubernetes-cluster", encryptionConfig=None),
    eks("cluster-access", "kubernetes-cluster", accessConfig=None),
    eks("log-retention", "kubernetes-cluster", name="another"),
    eks("unproven-nodes", "nodes-group", taints=None),
    eks("pinned-charts", "charts-dcgm-exporter", version=None),
    eks("tags", "system-group", tags={"Name": "mine"}),
    Mutant("open-ingress", "fabric-self-in", {"referencedSecurityGroupId": None, "cidrIpv4": "0.0.0.0/0"}),
    Mutant("open-ingress", "lustre-from-nodes-988-in", {"referencedSecurityGroupId": None, "cidrIpv6": "::/0"}),
    Mutant("encryption-at-rest", "nodes-template", {"blockDeviceMappings": UNENCRYPTED}),
    Mutant("encryption-at-rest", "tables-results", {"serverSideEncryption": None}),
    Mutant("encryption-at-rest", "notifications-alerts", {"kmsMasterKeyId": None}),
    Mutant("encryption-at-rest", "storage-data-encryption", {"bucket": "another"}, owner="storage-data-bucket"),
    Mutant("encryption-at-rest", "head-instance", {"rootBlockDevice": None}),
    Mutant("imdsv2", "nodes-template", {"metadataOptions": {"httpTokens": "optional"}}),
    Mutant("imdsv2", "head-instance", {"metadataOptions": None}),
    Mutant("public-bucket", "storage-checkpoints-private", {"blockPublicPolicy": False}),
    Mutant("public-bucket", "storage-results-private", {"bucket": "another"}, owner="storage-results-bucket"),
    Mutant("public-bucket", "storage-data-policy", {"policy": EVERYBODY}),
    Mutant("public-address", "nodes-template", {"networkInterfaces": [{"associatePublicIpAddress": "true"}]}),
    Mutant("pass-role", "access-gpu-node-ssm", {"policy": ALL_ROLES}),
    Mutant("data-protection", "tables-training", {"deletionProtectionEnabled": False}),
    Mutant("data-protection", "storage-checkpoints-bucket", flags={"protect": False}),
    Mutant("data-protection", "storage-data-bucket", flags={"retain": False}),
    Mutant("data-protection", "storage-data-private", flags={"retain": False}),
    Mutant("data-protection", "lustre-lustre", flags={"protect": False}),
    Mutant("data-protection", "lustre-data", flags={"retain": False}),
    Mutant("data-export", "lustre-data", {"s3": exports("NEW", "DELETED")}),
    Mutant("data-export", "lustre-data", {"s3": exports("NEW"), "dataRepositoryPath": "s3://somebody-elses"}),
    Mutant("data-export", "storage-data-versions", {"versioningConfiguration": {"status": "Suspended"}}, owner="lustre-data"),
    Mutant("locks", "lock", flags={"protect": False}),
    Mutant("locks", "policies", flags={"protect": False}),
    Mutant("tags", "network-vpc", {"tags": {"Name": "mine"}}),
    Mutant("tags", "nodes-group", {"tags": []}),
    Mutant("log-retention", "logs-results", {"retentionInDays": None}),
    Mutant("log-retention", "network-flow-log", {"retentionInDays": 0}),
    Mutant("secrets", "nodes-template", {"userData": program.WEBHOOK}),
    Mutant("secrets", "notifications-slack", {"description": program.WEBHOOK}),
    Mutant("secrets", "policies", flags={"secret_props": frozenset({"region"})}),
    Mutant("known-type", "network-vpc", flags={"type_": "aws:rds/instance:Instance"}),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.title)
def test_a_resource_that_breaks_a_policy_is_named(mutant):
    seen = program.example(mutant.stack).registered
    (good,) = [one for one in seen if one.name == mutant.name]
    props = {key: value for key, value in {**good.props, **mutant.props}.items() if value is not None}
    bad = replace(good, props=props, **mutant.flags)
    found = [*judge(bad, SITE), *judge_stack(tuple(bad if one is good else one for one in seen))]
    assert f"[{mutant.rule}] {mutant.owner or mutant.name} (" in " ".join(map(str, found))


def test_every_policy_has_a_mutant():
    assert {mutant.rule for mutant in MUTANTS} == {rule.id for rule in RULES}


def test_the_program_is_stopped_in_the_preview_with_everything_that_is_wrong(monkeypatch):
    """Open locks, and a resource more, of a type that no policy knows."""
    real = cluster.GpuCluster.__init__

    def longer(self: Any, *args: Any) -> None:
        real(self, *args)
        self.extra = aws.rds.Instance("database", instance_class="db.t3.micro")

    monkeypatch.setattr(cluster.GpuCluster, "__init__", longer)
    monkeypatch.setattr(guard, "Lock", lambda after: pulumi.ComponentResource(LOCK, "lock"))
    monkeypatch.setattr(guard, "Outputs", lambda made, opts: pulumi.ComponentResource(OUTPUTS, "policies", made))
    text = str(program.run("spot", preview=True).error)
    assert "[known-type] database (aws:rds/instance:Instance)" in text
    assert f"[locks] lock ({LOCK})" in text and f"[locks] policies ({OUTPUTS})" in text
