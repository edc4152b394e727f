"""What an instance is launched with: one launch template of GPU nodes, whoever launches them, and of nodes without."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import CapacitySettings
from infra.planning import instance_types
from infra.planning.efa import PlannedInterface

from .base import Component

TAGGED = ("instance", "volume", "network-interface")


@dataclass(frozen=True)
class TemplateArgs:
    """instance_type, image_id, profile_name: None where a node group brings them. user_data: as cloud-init reads it.

    market: the template asks for spot or a capacity block; false where the group itself does.
    """

    physical_name: str
    instance_type: str | None
    interfaces: Sequence[PlannedInterface]
    security_group_ids: Sequence[pulumi.Input[str]]
    root_device: str
    root_volume_gib: int
    user_data: pulumi.Input[str]
    role: str
    capacity: CapacitySettings
    market: bool
    max_price_usd_per_hour: str | None = None
    placement_group: pulumi.Input[str] | None = None
    image_id: pulumi.Input[str] | None = None
    profile_name: pulumi.Input[str] | None = None
    ssh_key_name: str | None = None


def placement_group(parent: Component) -> pulumi.Output[str] | None:
    """The name of the nodes' group: one that is made, one that is there already, or none."""
    settings, key = parent.plan.settings.nodes, f"{parent.pulumi_resource_name}-placement"
    if settings.create_placement_group:
        name, tags = parent.names.placement_group, parent.tags()
        return aws.ec2.PlacementGroup(key, name=name, strategy="cluster", tags=tags, opts=parent.child()).name
    given = settings.placement_group
    return pulumi.Output.from_input(given) if given else None


def launch_template(parent: Component, args: TemplateArgs) -> aws.ec2.LaunchTemplate:
    """The template, a child of what launches from it."""
    profile = args.profile_name
    return aws.ec2.LaunchTemplate(
        f"{parent.pulumi_resource_name}-template",
        name=args.physical_name,
        update_default_version=True,
        image_id=args.image_id,
        instance_type=args.instance_type,
        key_name=args.ssh_key_name,
        ebs_optimized="true",
        iam_instance_profile=aws.ec2.LaunchTemplateIamInstanceProfileArgs(name=profile) if profile else None,
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            http_put_response_hop_limit=parent.plan.settings.access.metadata_hops,
        ),
        block_device_mappings=[_root_volume(args, parent.plan.key_arn)],
        network_interfaces=[_interface(one, args.security_group_ids) for one in args.interfaces],
        placement=_placement(args),
        capacity_reservation_specification=_reservation(args.capacity),
        instance_market_options=_market(args) if args.market else None,
        monitoring=aws.ec2.LaunchTemplateMonitoringArgs(enabled=True),
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=parent.plan.instance_tags(args.role))
            for kind in TAGGED
        ],
        user_data=pulumi.Output.from_input(args.user_data).apply(_encoded),
        tags=parent.tags(),
        opts=parent.child(),
    )


def _root_volume(args: TemplateArgs, key_arn: pulumi.Input[str] | None) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=args.root_device,
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            encrypted="true",
            kms_key_id=key_arn,
            volume_type="gp3",
            volume_size=args.root_volume_gib,
            delete_on_termination="true",
        ),
    )


def _interface(
    plan: PlannedInterface, security_group_ids: Sequence[pulumi.Input[str]]
) -> aws.ec2.LaunchTemplateNetworkInterfaceArgs:
    return aws.ec2.LaunchTemplateNetworkInterfaceArgs(
        network_card_index=plan.card,
        device_index=plan.device,
        interface_type=plan.kind,
        delete_on_termination=str(plan.delete_on_termination).lower(),
        associate_public_ip_address=None if plan.public_address is None else str(plan.public_address).lower(),
        security_groups=list(security_group_ids),
    )


def _placement(args: TemplateArgs) -> aws.ec2.LaunchTemplatePlacementArgs | None:
    if args.placement_group is None:
        return None
    return aws.ec2.LaunchTemplatePlacementArgs(group_name=args.placement_group)


def _reservation(capacity: CapacitySettings) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    if capacity.reservation_id is None or capacity.then_on_demand:
        return None
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
        # The one preference that EC2 takes beside a target: fail rather than buy on demand.
        capacity_reservation_preference="capacity-reservations-only",
        capacity_reservation_target=aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
            capacity_reservation_id=capacity.reservation_id
        ),
    )


def _market(args: TemplateArgs) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    kind, price = args.capacity.kind, args.max_price_usd_per_hour
    if kind not in (instance_types.SPOT, instance_types.CAPACITY_BLOCK):
        return None
    return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(
        market_type=kind,
        spot_options=aws.ec2.LaunchTemplateInstanceMarketOptionsSpotOptionsArgs(max_price=price) if price else None,
    )


def _encoded(user_data: str) -> str:
    return base64.b64encode(user_data.encode()).decode()
