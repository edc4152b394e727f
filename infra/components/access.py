"""Roles of the nodes."""

from collections.abc import Callable

import pulumi
import pulumi_aws as aws

from infra.planning import iam

from .base import ClusterPlan, Component
from .roles import by_purpose


class Access(Component):
    """The GPU nodes' role and profile, and the head node's where there is one."""

    def __init__(self, name: str, plan: ClusterPlan, topic_key_arn: pulumi.Input[str]) -> None:
        """topic_key_arn: the key of the alerts topic, which a node must use to publish."""
        super().__init__(name, plan)
        settings, names, place = plan.settings, plan.names, plan.place
        self._key_arn = topic_key_arn
        self.node_profile = self._profile(
            "gpu-node",
            names.node_role,
            names.node_profile,
            lambda arn: iam.node_policies(settings.storage.s3_express, names, place, arn),
        )
        self.head_profile: aws.iam.InstanceProfile | None = None
        if settings.head.enabled:
            self.head_profile = self._profile(
                "head-node",
                names.head_role,
                names.head_profile,
                lambda arn: iam.head_policies(settings.notifications.slack, names, place, arn),
            )
        self.register_outputs({"node_profile": self.node_profile.name})

    def _profile(
        self, key: str, role_name: str, profile_name: str, documents: Callable[[str], dict[str, iam.Document]]
    ) -> aws.iam.InstanceProfile:
        trust = iam.trust("ec2.amazonaws.com", self.place)
        role, _ = self.role(key, role_name, trust, by_purpose(self._key_arn, documents))
        return aws.iam.InstanceProfile(
            f"{self._name}-{key}-profile", name=profile_name, role=role.name, tags=self.tags(), opts=self.child()
        )
