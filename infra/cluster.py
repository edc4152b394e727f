"""Settings become components."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra import link, node_package, node_roles, outputs
from infra.components.access import Access
from infra.components.audit import Audit
from infra.components.base import ClusterPlan
from infra.components.fabric import Fabric
from infra.components.file_system import FileSystem
from infra.components.functions import Functions
from infra.components.gpu_nodes import GpuNodes
from infra.components.head_node import HeadNode
from infra.components.keys import with_key
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


class Cluster:
    """The components of one stack: the ground, and the compute on it."""

    def __init__(self, plan: ClusterPlan) -> None:
        self.plan = plan = with_key(plan)
        self.artifacts: list[pulumi.Resource] = []
        settings = plan.settings
        self.network = Network("network", plan)
        self.logs = LogGroups("logs", plan)
        self.storage = Storage("storage", plan)
        self.tables = Tables("tables", plan)
        self.notifications = Notifications("notifications", plan)
        key_arn = self.notifications.key_arn
        self.access = None if settings.on_kubernetes else Access("access", plan, key_arn)
        group, bucket = self.logs.groups["results"].name, self.storage.results.name
        self.functions = Functions("functions", plan, key_arn, group, bucket)
        self.fabric = Fabric("fabric", plan, self.network.vpc.id)
        self.file_system = self._file_system()
        self.kubernetes = self._kubernetes() if settings.on_kubernetes else None
        self.roles: ShippedRoles | None = None
        self.nodes = self.kubernetes.nodes if self.kubernetes else self._nodes()
        self.monitoring = self._monitoring()
        self.head = self._head() if settings.head.enabled else None
        self.audit = Audit("audit", plan) if settings.audit_trail else None
        topic_arn = self.notifications.topic_arn
        self.spending = Spending("spending", plan, topic_arn) if settings.budget.enabled else None

    @property
    def compute(self) -> list[pulumi.Resource]:
        """The nodes, and what hangs on them: what `make down-compute` tears down."""
        # With idle scale-in an alarm names the nodes' policy, and goes and comes with it.
        idle = self.monitoring if self.nodes.idle_policy else None
        return [part for part in (self.nodes, self.head, idle) if part is not None]

    @property
    def foundation(self) -> list[pulumi.Resource]:
        """Everything else."""
        parts = [part for part in vars(self).values() if isinstance(part, pulumi.Resource)]
        parts += self.kubernetes.foundation if self.kubernetes else []
        return [part for part in parts if part not in self.compute]

    def _kubernetes(self) -> Kubernetes:
        ready = [self.network, self.fabric]
        return Kubernetes(
            self.plan, KubernetesFoundation(self.network, self.fabric.id, self.notifications.key_arn, ready)
        )

    def _monitoring(self) -> Monitoring:
        return Monitoring(
            "monitoring",
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
        repository: pulumi.Input[str] | None = fsx.data_repository
        if repository == OWN_DATA_BUCKET:
            # From the bucket and not from its planned name: the link comes after the bucket.
            repository = self.storage.data.name.apply(lambda bucket: f"s3://{bucket}")
        return FileSystem(
            "lustre",
            self.plan,
            fsx,
            vpc_id=self.network.vpc.id,
            subnet_id=self.network.private_subnet_ids[0],
            fabric_group_id=self.fabric.id,
            log_group=self.logs.groups["fsx"],
            data_repository=repository,
        )

    def _artifact(
        self, name: str, key: pulumi.Input[str], file: Path | None = None, content: pulumi.Input[str] | None = None
    ) -> aws.s3.BucketObjectv2:
        return aws.s3.BucketObjectv2(
            name,
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
        return GpuNodes(
            "nodes",
            self.plan,
            user_data=self._user_data(built.sha256),
            profile_name=access.node_profile.name,
            security_group_ids=[self.fabric.id],
            subnet_ids=self.network.gpu_subnet_ids,
            # A node needs its way out, its role's policies, its package and who tells its group from the first second.
            ready=[self.network, access, self.fabric, self.functions, package, *self.artifacts],
        )

    def _head(self) -> HeadNode:
        ssh, profile = self.plan.settings.access.mode == "ssh", self.access.head_profile if self.access else None
        assert profile is not None
        return HeadNode(
            "head",
            self.plan,
            vpc_id=self.network.vpc.id,
            subnet_id=self.network.public_subnet_id if ssh else self.network.private_subnet_ids[0],
            fabric_group_id=self.fabric.id,
            profile_name=profile.name,
        )
