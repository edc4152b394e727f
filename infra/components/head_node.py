"""The head node: Slurm controller, control node, and the way in with SSH."""

import pulumi
import pulumi_aws as aws

from flightline import contract

from .base import ClusterPlan, Component


class HeadNode(Component):
    """One instance without a GPU, a member of the nodes' security group.

    With SSH from given ranges it has a public address; with Session Manager it needs none.
    """

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        vpc_id: pulumi.Input[str],
        subnet_id: pulumi.Input[str],
        fabric_group_id: pulumi.Input[str],
        profile_name: pulumi.Input[str],
    ) -> None:
        super().__init__(name, plan)
        settings, access, image = plan.settings.head, plan.settings.access, plan.image
        assert image is not None
        ssh, tags = access.mode == "ssh", plan.instance_tags(contract.ROLE_HEAD)
        groups = [fabric_group_id, *([self._access_group(vpc_id).id] if ssh else [])]
        self.instance = aws.ec2.Instance(
            f"{name}-instance",
            ami=image.image_id,
            instance_type=settings.instance_type,
            key_name=access.ssh_key_name,
            subnet_id=subnet_id,
            associate_public_ip_address=ssh,
            vpc_security_group_ids=groups,
            iam_instance_profile=profile_name,
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=access.metadata_hops
            ),
            root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
                encrypted=True, kms_key_id=plan.key_arn, volume_type="gp3", volume_size=settings.root_volume_gib
            ),
            volume_tags=tags,
            tags=tags,
            # A newer image or another key must not replace the controller under a running queue.
            opts=self.child(ignore_changes=["ami", "rootBlockDevice.kmsKeyId"]),
        )
        self.instance_id = self.instance.id
        self.register_outputs({"instance_id": self.instance.id})

    def _access_group(self, vpc_id: pulumi.Input[str]) -> aws.ec2.SecurityGroup:
        said = "SSH to the head node from the ranges that the stack names"
        group = self.security_group("access", said, vpc_id, "access")
        for cidr in self.plan.settings.access.ssh_cidrs:
            self.rule(f"ssh-{cidr}", group.id, "SSH", ports=(22, 22), cidr_ipv4=cidr)
        return group
