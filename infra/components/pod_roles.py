"""Roles of the pods of one service account each (Pod Identity)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra.planning import iam

from .base import child
from .roles import RoleMaker, by_purpose

OWN_ACCOUNTS: Mapping[str, tuple[str, str]] = {
    "agent": (contract.KUBE_NAMESPACE, contract.KUBE_AGENT),
    "control": (contract.KUBE_NAMESPACE, contract.KUBE_CONTROL),
    "trainer": (contract.KUBE_TRAINING_NAMESPACE, contract.KUBE_TRAINER),
}
"""Role -> namespace and service account of this project's pods."""


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
        args, maker = self._args, self._args.maker
        names, place = maker.names, maker.place
        trust = iam.pod_trust(names.kubernetes_cluster, namespace, account, place)
        policies = by_purpose(
            args.topic_key_arn,
            lambda arn: iam.kubernetes_policies(args.s3_express, args.slack, names, place, arn)[key],
        )
        role, _ = maker.role(self, f"{self._name}-{key}", names.kubernetes_roles[key], trust, policies)
        aws.eks.PodIdentityAssociation(
            f"{self._name}-{key}-pods",
            cluster_name=args.cluster_name,
            namespace=namespace,
            service_account=account,
            role_arn=role.arn,
            tags=dict(maker.tags),
            opts=child(self),
        )
        return role.arn
