"""FSx for Lustre, persistent 2 SSD, in the nodes' zone."""

import pulumi
import pulumi_aws as aws

from infra.config.model import FsxSettings
from infra.planning.fsx import IMPORT_EVENTS

from .base import ClusterPlan, Component

SIDES = ("in", "out")
LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""AWS' page on FSx for Lustre: both directions, for servers open connections to clients as well."""


class FileSystem(Component):
    """The file system, its security group, and the link to the data bucket."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        fsx: FsxSettings,
        vpc_id: pulumi.Input[str],
        subnet_id: pulumi.Input[str],
        fabric_group_id: pulumi.Input[str],
        log_group: aws.cloudwatch.LogGroup,
        data_repository: pulumi.Input[str] | None,
    ) -> None:
        """data_repository: an s3:// URL or None. fabric_group_id: security group of the clients."""
        super().__init__(name, plan)
        self._fsx, self.repository = fsx, data_repository
        self.group = self.security_group("group", "Lustre between servers and nodes", vpc_id, "lustre")
        self.file_system = self._file_system(subnet_id, log_group, self._rules(fabric_group_id))
        self.id = self.file_system.id
        self.dns_name = self.file_system.dns_name
        self.mount_name = self.file_system.mount_name
        if data_repository is not None:
            self._link(data_repository)
        self.register_outputs({"dns_name": self.dns_name, "mount_name": self.mount_name})

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
        self, subnet_id: pulumi.Input[str], log_group: aws.cloudwatch.LogGroup, rules: list[pulumi.Resource]
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
            ),
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

    def _link(self, url: pulumi.Input[str]) -> None:
        exported = self._fsx.export_events
        aws.fsx.DataRepositoryAssociation(
            f"{self._name}-data",
            file_system_id=self.file_system.id,
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
