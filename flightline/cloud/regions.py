"""AWS' regions, as the installed botocore knows them."""

from __future__ import annotations

from flightline_node.model import SettingsError
from flightline_node.suggest import meant


def known_region(region: str) -> str:
    """The region itself. Raises SettingsError for one that nobody knows: asking it would end at a name without host."""
    import boto3

    session = boto3.session.Session()
    parts = session.get_available_partitions()
    known = sorted({name for part in parts for name in session.get_available_regions("ec2", part)})
    if region not in known:
        wanted = f"an AWS region{meant(region, known)}; do: correct it, or update botocore for a new one"
        raise SettingsError(f"region: saw {region!r}, wanted {wanted}")
    return region
