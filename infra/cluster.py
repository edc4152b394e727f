"""Settings become a cluster: which component gets what."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra import link, node_package, node_roles, outputs
from infra.components.access import Access
from infra.components.audit import Audit
from infra.components.base import ClusterPlan, Component
from infra.components.fabric import Fabric, FabricArgs
from infra.components.file_system import FileSystem, FileSystemArgs
from infra.components.functions import Functions
from infra.components.gpu_nodes import GpuNodes, GpuNodesArgs
from infra.components.head_node import HeadNode
from infra.components.keys import with_key
from infra.components.kubernetes_cluster import KubernetesCluster
from infra.components.log_groups import LogGroups
from infra.components.monitoring import Monitoring
from infra.components.network import Network
from infra.components.notifications import Notifications
from infra.components.spending import Spending
from infra.components.storage import Storage
from infra.components.tables import Tables
from infra.kubernetes import Kubernetes, KubernetesFoundation
from infra.planning import user_data

OWN_DATA_BUCKET = "data"


@dataclass(frozen=True)
class ShippedRoles:
    """Checksums of what a node configures itself with."""

    sha256: str
    variables_sha256: pulumi.Output[str]


@dataclass(frozen=True, kw_only=True)
class GpuClusterArgs:
    """Components that the program made itself; each that is not given is made here, as the plan's settings say.

    at_top: parts keep the names and, by aliases, the places that they had before their cluster was a component: for a
    stack that `infra/` made then. Else their names begin with the cluster's, so that a program may have several.
    """

    network: Network | None = None
    fabric: Fabric | None = None
    file_system: FileSystem | None = None
    results: Storage | None = None
    alerts: Notifications | None = None
    eks_cluster: KubernetesCluster | None = None
    at_top: bool = False


class GpuCluster(Component):
    """The components of one cluster: the ground, and the compute on it."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        args: GpuClusterArgs | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, plan, opts=opts)
        self._given = args or GpuClusterArgs()
        prefix = "" if self._given.at_top else f"{name}-"
        self.plan = plan = with_key(replace(plan, within=self, part_prefix=prefix))
        self.artifacts: list[pulumi.Resource] = []
        settings, part = plan.settings, plan.part
        if self._given.eks_cluster and not settings.on_kubernetes:
            self.refuse("an EKS cluster", f"none with orchestrator {settings.orchestrator}", "set orchestrator eks")
        self.network = self._given.network or Network(part("network"), plan)
        self.logs = LogGroups(part("logs"), plan)
        self.storage = self._given.results or Storage(part("storage"), plan)
        self.tables = Tables(part("tables"), plan)
        self.notifications = self._given.alerts or Notifications(part("notifications"), plan)
        key_arn = self.notifications.key_arn
        self.access = None if settings.on_kubernetes else Access(part("access"), plan, key_arn)
        group, bucket = self.logs.groups["results"].name, self.storage.results.name
        self.functions = Functions(part("functions"), plan, key_arn, group, bucket)
        self.fabric = self._given.fabric or Fabric(part("fabric"), plan, self._fabric_args())
        self.file_system = self._given.file_system or self._file_system()
        self.kubernetes = self._kubernetes() if settings.on_kubernetes else None
        self.roles: ShippedRoles | None = None
        self.nodes = self.kubernetes.nodes if self.kubernetes else self._nodes()
        self.monitoring = self._monitoring()
        self.head = self._head() if settings.head.enabled else None
        self.audit = Audit(part("audit"), plan) if settings.audit_trail else None
        topic_arn = self.notifications.topic_arn
        self.spending = Spending(part("spending"), plan, topic_arn) if settings.budget.enabled else None
        self.register_outputs({"node_group": self.nodes.group_name})

    @property
    def compute(self) -> list[pulumi.Resource]:
        """The nodes, and what hangs on them: what `make down-compute` tears down."""
        # With idle scale-in an alarm names the nodes' policy, and goes and comes with it.
        idle = self.monitoring if self.nodes.idle_policy else None
        return [part for part in (self.nodes, self.head, idle) if part is not None]

    @property
    def foundation(self) -> list[pulumi.Resource]:
        """Everything else."""
        parts: list[pulumi.Resource] = [part for part in vars(self).values() if isinstance(part, Component)]
        parts += self.kubernetes.foundation if self.kubernetes else []
        return [part for part in parts if part not in self.compute]

    def _kubernetes(self) -> Kubernetes:
        ready = [self.network, self.fabric]
        on = KubernetesFoundation(
            self.network, self.fabric.id, self.notifications.key_arn, ready, self._given.eks_cluster
        )
        return Kubernetes(self.plan, on)

    def _fabric_args(self) -> FabricArgs:
        there = self.plan.settings.network.security_group_id
        return FabricArgs(security_group_id=there) if there else FabricArgs(vpc_id=self.network.vpc_id)

    def _monitoring(self) -> Monitoring:
        return Monitoring(
            self.plan.part("monitoring"),
            self.plan,
            topic_arn=self.notifications.topic_arn,
            router_queue_arn=self.functions.router_queue_arn,
            system_log_group=self.logs.groups["system"].name,
            idle_policy_arn=self.nodes.idle_policy.arn if self.nodes.idle_policy else None,
        )

    def _file_system(self) -> FileSystem | None:
        fsx = self.plan.settings.storage.fsx
        if fsx is None:
            return None
        part = self.plan.part("lustre")
        if fsx.file_system_id:
            return FileSystem(part, self.plan, FileSystemArgs(file_system_id=fsx.file_system_id))
        repository: pulumi.Input[str] | None = fsx.data_repository
        if repository == OWN_DATA_BUCKET:
            # From the bucket and not from its planned name: the link comes after the bucket.
            repository = self.storage.data.name.apply(lambda bucket: f"s3://{bucket}")
        args = FileSystemArgs(
            vpc_id=self.network.vpc_id,
            subnet_id=self.network.private_subnet_ids[0],
            fabric_group_id=self.fabric.id,
            log_group=self.logs.groups["fsx"],
            data_repository=repository,
        )
        return FileSystem(part, self.plan, args)

    def _artifact(
        self, name: str, key: pulumi.Input[str], file: Path | None = None, content: pulumi.Input[str] | None = None
    ) -> aws.s3.BucketObjectv2:
        return aws.s3.BucketObjectv2(
            self.plan.part(name),
            bucket=self.storage.results.name,
            key=key,
            source=pulumi.FileAsset(str(file)) if file else None,
            content=content,
            # S3 takes ten tags for an object; the site's own may be more.
            tags={key: self.plan.tags[key] for key in contract.COMMON_TAGS},
            # An instance that is booting may still fetch what the last update brought.
            opts=pulumi.ResourceOptions(parent=self.storage, retain_on_delete=True),
        )

    def _roles(self) -> ShippedRoles:
        """What nodes configure themselves with; the checksums go into the launch template."""
        names, built = self.plan.names, node_roles.package()
        variables = pulumi.Output.json_dumps({link.VARIABLE: outputs.node_variables(self)}, sort_keys=True)
        sha256 = variables.apply(lambda text: hashlib.sha256(text.encode()).hexdigest())
        self.artifacts = [
            self._artifact("node-roles", names.roles_key(built.sha256), built.path),
            self._artifact("node-variables", sha256.apply(names.variables_key), content=variables),
        ]
        return ShippedRoles(built.sha256, sha256)

    def _user_data(self, package: str) -> pulumi.Input[str]:
        settings, names, place = self.plan.settings, self.plan.names, self.plan.place
        if self.roles is None:
            return user_data.render(user_data.boot_plan(settings, names, place, package))
        bundle = self.roles.sha256
        return self.roles.variables_sha256.apply(
            lambda found: user_data.render(
                user_data.boot_plan(settings, names, place, package, user_data.BootRoles(bundle, found))
            )
        )

    def _nodes(self) -> GpuNodes:
        settings, access = self.plan.settings, self.access
        assert access is not None
        built = node_package.package(settings.boot.package)
        package = self._artifact("node-package", self.plan.names.package_key(built.sha256), built.path)
        self.roles = self._roles() if settings.boot.configure else None
        args = GpuNodesArgs(
            user_data=self._user_data(built.sha256),
            profile_name=access.node_profile.name,
            security_group_ids=[self.fabric.id],
            subnet_ids=self.network.gpu_subnet_ids,
            # A node needs its way out, its role's policies, its package and who tells its group from the first second.
            ready=[self.network, access, self.fabric, self.functions, package, *self.artifacts],
        )
        return GpuNodes(self.plan.part("nodes"), self.plan, args)

    def _head(self) -> HeadNode:
        ssh, profile = self.plan.settings.access.mode == "ssh", self.access.head_profile if self.access else None
        assert profile is not None
        return HeadNode(
            self.plan.part("head"),
            self.plan,
            vpc_id=self.network.vpc_id,
            subnet_id=self.network.public_subnet_id if ssh else self.network.private_subnet_ids[0],
            fabric_group_id=self.fabric.id,
            profile_name=profile.name,
        )
