"""Node groups of an EKS cluster: GPU nodes by the EC2 path's launch template, and nodes for the cluster's own pods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra.config.model import CapacitySettings
from infra.planning import efa, instance_types, kubernetes

from .base import ClusterPlan, Component
from .launch_template import TemplateArgs, launch_template, placement_group

TIMEOUT = "60m"
"""What a group may take to come, change or go: a node drains first, and large machines are slow."""


@dataclass(frozen=True)
class KubernetesNodesArgs:
    """Of both groups. security_group_ids: the fabric's and the cluster's own, which EKS adds to no template of ours.

    ready: what must be there before a node is, the add-ons that make one ready among it.
    """

    cluster_name: pulumi.Input[str]
    role_arn: pulumi.Input[str]
    security_group_ids: Sequence[pulumi.Input[str]]
    subnet_ids: Sequence[pulumi.Input[str]]
    ready: Sequence[pulumi.Resource] = ()


class KubernetesGpuNodes(Component):
    """A GPU node joins under a taint that only a go removes; EKS does not put it back (its guide, Taint GPU nodes)."""

    def __init__(self, name: str, plan: ClusterPlan, args: KubernetesNodesArgs) -> None:
        super().__init__(name, plan)
        self._args = args
        self.idle_policy: aws.autoscaling.Policy | None = None
        self.placement_group = placement_group(self)
        self.template = self._template()
        self.group = self._group()
        self.group_name = self.group.resources.apply(_autoscaling_group)
        self.register_outputs({"group": self.group.node_group_name, "template_id": self.template.id})

    def _template(self) -> aws.ec2.LaunchTemplate:
        nodes = self.plan.settings.nodes
        return launch_template(
            self,
            TemplateArgs(
                physical_name=self.names.launch_template,
                # Of several spot types the node group names all; a template with one would shut the others out.
                instance_type=None if nodes.spot.types else nodes.instance_type,
                interfaces=efa.interfaces(nodes.instance_type, nodes.efa),
                security_group_ids=self._args.security_group_ids,
                root_device=kubernetes.ROOT_DEVICE,
                root_volume_gib=nodes.root_volume_gib,
                user_data=kubernetes.node_config(self.plan.settings.kubernetes.pods_per_node),
                role=contract.ROLE_GPU,
                capacity=nodes.capacity,
                # The node group asks for spot itself; a capacity block is named in both.
                market=nodes.capacity.kind == instance_types.CAPACITY_BLOCK,
                placement_group=self.placement_group,
            ),
        )

    def _group(self) -> aws.eks.NodeGroup:
        nodes = self.plan.settings.nodes
        architecture = instance_types.facts(nodes.instance_type).architecture
        return aws.eks.NodeGroup(
            f"{self._name}-group",
            node_group_name=self.names.node_group,
            **_common(self, self._args, self.template),
            ami_type=kubernetes.image_type(architecture, nvidia=True),
            capacity_type=kubernetes.CAPACITY_TYPES[nodes.capacity.kind],
            instance_types=list(nodes.types) if nodes.spot.types else None,
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=nodes.minimum,
                # EKS takes no group that can have no node.
                max_size=max(1, nodes.maximum),
                desired_size=nodes.count,
            ),
            labels=kubernetes.gpu_labels(),
            taints=[aws.eks.NodeGroupTaintArgs(key=contract.KUBE_STARTUP_TAINT, effect=kubernetes.TAINT_EFFECT)],
            # MINIMAL ends a node before it starts another: of reserved machines there is none to spare.
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1, update_strategy="MINIMAL"),
            opts=_options(self, self._args.ready),
        )


class KubernetesSystemNodes(Component):
    """Nodes without a GPU: the cluster's DNS, drivers, monitoring and control side have to be somewhere."""

    def __init__(self, name: str, plan: ClusterPlan, args: KubernetesNodesArgs) -> None:
        super().__init__(name, plan)
        chosen = plan.settings.kubernetes
        self.template = launch_template(
            self,
            TemplateArgs(
                physical_name=plan.names.cpu_node_group,
                instance_type=chosen.cpu_instance_type,
                interfaces=(efa.PRIMARY,),
                security_group_ids=args.security_group_ids,
                root_device=kubernetes.ROOT_DEVICE,
                root_volume_gib=chosen.cpu_root_volume_gib,
                user_data=kubernetes.node_config(chosen.pods_per_node),
                role=contract.ROLE_CPU,
                capacity=CapacitySettings(kind=instance_types.ON_DEMAND, reservation_id=None),
                market=False,
            ),
        )
        architecture = instance_types.architecture_of(chosen.cpu_instance_type)
        self.group = aws.eks.NodeGroup(
            f"{name}-group",
            node_group_name=plan.names.cpu_node_group,
            **_common(self, args, self.template),
            ami_type=kubernetes.image_type(architecture, nvidia=False),
            capacity_type="ON_DEMAND",
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=1, max_size=chosen.cpu_maximum, desired_size=chosen.cpu_count
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            opts=_options(self, args.ready),
        )
        self.register_outputs({"group": self.group.node_group_name})


def _common(of: Component, args: KubernetesNodesArgs, template: aws.ec2.LaunchTemplate) -> dict[str, Any]:
    """What both groups say."""
    chosen = of.plan.settings.kubernetes
    return {
        "cluster_name": args.cluster_name,
        "node_role_arn": args.role_arn,
        "subnet_ids": list(args.subnet_ids),
        "version": chosen.version,
        "release_version": chosen.node_release,
        "launch_template": aws.eks.NodeGroupLaunchTemplateArgs(
            id=template.id, version=template.latest_version.apply(str)
        ),
        # Pods that do not go in time hold an update up; they are not ended for it.
        "force_update_version": False,
        "tags": of.tags(),
    }


def _options(parent: Component, ready: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    timeouts = pulumi.CustomTimeouts(create=TIMEOUT, update=TIMEOUT, delete=TIMEOUT)
    return parent.child(depends_on=list(ready), custom_timeouts=timeouts)


def _autoscaling_group(resources: Sequence[Any]) -> str:
    """The group that EKS made for the nodes."""
    return str(resources[0].autoscaling_groups[0].name)
