"""The role of an EKS cluster's nodes: to join, to fetch images, and to be reached by Session Manager."""

from infra.planning import iam, kubernetes

from .base import ClusterPlan, Component, text


class NodeRole(Component):
    """One role for both node groups; EKS gives it its access entry."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        documents = iam.kubernetes_policies(False, False, plan.names, plan.place, "")["nodes"]
        role, _ = self.role(
            "nodes",
            plan.names.kubernetes_roles["nodes"],
            iam.trust("ec2.amazonaws.com", plan.place),
            {purpose: text(document) for purpose, document in documents.items()},
            kubernetes.NODE_MANAGED,
        )
        self.arn = role.arn
        self.register_outputs({"arn": self.arn})
