"""Each policy is broken once in the program itself, and the guard must stop the run, naming the resource and the rule.

A mutant changes the arguments of one call that the program makes, as a careless edit of a component would.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Callable

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes.helm.v3 as helm
import pytest

from infra import cluster, guard, outputs
from infra.policies import RULES
from infra.policies.locks import LOCK
from infra.policies.secrets import OUTPUTS
from tests.infra import program

ALL_ROLES = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"}]}
)
EVERYBODY = json.dumps(
    {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}]}
)


@dataclass(frozen=True)
class Mutant:
    """change: new arguments of the call that makes the resource. options: new resource options. stack: the example."""

    rule: str
    module: Any
    kind: str
    name: str
    change: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    stack: str = "p5-reservation"

    @property
    def title(self) -> str:
        return f"{self.rule}-{self.name}-{'-'.join([*self.change, *self.options])}"

    @property
    def owner(self) -> str:
        """The resource that the rule names when it looks from another side."""
        name = self.name.replace("-private", "-bucket").replace("-encryption", "-bucket")
        return name.replace("storage-data-versions", "lustre-data")


def unencrypted() -> Any:
    ebs = aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(encrypted="false", volume_type="gp3")
    return [aws.ec2.LaunchTemplateBlockDeviceMappingArgs(device_name="/dev/sda1", ebs=ebs)]


def exporting(*events: str) -> Any:
    policy = aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=list(events))
    return aws.fsx.DataRepositoryAssociationS3Args(auto_export_policy=policy)


def eks(rule: str, kind: str, logical: str, /, **change: Any) -> Mutant:
    """A mutant of the Kubernetes example."""
    return Mutant(rule, aws.eks, kind, logical, change, stack="eks")


MUTANTS = [
    eks("open-ingress", "Cluster", "kubernetes-cluster",
        vpc_config=aws.eks.ClusterVpcConfigArgs(
            subnet_ids=["subnet-1", "subnet-2"], endpoint_private_access=True, endpoint_public_access=True)),
    eks("encryption-at-rest", "Cluster", "kubernetes-cluster", encryption_config=None),
    eks("cluster-access", "Cluster", "kubernetes-cluster", access_config=None),
    eks("log-retention", "Cluster", "kubernetes-cluster", name="another"),
    eks("unproven-nodes", "NodeGroup", "nodes-group", taints=None),
    Mutant("pinned-charts", helm, "Release", "charts-dcgm-exporter", {"version": None}, stack="eks"),
    eks("tags", "NodeGroup", "system-group", tags={"Name": "mine"}),
    Mutant("open-ingress", aws.vpc, "SecurityGroupIngressRule", "fabric-self-in",
           {"referenced_security_group_id": None, "cidr_ipv4": "0.0.0.0/0"}),
    Mutant("open-ingress", aws.vpc, "SecurityGroupIngressRule", "lustre-from-nodes-988-in",
           {"referenced_security_group_id": None, "cidr_ipv6": "::/0"}),
    Mutant("encryption-at-rest", aws.ec2, "LaunchTemplate", "nodes-template", {"block_device_mappings": unencrypted()}),
    Mutant("encryption-at-rest", aws.dynamodb, "Table", "tables-results", {"server_side_encryption": None}),
    Mutant("encryption-at-rest", aws.sns, "Topic", "notifications-alerts", {"kms_master_key_id": None}),
    Mutant("encryption-at-rest", aws.s3, "BucketServerSideEncryptionConfiguration", "storage-data-encryption",
           {"bucket": "another-bucket"}),
    Mutant("encryption-at-rest", aws.ec2, "Instance", "head-instance", {"root_block_device": None}),
    Mutant("imdsv2", aws.ec2, "LaunchTemplate", "nodes-template",
           {"metadata_options": aws.ec2.LaunchTemplateMetadataOptionsArgs(http_tokens="optional")}),
    Mutant("imdsv2", aws.ec2, "Instance", "head-instance", {"metadata_options": None}),
    Mutant("public-bucket", aws.s3, "BucketPublicAccessBlock", "storage-checkpoints-private",
           {"block_public_policy": False}),
    Mutant("public-bucket", aws.s3, "BucketPublicAccessBlock", "storage-results-private", {"bucket": "another-bucket"}),
    Mutant("public-bucket", aws.s3, "BucketPolicy", "storage-data-policy", {"policy": EVERYBODY}),
    Mutant("public-address", aws.ec2, "LaunchTemplate", "nodes-template",
           {"network_interfaces": [aws.ec2.LaunchTemplateNetworkInterfaceArgs(associate_public_ip_address="true")]}),
    Mutant("pass-role", aws.iam, "RolePolicy", "access-gpu-node-ssm", {"policy": ALL_ROLES}),
    Mutant("data-protection", aws.dynamodb, "Table", "tables-training", {"deletion_protection_enabled": False}),
    Mutant("data-protection", aws.s3, "Bucket", "storage-checkpoints-bucket", {}, {"protect": False}),
    Mutant("data-protection", aws.s3, "Bucket", "storage-data-bucket", {}, {"retain_on_delete": False}),
    Mutant("data-protection", aws.s3, "BucketPublicAccessBlock", "storage-data-private", {}, {"retain_on_delete": False}),
    Mutant("data-protection", aws.fsx, "LustreFileSystem", "lustre-lustre", {}, {"protect": False}),
    Mutant("data-export", aws.fsx, "DataRepositoryAssociation", "lustre-data", {"s3": exporting("NEW", "DELETED")}),
    Mutant("data-export", aws.fsx, "DataRepositoryAssociation", "lustre-data",
           {"s3": exporting("NEW"), "data_repository_path": "s3://somebody-elses"}),
    Mutant("data-export", aws.s3, "BucketVersioning", "storage-data-versions",
           {"versioning_configuration": {"status": "Suspended"}}),
    Mutant("data-protection", aws.fsx, "DataRepositoryAssociation", "lustre-data", {}, {"retain_on_delete": False}),
    Mutant("tags", aws.ec2, "Vpc", "network-vpc", {"tags": {"Name": "mine"}}),
    Mutant("tags", aws.autoscaling, "Group", "nodes-group", {"tags": []}),
    Mutant("log-retention", aws.cloudwatch, "LogGroup", "logs-results", {"retention_in_days": None}),
    Mutant("log-retention", aws.cloudwatch, "LogGroup", "network-flow-log", {"retention_in_days": 0}),
    Mutant("secrets", aws.ec2, "LaunchTemplate", "nodes-template", {"user_data": program.WEBHOOK}),
    Mutant("secrets", aws.secretsmanager, "Secret", "notifications-slack", {"description": program.WEBHOOK}),
]  # fmt: skip


def rounds() -> list[list[Mutant]]:
    """The mutants in as few runs as keep them apart: one per resource and run, and one that leaks a secret alone, because
    it stops the run at once."""
    made: list[list[Mutant]] = []
    for mutant in MUTANTS:
        free = (one for one in made if _takes(one, mutant))
        fitting = None if mutant.rule == "secrets" else next(free, None)
        if fitting is None:
            made.append(fitting := [])
        fitting.append(mutant)
    return made


def _takes(together: list[Mutant], mutant: Mutant) -> bool:
    """Whether a mutant may run with these; several of one call change it together."""
    first = together[0]
    if first.stack != mutant.stack or first.rule == "secrets":
        return False
    changed = {key for other in together if other.name == mutant.name for key in (*other.change, *other.options)}
    alone = mutant.owner not in {other.owner for other in together}
    return alone or (mutant.stack == "eks" and not changed & {*mutant.change, *mutant.options})


def install(monkeypatch: pytest.MonkeyPatch, mutant: Mutant, changed: list[str]) -> None:
    """Change one call of the SDK's class; `changed` says afterwards which calls were changed."""
    made = getattr(mutant.module, mutant.kind)
    real = made.__init__

    def init(self: Any, logical: str, /, *positional: Any, **keywords: Any) -> None:
        if logical == mutant.name:
            changed.append(logical)
            keywords.update(mutant.change)
            for key, value in mutant.options.items():
                setattr(keywords["opts"], key, value)
        real(self, logical, *positional, **keywords)

    monkeypatch.setattr(made, "__init__", init)


