"""EKS add-ons, each with the role of its service account where its pods call AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.planning import iam, kubernetes

from .base import child, text
from .roles import RoleMaker


@dataclass(frozen=True)
class AddOnsArgs:
    """ready: what must be there before they are: for most of them nodes."""

    add_ons: Sequence[kubernetes.AddOn]
    maker: RoleMaker
    cluster_name: pulumi.Input[str]
    ready: Sequence[pulumi.Resource] = ()


class AddOns(pulumi.ComponentResource):
    """One without a version has EKS' default for the cluster's on the day it is made; an update is asked for."""

    def __init__(self, name: str, args: AddOnsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:AddOns", name, {}, opts)
        self._name, self._args = name, args
        self.made = [self._add_on(one) for one in args.add_ons]
        self.register_outputs({"names": [one.name for one in args.add_ons]})

    def _add_on(self, one: kubernetes.AddOn) -> aws.eks.Addon:
        rights: list[pulumi.Resource] = []
        identities = None
        if one.role:
            role, rights = self._role(one)
            identities = [aws.eks.AddonPodIdentityAssociationArgs(role_arn=role.arn, service_account=one.account)]
        return aws.eks.Addon(
            f"{self._name}-{one.name}",
            addon_name=one.name,
            addon_version=one.version,
            cluster_name=self._args.cluster_name,
            configuration_values=one.configuration,
            pod_identity_associations=identities,
            resolve_conflicts_on_create="OVERWRITE",
            # What somebody changed in the cluster stays.
            resolve_conflicts_on_update="PRESERVE",
            tags=dict(self._args.maker.tags),
            opts=child(self, depends_on=[*self._args.ready, *rights]),
        )

    def _role(self, one: kubernetes.AddOn) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        maker = self._args.maker
        return maker.role(
            self,
            f"{self._name}-{one.role}-role",
            maker.names.kubernetes_roles[one.role],
            iam.pod_trust(maker.names.kubernetes_cluster, kubernetes.SYSTEM, one.account, maker.place),
            {purpose: text(document) for purpose, document in self._documents().get(one.role, {}).items()},
            (one.managed,) if one.managed else (),
        )

    def _documents(self) -> Mapping[str, Mapping[str, iam.Document]]:
        # Of no add-on do they depend on what the stack's pods may need.
        return iam.kubernetes_policies(False, False, self._args.maker.names, self._args.maker.place, "")
