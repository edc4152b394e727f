"""The EKS cluster: its API, who reaches it and from where, the key of its secrets, the log of its control plane."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from infra.config.model import KubernetesSettings
from infra.planning import iam, kubernetes

from .base import ClusterPlan, Component


class KubernetesCluster(Component):
    """Reached from inside the VPC, and from named public ranges. Only those who are named get in, by access entries.

    A cluster that is there already (eksCluster) is asked for what nodes need of it, and stays as it is.
    """

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        subnet_ids: Sequence[pulumi.Input[str]] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """subnet_ids: private, of two zones, where one is made."""
        super().__init__(name, plan, opts=opts)
        if plan.settings.kubernetes.cluster:
            self._join(plan.settings.kubernetes.cluster)
        elif len(subnet_ids) > 1:
            self._make(subnet_ids)
        else:
            self.refuse(
                f"{len(subnet_ids)} subnets", "two of two zones, or eksCluster", "name them, or the cluster there"
            )
        self.register_outputs({"name": self.name, "endpoint": self.endpoint})

    def _join(self, cluster: str) -> None:
        self.name = pulumi.Output.from_input(cluster)
        there = aws.eks.get_cluster_output(name=cluster)
        self.endpoint = there.endpoint
        self.authority = there.certificate_authorities.apply(lambda found: str(found[0].data))
        self.security_group_id = there.vpc_config.apply(lambda found: str(found.cluster_security_group_id))

    def _make(self, subnet_ids: Sequence[pulumi.Input[str]]) -> None:
        plan, names, settings = self.plan, self.names, self.plan.settings.kubernetes
        self.secrets_key = self.key(f"Kubernetes secrets of {names.kubernetes_cluster}", names.kubernetes_key_alias)
        self._encrypts_with = plan.key_arn or self.secrets_key.arn
        # Made before the cluster, which makes it without a retention.
        self.log = self.log_group("log", names.kubernetes_log_group)
        self.cluster = self._cluster(settings, subnet_ids)
        self.name = self.cluster.name
        self.endpoint = self.cluster.endpoint
        self.authority = self.cluster.certificate_authority.apply(lambda made: str(made.data))
        self.security_group_id = self.cluster.vpc_config.apply(lambda made: str(made.cluster_security_group_id))
        self.admins = [self._admin(arn) for arn in settings.admins]

    def _cluster(self, settings: KubernetesSettings, subnet_ids: Sequence[pulumi.Input[str]]) -> aws.eks.Cluster:
        trust = iam.trust("eks.amazonaws.com", self.place)
        role, rights = self.role(
            "role", self.names.kubernetes_roles["cluster"], trust, managed=kubernetes.CLUSTER_MANAGED
        )
        public = list(settings.public_cidrs)
        return aws.eks.Cluster(
            f"{self._name}-cluster",
            name=self.names.kubernetes_cluster,
            version=settings.version,
            role_arn=role.arn,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=list(subnet_ids),
                endpoint_private_access=True,
                endpoint_public_access=bool(public),
                # EKS' default is the world.
                public_access_cidrs=public or None,
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                # Access entries alone: no ConfigMap in the cluster gives rights, and its maker gets none unnamed.
                authentication_mode="API",
                bootstrap_cluster_creator_admin_permissions=False,
            ),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=self._encrypts_with),
                resources=["secrets"],
            ),
            enabled_cluster_log_types=list(kubernetes.LOG_TYPES),
            # The add-ons are EKS' own; without this there would be others of the same purpose first.
            bootstrap_self_managed_addons=False,
            # A control plane that upgrades itself under a run costs more than the months of extended support.
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="EXTENDED"),
            tags=self.tags(),
            # A cluster keeps the key it was made with, so the stack's key for it stays whatever kmsKey says.
            opts=self.child(depends_on=[self.log, *rights], ignore_changes=["encryptionConfig"]),
        )

    def _admin(self, arn: str) -> aws.eks.AccessPolicyAssociation:
        who = arn.rsplit(":", 1)[-1].replace("/", "-")
        entry = aws.eks.AccessEntry(
            f"{self._name}-{who}",
            cluster_name=self.name,
            principal_arn=arn,
            type="STANDARD",
            tags=self.tags(),
            opts=self.child(),
        )
        return aws.eks.AccessPolicyAssociation(
            f"{self._name}-{who}-admin",
            cluster_name=self.name,
            principal_arn=arn,
            policy_arn=kubernetes.ADMIN_POLICY.format(self.place.partition),
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=self.child(depends_on=[entry]),
        )
