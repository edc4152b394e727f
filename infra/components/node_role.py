"""The role of an EKS cluster's nodes: to join, to fetch images, and to be reached by Session Manager."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from infra.planning import iam, kubernetes

from .base import text
from .roles import RoleMaker


@dataclass(frozen=True)
class NodeRoleArgs:
    """What every role of the cluster shares."""

    maker: RoleMaker


class NodeRole(pulumi.ComponentResource):
    """One role for both node groups; EKS gives it its access entry."""

    def __init__(self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:NodeRole", name, {}, opts)
        maker = args.maker
        documents = iam.kubernetes_policies(False, False, maker.names, maker.place, "")["nodes"]
        role, _ = maker.role(
            self,
            f"{name}-nodes",
            maker.names.kubernetes_roles["nodes"],
            iam.trust("ec2.amazonaws.com", maker.place),
            {purpose: text(document) for purpose, document in documents.items()},
            kubernetes.NODE_MANAGED,
        )
        self.arn = role.arn
        self.register_outputs({"arn": self.arn})
