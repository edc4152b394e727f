"""The EKS cluster: its API, who reaches it and from where, the key of its secrets, the log of its control plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import KubernetesSettings
from infra.planning import iam, kubernetes

from .base import child
from .roles import RoleMaker


@dataclass(frozen=True)
class KubernetesClusterArgs:
    """subnet_ids: private, of two zones. retention_days: of the control plane's log."""

    settings: KubernetesSettings
    maker: RoleMaker
    subnet_ids: Sequence[pulumi.Input[str]]
    retention_days: int


class KubernetesCluster(pulumi.ComponentResource):
    """Reached from inside the VPC, and from named public ranges. Only those who are named get in, by access entries."""

    def __init__(self, name: str, args: KubernetesClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:KubernetesCluster", name, {}, opts)
        self._name, self._args = name, args
        self.key = self._key()
        self.log = self._log()
        self.cluster = self._cluster()
        self.name = self.cluster.name
        self.endpoint = self.cluster.endpoint
        self.authority = self.cluster.certificate_authority.apply(lambda made: str(made.data))
        self.security_group_id = self.cluster.vpc_config.apply(lambda made: str(made.cluster_security_group_id))
        self.admins = [self._admin(arn) for arn in args.settings.admins]
        self.register_outputs({"name": self.name, "endpoint": self.endpoint})

    def _key(self) -> aws.kms.Key:
        key = aws.kms.Key(
            f"{self._name}-key",
            description=f"Kubernetes secrets of {self._args.maker.names.kubernetes_cluster}",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            tags=dict(self._args.maker.tags),
            opts=child(self),
        )
        aws.kms.Alias(
            f"{self._name}-key-alias",
            name=self._args.maker.names.kubernetes_key_alias,
            target_key_id=key.id,
            opts=child(self),
        )
        return key

    def _log(self) -> aws.cloudwatch.LogGroup:
        # Made before the cluster, which makes it without a retention.
        return aws.cloudwatch.LogGroup(
            f"{self._name}-log",
            name=self._args.maker.names.kubernetes_log_group,
            retention_in_days=self._args.retention_days,
            tags=dict(self._args.maker.tags),
            opts=child(self),
        )

    def _cluster(self) -> aws.eks.Cluster:
        args, maker = self._args, self._args.maker
        role, rights = maker.role(
            self,
            f"{self._name}-role",
            maker.names.kubernetes_roles["cluster"],
            iam.trust("eks.amazonaws.com", maker.place),
            managed=kubernetes.CLUSTER_MANAGED,
        )
        return aws.eks.Cluster(
            f"{self._name}-cluster",
            name=args.maker.names.kubernetes_cluster,
            version=args.settings.version,
            role_arn=role.arn,
            vpc_config=self._reach(),
            access_config=aws.eks.ClusterAccessConfigArgs(
                # Access entries alone: no ConfigMap in the cluster gives rights, and its maker gets none unnamed.
                authentication_mode="API",
                bootstrap_cluster_creator_admin_permissions=False,
            ),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=self.key.arn), resources=["secrets"]
            ),
            enabled_cluster_log_types=list(kubernetes.LOG_TYPES),
            # The add-ons are EKS' own; without this there would be others of the same purpose first.
            bootstrap_self_managed_addons=False,
            # A control plane that upgrades itself under a run costs more than the months of extended support.
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="EXTENDED"),
            tags=dict(args.maker.tags),
            opts=child(self, depends_on=[self.log, *rights]),
        )

    def _reach(self) -> aws.eks.ClusterVpcConfigArgs:
        public = list(self._args.settings.public_cidrs)
        return aws.eks.ClusterVpcConfigArgs(
            subnet_ids=list(self._args.subnet_ids),
            endpoint_private_access=True,
            endpoint_public_access=bool(public),
            # EKS' default is the world.
            public_access_cidrs=public or None,
        )

    def _admin(self, arn: str) -> aws.eks.AccessPolicyAssociation:
        who = arn.rsplit(":", 1)[-1].replace("/", "-")
        entry = aws.eks.AccessEntry(
            f"{self._name}-{who}",
            cluster_name=self.name,
            principal_arn=arn,
            type="STANDARD",
            tags=dict(self._args.maker.tags),
            opts=child(self),
        )
        return aws.eks.AccessPolicyAssociation(
            f"{self._name}-{who}-admin",
            cluster_name=self.name,
            principal_arn=arn,
            policy_arn=kubernetes.ADMIN_POLICY.format(self._args.maker.place.partition),
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=child(self, depends_on=[entry]),
        )
