"""Roles of an EKS cluster: of EKS itself, of nodes, and of the pods of one service account each (Pod Identity)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra.planning import iam
from infra.planning.names import Names, Place

from .base import child, text

OWN_ACCOUNTS: Mapping[str, tuple[str, str]] = {
    "agent": (contract.KUBE_NAMESPACE, contract.KUBE_AGENT),
    "control": (contract.KUBE_NAMESPACE, contract.KUBE_CONTROL),
    "trainer": (contract.KUBE_TRAINING_NAMESPACE, contract.KUBE_TRAINER),
}
"""Role -> namespace and service account of this project's pods."""


@dataclass(frozen=True)
class RoleMaker:
    """What every role of the cluster shares."""

    names: Names
    place: Place
    permissions_boundary: str | None
    tags: Mapping[str, str]

    def role(
        self,
        parent: pulumi.Resource,
        name: str,
        key: str,
        trust: iam.Document,
        documents: Mapping[str, pulumi.Input[str]] | None = None,
        managed: tuple[str, ...] = (),
    ) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        """A role of KUBERNETES_ROLES, and what gives it its rights: whoever uses it waits for those."""
        role = aws.iam.Role(
            name,
            name=self.names.kubernetes_roles[key],
            assume_role_policy=text(trust),
            permissions_boundary=self.permissions_boundary,
            tags=dict(self.tags),
            opts=child(parent),
        )
        rights: list[pulumi.Resource] = [
            aws.iam.RolePolicy(f"{name}-{purpose}", name=purpose, role=role.name, policy=policy, opts=child(parent))
            for purpose, policy in (documents or {}).items()
        ]
        rights += [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy.rsplit('/', 1)[-1]}",
                role=role.name,
                policy_arn=f"arn:{self.place.partition}:iam::aws:policy/{policy}",
                opts=child(parent),
            )
            for policy in managed
        ]
        return role, rights

    def service(self, service: str) -> iam.Document:
        """Trust of an AWS service."""
        return iam.trust(service, self.place)

    def pods(self, namespace: str, account: str) -> iam.Document:
        """Trust of one service account's pods."""
        return iam.pod_trust(self.names.kubernetes_cluster, namespace, account, self.place)


@dataclass(frozen=True)
class PodRolesArgs:
    """cluster_name: of the cluster as it was made. s3_express, slack: what pods may need. topic_key_arn: of alerts."""

    maker: RoleMaker
    cluster_name: pulumi.Input[str]
    s3_express: bool
    slack: bool
    topic_key_arn: pulumi.Input[str]


class PodRoles(pulumi.ComponentResource):
    """What this project's own pods may do: the agent on a node, the control side, training."""

    def __init__(self, name: str, args: PodRolesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:PodRoles", name, {}, opts)
        self._name, self._args = name, args
        self.arns = {key: self._role(key, *where) for key, where in OWN_ACCOUNTS.items()}
        self.register_outputs(dict(self.arns))

    def _role(self, key: str, namespace: str, account: str) -> pulumi.Output[str]:
        maker = self._args.maker
        role, _ = maker.role(self, f"{self._name}-{key}", key, maker.pods(namespace, account), self._policies(key))
        aws.eks.PodIdentityAssociation(
            f"{self._name}-{key}-pods",
            cluster_name=self._args.cluster_name,
            namespace=namespace,
            service_account=account,
            role_arn=role.arn,
            tags=dict(maker.tags),
            opts=child(self),
        )
        return role.arn

    def _policies(self, key: str) -> dict[str, pulumi.Input[str]]:
        """By purpose; what they say may depend on the key of the alerts, which purposes there are does not."""
        arn = pulumi.Output.from_input(self._args.topic_key_arn)
        return {
            purpose: arn.apply(self._writer(key, purpose)) for purpose in self._documents(key, "arn:aws:kms:::key/x")
        }

    def _writer(self, key: str, purpose: str) -> Callable[[str], str]:
        return lambda arn: text(self._documents(key, arn)[purpose])

    def _documents(self, key: str, topic_key_arn: str) -> Mapping[str, iam.Document]:
        args, maker = self._args, self._args.maker
        return iam.kubernetes_policies(args.s3_express, args.slack, maker.names, maker.place, topic_key_arn)[key]
