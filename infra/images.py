"""The nodes' image: which one it is, whether it fits the nodes, and what its root device is called."""

from collections.abc import Iterator
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.aws_query import aws_query
from infra.config.errors import ConfigError, Mistake
from infra.config.model import ImageSettings, StackSettings


@dataclass(frozen=True)
class FoundImage:
    """An image as EC2 knows it. smallest_gib: what a root volume must hold; 0 where EC2 does not say."""

    image_id: str
    architecture: str
    root_device: str
    smallest_gib: int


def find(settings: StackSettings) -> FoundImage:
    """Resolve the image now, so that every node of this update gets the same one. Raises ConfigError."""
    image = settings.image
    name = image.ami_id or image.ssm_parameter
    with aws_query(
        f"the image {name} in {settings.region}", "set flightline:ami to one that this account may use there"
    ):
        found = _look_up(image)
    mistakes = tuple(_mistakes(settings, found))
    if mistakes:
        raise ConfigError(mistakes)
    return found


def _look_up(image: ImageSettings) -> FoundImage:
    image_id = image.ami_id or _chosen(str(image.ssm_parameter), image.pin)
    # A volume mapped under another name than the image's root device would be a second, empty disk, and the root
    # volume would keep the image's own size and encryption.
    ami = aws.ec2.get_ami(
        filters=[aws.ec2.GetAmiFilterArgs(name="image-id", values=[image_id])], include_deprecated=True
    )
    root = [one.ebs for one in ami.block_device_mappings if one.device_name == ami.root_device_name]
    sizes = [int(ebs.get("volume_size") or 0) for ebs in root]
    return FoundImage(image_id, ami.architecture, ami.root_device_name, max(sizes, default=0))


def _chosen(parameter: str, pin: str | None) -> str:
    """The pinned image, or the newest. A newer one is said and not taken: nodes of one group run one image."""
    newest = _parameter(parameter)
    if pin is None or pin == newest:
        return newest
    pulumi.log.warn(
        f"{parameter} names {newest} by now; nodes keep {pin}. To take it: pulumi config rm flightline:amiPin, make "
        "up, then replace the nodes in batches (docs/deploy.md)"
    )
    return pin


def _parameter(name: str) -> str:
    # `value` would be a secret to Pulumi, whatever the parameter holds.
    return aws.ssm.get_parameter(name=name).insecure_value


def _mistakes(settings: StackSettings, found: FoundImage) -> Iterator[Mistake]:
    """What would fail only when an instance is launched."""
    wanted = settings.image.architecture
    if found.architecture != wanted:
        seen = f"{found.image_id} for {found.architecture}"
        yield Mistake("ami", seen, f"an image for {wanted}, the architecture of {settings.nodes.instance_type}")
    volumes = {"rootVolumeGib": settings.nodes.root_volume_gib}
    if settings.head.enabled:
        volumes["headRootVolumeGib"] = settings.head.root_volume_gib
    for key, size_gib in volumes.items():
        if size_gib < found.smallest_gib:
            yield Mistake(key, str(size_gib), f"at least {found.smallest_gib} GiB, the size of {found.image_id}")