@pytest.fixture(scope="module")
def refused() -> Callable[[Mutant], str]:
    """What the preview with this mutant (and the others of its round) ended with."""
    told: dict[str, str] = {}

    def run(mutant: Mutant) -> str:
        if mutant.title not in told:
            together = next(one for one in rounds() if mutant in one)
            changed: list[str] = []
            with pytest.MonkeyPatch.context() as patch:
                for one in together:
                    install(patch, one, changed)
                more = program.FULL if mutant.stack == "p5-reservation" else None
                result = program.run(mutant.stack, preview=True, changes=more)
            assert sorted(changed) == sorted(one.name for one in together), (
                "a mutant changed nothing and proves nothing"
            )
            told.update({one.title: str(result.error) for one in together})
        return told[mutant.title]

    return run


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.title)
def test_a_program_that_breaks_a_policy_is_stopped_in_the_preview(mutant, refused):
    text = refused(mutant)
    assert f"[{mutant.rule}] {mutant.name} (" in text or f"[{mutant.rule}] {mutant.owner} (" in text


def test_the_program_as_it_stands_is_not_stopped():
    assert program.run("p5-reservation", preview=True, changes=program.FULL).error is None


def test_every_policy_has_a_mutant():
    others = {"known-type", "locks"}
    assert {mutant.rule for mutant in MUTANTS} | others == {rule.id for rule in RULES}


def added(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]) -> Any:
    """The program with one more resource."""
    real = cluster.Cluster.__init__

    def longer(self: Any, plan: Any) -> None:
        real(self, plan)
        self.extra = make()

    monkeypatch.setattr(cluster.Cluster, "__init__", longer)
    return program.run("dev", preview=True)


def test_a_resource_of_a_type_that_no_policy_knows_is_stopped(monkeypatch):
    result = added(monkeypatch, lambda: aws.rds.Instance("database", instance_class="db.t3.micro"))
    assert "[known-type] database (aws:rds/instance:Instance)" in str(result.error)


@pytest.mark.parametrize(
    ("made", "instead", "name", "kind"),
    [
        ("Lock", lambda after: pulumi.ComponentResource(LOCK, "lock"), "lock", LOCK),
        ("Outputs", lambda made, opts: pulumi.ComponentResource(OUTPUTS, "policies", made), "policies", OUTPUTS),
    ],
)
def test_an_open_lock_is_stopped(monkeypatch, made, instead, name, kind):
    monkeypatch.setattr(guard, made, instead)
    assert f"[locks] {name} ({kind})" in str(program.run("spot", preview=True).error)


def test_data_without_a_lock_is_stopped(monkeypatch):
    monkeypatch.setattr(guard, "Lock", lambda after: pulumi.ComponentResource("flightline:infra:Nothing", "lock"))
    assert "it is kept without a flightline:policy:Lock" in str(program.run("spot", preview=True).error)


def test_an_output_that_is_a_secret_is_stopped(monkeypatch):
    real = outputs.outputs
    monkeypatch.setattr(outputs, "outputs", lambda made: {**real(made), "webhook": pulumi.Output.secret("x")})
    result = program.run("dev", preview=True)
    assert "[secrets] policies" in str(result.error)


def test_the_unchanged_program_passes():
    assert program.full(preview=True).error is None
