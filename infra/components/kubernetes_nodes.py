"""Node groups of an EKS cluster: GPU nodes by the EC2 path's launch template, and nodes for the cluster's own pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra.config.model import CapacitySettings, KubernetesSettings, NodesSettings
from infra.planning import efa, instance_types, kubernetes
from infra.planning.names import Names

from .base import child
from .launch_template import TemplateArgs, launch_template, placement_group

TIMEOUT = "60m"
"""What a group may take to come, change or go: a node drains first, and large machines are slow."""

METADATA_HOPS = 1
"""Pods have roles of their own (Pod Identity): none reaches the node's."""


@dataclass(frozen=True)
class KubernetesNodesArgs:
    """Of both groups. security_group_ids: the fabric's and the cluster's own, which EKS adds to no template of ours.

    ready: what must be there before a node is, the add-ons that make one ready among it.
    """

    nodes: NodesSettings
    kubernetes: KubernetesSettings
    names: Names
    cluster_name: pulumi.Input[str]
    role_arn: pulumi.Input[str]
    security_group_ids: Sequence[pulumi.Input[str]]
    subnet_ids: Sequence[pulumi.Input[str]]
    tags: Mapping[str, str]
    instance_tags: Mapping[str, str]
    ready: Sequence[pulumi.Resource] = ()


class KubernetesGpuNodes(pulumi.ComponentResource):
    """A GPU node joins under a taint that only a go removes; EKS does not put it back (its guide, Taint GPU nodes)."""

    def __init__(self, name: str, args: KubernetesNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:KubernetesGpuNodes", name, {}, opts)
        self._name, self._args = name, args
        self.idle_policy: aws.autoscaling.Policy | None = None
        self.placement_group = placement_group(self, name, args.nodes, args.names, args.tags)
        self.template = self._template()
        self.group = self._group()
        self.group_name = self.group.resources.apply(_autoscaling_group)
        self.register_outputs({"group": self.group.node_group_name, "template_id": self.template.id})

    def _template(self) -> aws.ec2.LaunchTemplate:
        args, nodes = self._args, self._args.nodes
        return launch_template(
            self,
            self._name,
            TemplateArgs(
                physical_name=args.names.launch_template,
                # Of several spot types the node group names all; a template with one would shut the others out.
                instance_type=None if nodes.spot.types else nodes.instance_type,
                interfaces=efa.interfaces(nodes.instance_type, nodes.efa),
                security_group_ids=args.security_group_ids,
                root_device=kubernetes.ROOT_DEVICE,
                root_volume_gib=nodes.root_volume_gib,
                user_data=kubernetes.node_config(args.kubernetes.pods_per_node),
                tags=args.tags,
                instance_tags=args.instance_tags,
                capacity=nodes.capacity,
                # The node group asks for spot itself; a capacity block is named in both.
                market=nodes.capacity.kind == instance_types.CAPACITY_BLOCK,
                placement_group=self.placement_group,
                metadata_hops=METADATA_HOPS,
            ),
        )

    def _group(self) -> aws.eks.NodeGroup:
        nodes = self._args.nodes
        architecture = instance_types.facts(nodes.instance_type).architecture
        return aws.eks.NodeGroup(
            f"{self._name}-group",
            node_group_name=self._args.names.node_group,
            **_common(self._args, self.template),
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


class KubernetesSystemNodes(pulumi.ComponentResource):
    """Nodes without a GPU: the cluster's DNS, drivers, monitoring and control side have to be somewhere."""

    def __init__(self, name: str, args: KubernetesNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:KubernetesSystemNodes", name, {}, opts)
        chosen = args.kubernetes
        self.template = launch_template(
            self,
            name,
            TemplateArgs(
                physical_name=args.names.cpu_node_group,
                instance_type=chosen.cpu_instance_type,
                interfaces=(efa.PRIMARY,),
                security_group_ids=args.security_group_ids,
                root_device=kubernetes.ROOT_DEVICE,
                root_volume_gib=chosen.cpu_root_volume_gib,
                user_data=kubernetes.node_config(chosen.pods_per_node),
                tags=args.tags,
                instance_tags=args.instance_tags,
                capacity=CapacitySettings(kind=instance_types.ON_DEMAND, reservation_id=None),
                market=False,
                metadata_hops=METADATA_HOPS,
            ),
        )
        architecture = instance_types.architecture_of(chosen.cpu_instance_type)
        self.group = aws.eks.NodeGroup(
            f"{name}-group",
            node_group_name=args.names.cpu_node_group,
            **_common(args, self.template),
            ami_type=kubernetes.image_type(architecture, nvidia=False),
            capacity_type="ON_DEMAND",
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=1, max_size=chosen.cpu_maximum, desired_size=chosen.cpu_count
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            opts=_options(self, args.ready),
        )
        self.register_outputs({"group": self.group.node_group_name})


def _common(args: KubernetesNodesArgs, template: aws.ec2.LaunchTemplate) -> dict[str, Any]:
    """What both groups say."""
    return {
        "cluster_name": args.cluster_name,
        "node_role_arn": args.role_arn,
        "subnet_ids": list(args.subnet_ids),
        "version": args.kubernetes.version,
        "release_version": args.kubernetes.node_release,
        "launch_template": aws.eks.NodeGroupLaunchTemplateArgs(
            id=template.id, version=template.latest_version.apply(str)
        ),
        # Pods that do not go in time hold an update up; they are not ended for it.
        "force_update_version": False,
        "tags": dict(args.tags),
    }


def _options(parent: pulumi.Resource, ready: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    timeouts = pulumi.CustomTimeouts(create=TIMEOUT, update=TIMEOUT, delete=TIMEOUT)
    return child(parent, depends_on=list(ready), custom_timeouts=timeouts)


def _autoscaling_group(resources: Sequence[Any]) -> str:
    """The group that EKS made for the nodes."""
    return str(resources[0].autoscaling_groups[0].name)
