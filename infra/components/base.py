"""What components share: the stack's plan, options of children, documents as text, what several make alike."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import pulumi
import pulumi_aws as aws

from infra.config.model import StackSettings
from infra.images import FoundImage
from infra.planning import keys, tags
from infra.planning.names import Names, Place


@dataclass(frozen=True)
class ClusterPlan:
    """What every component reads. image: None where EKS finds it. key_arn: of what is stored; None: AWS' own keys.

    within: the cluster whose parts are made; part_prefix: what their logical names begin with.
    """

    settings: StackSettings
    stack: str
    names: Names
    place: Place
    image: FoundImage | None = None
    key_arn: pulumi.Input[str] | None = None
    within: pulumi.Resource | None = None
    part_prefix: str = ""

    def part(self, name: str) -> str:
        """Logical name of a part of the cluster."""
        return f"{self.part_prefix}{name}"

    @property
    def tags(self) -> dict[str, str]:
        """Tags of every resource."""
        return tags.common_tags(self.settings, self.stack)

    def instance_tags(self, role: str) -> dict[str, str]:
        """Tags of an instance of one role."""
        return tags.instance_tags(self.settings, self.stack, role)

    @property
    def keep_data(self) -> bool:
        """Whether data outlives the stack."""
        return self.settings.storage.keep_data

    @property
    def tls_only(self) -> bool:
        """Buckets refuse plain HTTP, but for an emulator, which speaks nothing else on loopback."""
        return self.settings.emulator_endpoint is None


class Component(pulumi.ComponentResource):
    """A part of the stack, of its class's type. What it makes is its child and named after it."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        parent: pulumi.Resource | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """parent: a component that this one is inside of; without one it is a part of the plan's cluster, if any."""
        where = pulumi.ResourceOptions(parent=parent or plan.within)
        if not parent and plan.within and not plan.part_prefix:
            # Parts without a prefix stood at the top before their cluster was a component.
            where.aliases = [pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
        merged = pulumi.ResourceOptions.merge(where, opts)
        super().__init__(f"flightline:infra:{type(self).__name__}", name, {}, merged)
        self._name, self.plan, self.names, self.place = name, plan, plan.names, plan.place

    def refuse(self, saw: str, wanted: str, do: str) -> NoReturn:
        """End the program with one sentence."""
        raise pulumi.RunError(f"{self.pulumi_resource_name}: saw {saw}; wanted {wanted}; do: {do}")

    def child(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a child."""
        return pulumi.ResourceOptions(parent=self, **options)

    def kept(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a child that holds data: while it is to be kept, Pulumi neither replaces nor deletes it."""
        return self.child(protect=self.plan.keep_data, retain_on_delete=self.plan.keep_data, **options)

    def named_before(self, key: str, *ignored: str, **options: Any) -> tuple[str, pulumi.ResourceOptions]:
        """Logical name and options of a child whose physical name had no region yet: what is there keeps its name.

        By the cluster, because its name is ignored: another cluster's is another resource.
        """
        name = f"{self._name}-{key}"
        options["aliases"] = [pulumi.Alias(name=name)]
        return f"{name}-{self.names.cluster}", self.child(ignore_changes=["name", *ignored], **options)

    def tags(self, shown: str = "") -> dict[str, str]:
        """Tags of a child. shown: the rest of the Name that consoles show, after the cluster's."""
        return {**self.plan.tags, **({"Name": f"{self.names.cluster}-{shown}"} if shown else {})}

    def log_group(self, key: str, name: str) -> aws.cloudwatch.LogGroup:
        """A log group with a retention, because one that a writer makes for itself never forgets."""
        return aws.cloudwatch.LogGroup(
            f"{self._name}-{key}",
            name=name,
            retention_in_days=self.plan.settings.monitoring.log_retention_days,
            kms_key_id=self.plan.key_arn,
            tags=self.tags(),
            opts=self.child(),
        )

    def key(self, description: str, alias: str, policy: str | None = None, kept: bool = False) -> aws.kms.Key:
        """A key of the stack and its alias. kept: as long as data is."""
        made = aws.kms.Key(
            f"{self._name}-key",
            description=description,
            enable_key_rotation=True,
            deletion_window_in_days=30,
            policy=policy,
            tags=self.tags(),
            opts=self.kept() if kept else self.child(),
        )
        aws.kms.Alias(f"{self._name}-key-alias", name=alias, target_key_id=made.id, opts=self.child())
        return made

    def security_group(
        self, key: str, description: str, vpc_id: pulumi.Input[str], shown: str
    ) -> aws.ec2.SecurityGroup:
        """A security group without rules."""
        return aws.ec2.SecurityGroup(
            f"{self._name}-{key}", description=description, vpc_id=vpc_id, tags=self.tags(shown), opts=self.child()
        )

    def rule(
        self,
        key: str,
        group_id: pulumi.Input[str],
        description: str,
        *,
        protocol: str = "tcp",
        ports: tuple[int, int] | None = None,
        shown: str = "",
        **other_side: pulumi.Input[str],
    ) -> pulumi.Resource:
        """A rule of a security group: outward where its key ends in -out. ports: first and last; None for all.

        other_side: `cidr_ipv4` or `referenced_security_group_id`.
        """
        kind = aws.vpc.SecurityGroupEgressRule if key.endswith("-out") else aws.vpc.SecurityGroupIngressRule
        first, last = ports or (None, None)
        return kind(
            f"{self._name}-{key}",
            security_group_id=group_id,
            description=description,
            ip_protocol=protocol,
            from_port=first,
            to_port=last,
            tags=self.tags(shown),
            opts=self.child(),
            **other_side,
        )

    def role(
        self,
        key: str,
        physical_name: str,
        trust: Mapping[str, Any],
        policies: Mapping[str, pulumi.Input[str]] | None = None,
        managed: tuple[str, ...] = (),
        suffix: str = "",
    ) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        """A role, and what gives it its rights: whoever uses it waits for those. policies: inline ones by purpose."""
        name, key_arn = "-".join(filter(None, (self._name, key))), self.plan.key_arn
        if policies and key_arn:
            use = pulumi.Output.from_input(key_arn).apply(lambda arn: text(keys.use_policy(arn, self.place)))
            policies = {**policies, "key": use}
        role = aws.iam.Role(
            f"{name}{suffix}",
            name=physical_name,
            assume_role_policy=text(trust),
            permissions_boundary=self.plan.settings.permissions_boundary,
            tags=self.tags(),
            opts=self.child(),
        )
        rights: list[pulumi.Resource] = [
            aws.iam.RolePolicy(f"{name}-{purpose}", name=purpose, role=role.name, policy=policy, opts=self.child())
            for purpose, policy in (policies or {}).items()
        ]
        rights += [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy.rsplit('/', 1)[-1]}",
                role=role.name,
                policy_arn=f"arn:{self.place.partition}:iam::aws:policy/{policy}",
                opts=self.child(),
            )
            for policy in managed
        ]
        return role, rights


def text(document: Mapping[str, Any]) -> str:
    """A policy document as JSON, the same text on every run."""
    return json.dumps(document, sort_keys=True)
