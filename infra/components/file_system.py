"""FSx for Lustre, persistent 2 SSD, in the nodes' zone."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import FsxSettings
from infra.planning.fsx import IMPORT_EVENTS

from .base import ClusterPlan, Component

SIDES = ("in", "out")
LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""AWS' page on FSx for Lustre: both directions, for servers open connections to clients as well."""


@dataclass(frozen=True, kw_only=True)
class FileSystemArgs:
    """file_system_id: of one that is there, whose group lets the nodes in; else where one is made, and all beside it.

    fabric_group_id: security group of the clients. data_repository: an s3:// URL that it is linked to. log_group: what
    its warnings go to. fsx: other settings than the plan's.
    """

    file_system_id: pulumi.Input[str] | None = None
    vpc_id: pulumi.Input[str] | None = None
    subnet_id: pulumi.Input[str] | None = None
    fabric_group_id: pulumi.Input[str] | None = None
    log_group: aws.cloudwatch.LogGroup | None = None
    data_repository: pulumi.Input[str] | None = None
    fsx: FsxSettings | None = None


class FileSystem(Component):
    """The file system, its security group, and the link to the data bucket."""

    def __init__(
        self, name: str, plan: ClusterPlan, args: FileSystemArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, plan, opts=opts)
        self.repository = args.data_repository
        if args.file_system_id is None:
            self.file_system = self._make(args)
        else:
            if others := [key for key, value in vars(args).items() if key != "file_system_id" and value is not None]:
                self.refuse(f"file_system_id beside {', '.join(others)}", "one or the other", "leave one out")
            # Read, not made: Pulumi never changes or deletes it. Nodes mount it by names that only FSx knows.
            self.file_system = aws.fsx.LustreFileSystem.get(f"{name}-there", args.file_system_id, opts=self.child())
        self.id = self.file_system.id
        self.dns_name = self.file_system.dns_name
        self.mount_name = self.file_system.mount_name
        self.register_outputs({"dns_name": self.dns_name, "mount_name": self.mount_name})

    def _make(self, args: FileSystemArgs) -> aws.fsx.LustreFileSystem:
        fsx = args.fsx or self.plan.settings.storage.fsx
        vpc_id, subnet_id, clients = args.vpc_id, args.subnet_id, args.fabric_group_id
        if fsx is None or not fsx.size_gib:
            self.refuse("no size and no file_system_id", "one of them", "set fsxSizeGib, or name the one that is there")
        if vpc_id is None or subnet_id is None or clients is None:
            self.refuse("no file_system_id", "vpc_id, subnet_id and fabric_group_id to make one", "name them, or it")
        self._fsx = fsx
        self.group = self.security_group("group", "Lustre between servers and nodes", vpc_id, "lustre")
        made = self._file_system(subnet_id, args.log_group, self._rules(clients))
        if args.data_repository is not None:
            self._link(made, args.data_repository)
        return made

    def _rules(self, clients: pulumi.Input[str]) -> list[pulumi.Resource]:
        servers = self.group.id
        made: list[pulumi.Resource] = []
        for key, owner, peer in (
            ("servers", servers, servers),
            ("from-nodes", servers, clients),
            ("to-nodes", clients, servers),
        ):
            made += [
                self._rule(f"{key}-{ports[0]}-{side}", owner, peer, ports) for ports in LUSTRE_PORTS for side in SIDES
            ]
            if self._fsx.efa:
                # EFA carries no ports: it needs all traffic between the groups, in and out.
                made += [self._rule(f"{key}-efa-{side}", owner, peer, None) for side in SIDES]
        return made

    def _rule(
        self, key: str, owner: pulumi.Input[str], peer: pulumi.Input[str], ports: tuple[int, int] | None
    ) -> pulumi.Resource:
        protocol = "tcp" if ports else "-1"
        return self.rule(key, owner, "Lustre", protocol=protocol, ports=ports, referenced_security_group_id=peer)

    def _file_system(
        self, subnet_id: pulumi.Input[str], log_group: aws.cloudwatch.LogGroup | None, rules: list[pulumi.Resource]
    ) -> aws.fsx.LustreFileSystem:
        fsx, linked = self._fsx, self.repository is not None
        return aws.fsx.LustreFileSystem(
            f"{self._name}-lustre",
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            file_system_type_version="2.15",
            storage_capacity=fsx.size_gib,
            per_unit_storage_throughput=fsx.throughput_mb_s_per_tib,
            subnet_ids=subnet_id,
            security_group_ids=[self.group.id],
            efa_enabled=fsx.efa,
            # An EFA file system must state its metadata servers; the others are better for it too.
            metadata_configuration=aws.fsx.LustreFileSystemMetadataConfigurationArgs(mode="AUTOMATIC"),
            data_compression_type="LZ4",
            # A file system linked to a bucket takes no backups: the bucket is its backup.
            automatic_backup_retention_days=0 if linked else 7,
            skip_final_backup=linked or not self.plan.keep_data,
            copy_tags_to_backups=None if linked else True,
            log_configuration=aws.fsx.LustreFileSystemLogConfigurationArgs(
                level="WARN_ERROR", destination=log_group.arn
            )
            if log_group
            else None,
            kms_key_id=self.plan.key_arn,
            root_squash_configuration=aws.fsx.LustreFileSystemRootSquashConfigurationArgs(
                root_squash=fsx.root_squash, no_squash_nids=list(fsx.no_squash) or None
            )
            if fsx.root_squash
            else None,
            tags=self.tags("lustre"),
            # FSx looks into its security group when it is asked for a file system, and refuses one that is closed.
            # A file system keeps the key it was made with: another one means another file system.
            opts=self.kept(depends_on=rules, ignore_changes=["kmsKeyId"]),
        )

    def _link(self, made: aws.fsx.LustreFileSystem, url: pulumi.Input[str]) -> None:
        exported = self._fsx.export_events
        aws.fsx.DataRepositoryAssociation(
            f"{self._name}-data",
            file_system_id=made.id,
            file_system_path="/data",
            data_repository_path=url,
            batch_import_meta_data_on_create=True,
            s3=aws.fsx.DataRepositoryAssociationS3Args(
                auto_import_policy=aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=list(IMPORT_EVENTS)),
                auto_export_policy=aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=list(exported))
                if exported
                else None,
            ),
            tags=self.tags("lustre"),
            # A kept file system without its link would drift from the bucket, and could not be linked again unasked.
            opts=self.kept(),
        )
