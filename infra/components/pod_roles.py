"""Roles of the pods of one service account each (Pod Identity)."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra.planning import iam

from .base import ClusterPlan, Component
from .roles import by_purpose

OWN_ACCOUNTS: Mapping[str, tuple[str, str]] = {
    "agent": (contract.KUBE_NAMESPACE, contract.KUBE_AGENT),
    "control": (contract.KUBE_NAMESPACE, contract.KUBE_CONTROL),
    "trainer": (contract.KUBE_TRAINING_NAMESPACE, contract.KUBE_TRAINER),
}
"""Role -> namespace and service account of this project's pods."""


class PodRoles(Component):
    """What this project's own pods may do: the agent on a node, the control side, training."""

    def __init__(
        self, name: str, plan: ClusterPlan, cluster_name: pulumi.Input[str], topic_key_arn: pulumi.Input[str]
    ) -> None:
        """cluster_name: of the cluster as it was made. topic_key_arn: of alerts."""
        super().__init__(name, plan)
        self._cluster_name, self._key_arn = cluster_name, topic_key_arn
        self.arns = {key: self._role(key, *where) for key, where in OWN_ACCOUNTS.items()}
        self.register_outputs(dict(self.arns))

    def _role(self, key: str, namespace: str, account: str) -> pulumi.Output[str]:
        names, place, settings = self.names, self.place, self.plan.settings
        express, slack = settings.storage.s3_express, settings.notifications.slack
        trust = iam.pod_trust(names.kubernetes_cluster, namespace, account, place)
        policies = by_purpose(
            self._key_arn, lambda arn: iam.kubernetes_policies(express, slack, names, place, arn)[key]
        )
        role, _ = self.role(key, names.kubernetes_roles[key], trust, policies)
        aws.eks.PodIdentityAssociation(
            f"{self._name}-{key}-pods",
            cluster_name=self._cluster_name,
            namespace=namespace,
            service_account=account,
            role_arn=role.arn,
            tags=self.tags(),
            opts=self.child(),
        )
        return role.arn
