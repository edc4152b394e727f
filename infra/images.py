"""The nodes' image: which one it is, and what its root device is called."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi_aws as aws

from infra.config.model import Image


@dataclass(frozen=True)
class Found:
    """image_id and root_device as EC2 knows them."""

    image_id: str
    root_device: str


def find(image: Image) -> Found:
    """Resolve the image now, so that every node of this update gets the same one."""
    image_id = image.ami_id or _parameter(str(image.ssm_parameter))
    # A volume mapped under another name than the image's root device would be a second, empty disk, and the root
    # volume would keep the image's own size and encryption.
    found = aws.ec2.get_ami(filters=[aws.ec2.GetAmiFilterArgs(name="image-id", values=[image_id])])
    return Found(image_id, found.root_device_name)


def _parameter(name: str) -> str:
    # `value` would be a secret to Pulumi, whatever the parameter holds.
    return aws.ssm.get_parameter(name=name).insecure_value
