"""Settings become components."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra import link, node_package, node_roles, outputs
from infra.components.access import Access, AccessArgs
from infra.components.audit import Audit, AuditArgs
from infra.components.fabric import Fabric, FabricArgs
from infra.components.file_system import FileSystem, FileSystemArgs
from infra.components.functions import Functions, FunctionsArgs
from infra.components.gpu_nodes import GpuNodes, GpuNodesArgs
from infra.components.head_node import HeadNode, HeadNodeArgs
from infra.components.log_groups import LogGroups, LogGroupsArgs
from infra.components.monitoring import Monitoring, MonitoringArgs
from infra.components.network import Network, NetworkArgs
from infra.components.notifications import Notifications, NotificationsArgs
from infra.components.roles import RoleMaker
from infra.components.spending import Spending, SpendingArgs
from infra.components.storage import Storage, StorageArgs
from infra.components.tables import Tables, TablesArgs
from infra.config.model import StackSettings
from infra.images import FoundImage
from infra.kubernetes import Kubernetes, KubernetesFoundation
from infra.planning import tags, user_data
from infra.planning.names import Names, Place

OWN_DATA_BUCKET = "data"


@dataclass(frozen=True)
class ClusterPlan:
    """What every part of the wiring reads. image: None where EKS finds it."""

    settings: StackSettings
    stack: str
    names: Names
    place: Place
    image: FoundImage | None

    @property
    def tags(self) -> dict[str, str]:
        """Tags of every resource."""
        return tags.common_tags(self.settings, self.stack)

    @property
    def maker(self) -> RoleMaker:
        """What every role shares."""
        return RoleMaker(self.names, self.place, self.settings.permissions_boundary, self.tags)

    @property
    def tls_only(self) -> bool:
        """Buckets refuse plain HTTP, but for an emulator, which speaks nothing else."""
        return self.settings.emulator_endpoint is None


@dataclass(frozen=True)
class ShippedRoles:
    """Checksums of what a node configures itself with."""

    sha256: str
    variables_sha256: pulumi.Output[str]


class Cluster:
    """The components of one stack: the ground, and the compute on it."""

    def __init__(self, plan: ClusterPlan) -> None:
        self.plan = plan
        self.artifacts: list[pulumi.Resource] = []
        settings = plan.settings
        self.network = self._network()
        self.logs = self._logs()
        self.storage = self._storage()
        self.tables = Tables("tables", TablesArgs(plan.names, settings.storage.keep_data, plan.tags))
        self.notifications = self._notifications()
        self.access = None if settings.on_kubernetes else self._access()
        self.functions = self._functions()
        self.fabric = self._fabric()
        self.file_system = self._file_system()
        self.kubernetes = self._kubernetes() if settings.on_kubernetes else None
        self.roles: ShippedRoles | None = None
        self.nodes = self.kubernetes.nodes if self.kubernetes else self._nodes()
        self.monitoring = self._monitoring()
        self.head = self._head() if settings.head.enabled else None
        self.audit = self._audit() if settings.audit_trail else None
        self.spending = self._spending() if settings.budget.enabled else None

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

    def _network(self) -> Network:
        settings = self.plan.settings
        return Network(
            "network",
            NetworkArgs(
                settings=settings.network,
                maker=self.plan.maker,
                retention_days=settings.monitoring.log_retention_days,
                express=settings.storage.s3_express,
                head=settings.head.enabled,
                kubernetes=settings.on_kubernetes,
            ),
        )

    def _logs(self) -> LogGroups:
        names = self.plan.names
        groups = {
            "results": names.results_log_group,
            "system": names.system_log_group,
        }
        if self.plan.settings.storage.fsx:
            groups["fsx"] = names.fsx_log_group
        days = self.plan.settings.monitoring.log_retention_days
        return LogGroups("logs", LogGroupsArgs(groups, days, self.plan.tags))

    def _storage(self) -> Storage:
        settings = self.plan.settings
        return Storage(
            "storage",
            StorageArgs(
                settings=settings.storage,
                names=self.plan.names,
                place=self.plan.place,
                gpu_zone_id=settings.network.zones.gpu_id,
                tls_only=self.plan.tls_only,
                tags=self.plan.tags,
            ),
        )

    def _notifications(self) -> Notifications:
        settings = self.plan.settings
        return Notifications(
            "notifications",
            NotificationsArgs(
                settings=settings.notifications,
                names=self.plan.names,
                place=self.plan.place,
                tags=self.plan.tags,
            ),
        )

    def _access(self) -> Access:
        settings = self.plan.settings
        return Access(
            "access",
            AccessArgs(
                maker=self.plan.maker,
                head=settings.head.enabled,
                s3_express=settings.storage.s3_express,
                slack=settings.notifications.slack,
                topic_key_arn=self.notifications.key_arn,
            ),
        )

    def _functions(self) -> Functions:
        settings = self.plan.settings
        return Functions(
            "functions",
            FunctionsArgs(
                slack=settings.notifications.slack,
                # Nodes of Kubernetes have no boot preflight that could fail.
                boot_failures=0 if settings.on_kubernetes else settings.boot.failures,
                retention_days=settings.monitoring.log_retention_days,
                maker=self.plan.maker,
                topic_key_arn=self.notifications.key_arn,
                results_log_group=self.logs.groups["results"].name,
                results_bucket=self.storage.results.name,
            ),
        )

    def _kubernetes(self) -> Kubernetes:
        ready = [self.network, self.fabric]
        return Kubernetes(
            self.plan, KubernetesFoundation(self.network, self.fabric.id, self.notifications.key_arn, ready)
        )

    def _monitoring(self) -> Monitoring:
        settings = self.plan.settings
        return Monitoring(
            "monitoring",
            MonitoringArgs(
                nodes=settings.nodes,
                thresholds=settings.monitoring.thresholds,
                names=self.plan.names,
                place=self.plan.place,
                topic_arn=self.notifications.topic_arn,
                router_queue_arn=self.functions.router_queue_arn,
                system_log_group=self.logs.groups["system"].name,
                tags=self.plan.tags,
                idle_policy_arn=self.nodes.idle_policy.arn if self.nodes.idle_policy else None,
                agent=not settings.on_kubernetes,
            ),
        )

    def _fabric(self) -> Fabric:
        settings = self.plan.settings
        # With a head node people come in through it; the nodes let only members of their group in.
        cidrs = () if settings.head.enabled else settings.access.ssh_cidrs
        return Fabric("fabric", FabricArgs(self.network.vpc.id, settings.cluster_name, self.plan.tags, cidrs))

    def _file_system(self) -> FileSystem | None:
        storage = self.plan.settings.storage
        if storage.fsx is None:
            return None
        repository: pulumi.Input[str] | None = storage.fsx.data_repository
        if repository == OWN_DATA_BUCKET:
            # From the bucket and not from its planned name: the link comes after the bucket.
            repository = self.storage.data.name.apply(lambda bucket: f"s3://{bucket}")
        return FileSystem(
            "lustre",
            FileSystemArgs(
                settings=storage.fsx,
                names=self.plan.names,
                vpc_id=self.network.vpc.id,
                subnet_id=self.network.gpu_subnet_ids[0],
                fabric_group_id=self.fabric.id,
                log_group=self.logs.groups["fsx"],
                data_repository=repository,
                keep_data=storage.keep_data,
                tags=self.plan.tags,
            ),
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
        settings, names = self.plan.settings, self.plan.names
        if self.roles is None:
            return user_data.render(user_data.boot_plan(settings, names, package))
        bundle = self.roles.sha256
        return self.roles.variables_sha256.apply(
            lambda found: user_data.render(
                user_data.boot_plan(settings, names, package, user_data.BootRoles(bundle, found))
            )
        )

    def _nodes(self) -> GpuNodes:
        settings, access, image = self.plan.settings, self.access, self.plan.image
        assert access is not None and image is not None
        built = node_package.package(settings.boot.package)
        package = self._artifact("node-package", self.plan.names.package_key(built.sha256), built.path)
        self.roles = self._roles() if settings.boot.configure else None
        return GpuNodes(
            "nodes",
            GpuNodesArgs(
                settings=settings.nodes,
                names=self.plan.names,
                image_id=image.image_id,
                root_device=image.root_device,
                user_data=self._user_data(built.sha256),
                profile_name=access.node_profile.name,
                security_group_ids=[self.fabric.id],
                subnet_ids=self._node_subnet_ids(),
                time_limit_minutes=settings.boot.time_limit_minutes,
                tags=self.plan.tags,
                instance_tags=tags.instance_tags(settings, self.plan.stack, contract.ROLE_GPU),
                # A node needs its way out, its role's policies and its package from the first second.
                ready=[self.network, access, self.fabric, package, *self.artifacts],
                ssh_key_name=settings.access.ssh_key_name,
            ),
        )

    def _node_subnet_ids(self) -> list[pulumi.Output[str]]:
        several = self.plan.settings.nodes.spot.zones > 1
        return self.network.private_subnet_ids if several else self.network.gpu_subnet_ids

    def _head(self) -> HeadNode:
        settings, ssh = self.plan.settings, self.plan.settings.access.mode == "ssh"
        image, profile = self.plan.image, self.access.head_profile if self.access else None
        assert image is not None and profile is not None
        return HeadNode(
            "head",
            HeadNodeArgs(
                settings=settings.head,
                cluster=settings.cluster_name,
                image_id=image.image_id,
                vpc_id=self.network.vpc.id,
                subnet_id=self.network.public_subnet_id if ssh else self.network.gpu_subnet_ids[0],
                fabric_group_id=self.fabric.id,
                profile_name=profile.name,
                public=ssh,
                ssh_cidrs=settings.access.ssh_cidrs if ssh else (),
                ssh_key_name=settings.access.ssh_key_name,
                tags=self.plan.tags,
                instance_tags=tags.instance_tags(settings, self.plan.stack, contract.ROLE_HEAD),
            ),
        )

    def _audit(self) -> Audit:
        keep = self.plan.settings.storage.keep_data
        return Audit("audit", AuditArgs(self.plan.names, self.plan.place, keep, self.plan.tls_only, self.plan.tags))

    def _spending(self) -> Spending:
        usd = self.plan.settings.budget.monthly_usd
        return Spending("spending", SpendingArgs(self.plan.names, usd, self.notifications.topic_arn, self.plan.tags))
