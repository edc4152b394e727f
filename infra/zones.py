"""What AWS says about the account and the region, asked before any resource."""

import pulumi_aws as aws

from infra.aws_query import aws_query
from infra.planning.names import Place
from infra.planning.zones import Zone, ZoneOffering

_BY_ZONE_ID = "availability-zone-id"


def ask(instance_type: str) -> ZoneOffering:
    """The region's own zones (no local zones) and those that offer the type."""
    with aws_query(f"the zones that offer {instance_type}", "the region in aws:region"):
        zones = aws.get_availability_zones(
            state="available", filters=[{"name": "opt-in-status", "values": ["opt-in-not-required"]}]
        )
        offered = aws.ec2.get_instance_type_offerings(
            filters=[{"name": "instance-type", "values": [instance_type]}], location_type=_BY_ZONE_ID
        )
    return ZoneOffering(
        zones=tuple(Zone(name, zone_id) for name, zone_id in zip(zones.names, zones.zone_ids, strict=True)),
        offering=frozenset(offered.locations),
    )


def place(region: str) -> Place:
    """Partition and account of the credentials in use."""
    with aws_query("the account", "the region in aws:region"):
        return Place(aws.get_partition().partition, region, aws.get_caller_identity().account_id)
