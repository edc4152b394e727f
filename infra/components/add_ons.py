"""EKS add-ons, each with the role of its service account where its pods call AWS."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from infra.planning import iam, kubernetes

from .base import ClusterPlan, Component, text


class AddOns(Component):
    """One without a version has EKS' default for the cluster's on the day it is made; an update is asked for."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        add_ons: Sequence[kubernetes.AddOn],
        cluster_name: pulumi.Input[str],
        ready: Sequence[pulumi.Resource] = (),
    ) -> None:
        """ready: what must be there before they are: for most of them nodes."""
        super().__init__(name, plan)
        self._cluster_name, self._ready = cluster_name, ready
        self.made = [self._add_on(one) for one in add_ons]
        self.register_outputs({"names": [one.name for one in add_ons]})

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
            cluster_name=self._cluster_name,
            configuration_values=one.configuration,
            pod_identity_associations=identities,
            resolve_conflicts_on_create="OVERWRITE",
            # What somebody changed in the cluster stays.
            resolve_conflicts_on_update="PRESERVE",
            tags=self.tags(),
            opts=self.child(depends_on=[*self._ready, *rights]),
        )

    def _role(self, one: kubernetes.AddOn) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        return self.role(
            f"{one.role}-role",
            self.names.kubernetes_roles[one.role],
            iam.pod_trust(self.names.kubernetes_cluster, kubernetes.SYSTEM, one.account, self.place),
            {purpose: text(document) for purpose, document in self._documents().get(one.role, {}).items()},
            (one.managed,) if one.managed else (),
        )

    def _documents(self) -> Mapping[str, Mapping[str, iam.Document]]:
        # Of no add-on do they depend on what the stack's pods may need.
        return iam.kubernetes_policies(False, False, self.names, self.place, "")
