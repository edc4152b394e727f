"""The GPU nodes: launch template and Auto Scaling group. Capacity and size change; nothing is replaced for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from flightline import contract
from infra.config.model import Scheduled
from infra.planning import efa
from infra.planning.lifecycle import hook_s

from .base import ClusterPlan, Component
from .launch_template import TemplateArgs, launch_template, placement_group

LAUNCHING, TERMINATING = "autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"
GO_AWAY_MIN = 60
"""What the nodes may take to go away: the provider's ten minutes are short for machines with 2 TiB of memory."""

METRICS = (
    aws.autoscaling.Metric.GROUP_DESIRED_CAPACITY,
    aws.autoscaling.Metric.GROUP_IN_SERVICE_INSTANCES,
    aws.autoscaling.Metric.GROUP_PENDING_INSTANCES,
)


@dataclass(frozen=True, kw_only=True)
class GpuNodesArgs:
    """user_data: cloud-init text, which ends the launch hook. profile_name: of the nodes' instance profile.

    subnet_ids: private, of the nodes. ready: what must be there before a node is.
    """

    user_data: pulumi.Input[str]
    profile_name: pulumi.Input[str]
    security_group_ids: Sequence[pulumi.Input[str]]
    subnet_ids: Sequence[pulumi.Input[str]]
    ready: Sequence[pulumi.Resource] = ()


class GpuNodes(Component):
    """An instance enters service only after its own boot preflight said go."""

    def __init__(
        self, name: str, plan: ClusterPlan, args: GpuNodesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, plan, opts=opts)
        if not args.subnet_ids or not args.security_group_ids:
            self.refuse("no subnet or no security group", "one of each at least", "name those that the nodes are in")
        self._settings = plan.settings.nodes
        self.placement_group = placement_group(self)
        self.template = self._template(args)
        self.group = self._group(args.subnet_ids, args.ready)
        self.group_name = self.group.name
        self._hook()
        if self._settings.scaling.drain_minutes:
            self._drain()
        self.idle_policy = self._idle_policy() if self._settings.scaling.idle_scale_in else None
        for number, planned in enumerate(self._settings.scaling.schedule, 1):
            self._scheduled(number, planned)
        self.register_outputs({"group": self.group.name, "template_id": self.template.id})

    def _template(self, args: GpuNodesArgs) -> aws.ec2.LaunchTemplate:
        plan, settings, image = self.plan, self._settings, self.plan.image
        assert image is not None
        return launch_template(
            self,
            TemplateArgs(
                physical_name=plan.names.launch_template,
                instance_type=settings.instance_type,
                interfaces=efa.interfaces(settings.instance_type, settings.efa),
                security_group_ids=args.security_group_ids,
                root_device=image.root_device,
                root_volume_gib=settings.root_volume_gib,
                user_data=args.user_data,
                role=contract.ROLE_GPU,
                capacity=settings.capacity,
                # With a mixed instances policy the group asks for spot, and refuses a template that does as well.
                market=not settings.spot.mixed,
                max_price_usd_per_hour=settings.spot.max_price_usd_per_hour,
                placement_group=self.placement_group,
                image_id=image.image_id,
                profile_name=args.profile_name,
                ssh_key_name=plan.settings.access.ssh_key_name,
            ),
        )

    def _group(
        self, subnet_ids: Sequence[pulumi.Input[str]], ready: Sequence[pulumi.Resource]
    ) -> aws.autoscaling.Group:
        settings = self._settings
        going = f"{GO_AWAY_MIN + settings.scaling.drain_minutes}m"
        return aws.autoscaling.Group(
            f"{self._name}-group",
            name=self.names.node_group,
            min_size=settings.minimum,
            max_size=settings.maximum,
            desired_capacity=settings.count,
            vpc_zone_identifiers=list(subnet_ids),
            launch_template=None if settings.spot.mixed else self._launches(),
            mixed_instances_policy=self._mixed() if settings.spot.mixed else None,
            capacity_reservation_specification=self._reservation_first(),
            capacity_rebalance=settings.spot.rebalance or None,
            protect_from_scale_in=settings.scaling.protect or None,
            # Here as well as below: a hook that comes after the group misses the group's first instances.
            initial_lifecycle_hooks=[self._first_hook()],
            # Rebalancing would end healthy nodes of a running job to even out zones.
            suspended_processes=["AZRebalance"],
            health_check_type="EC2",
            # Accelerated capacity can take hours; `pulumi up` is done when the group exists.
            wait_for_capacity_timeout="0",
            enabled_metrics=list(METRICS),
            tags=self._group_tags(),
            opts=self.child(
                depends_on=list(ready),
                # The provider replaces a group, nodes and all, when the hooks it was made with change.
                ignore_changes=["initialLifecycleHooks", *self._led_elsewhere()],
                custom_timeouts=pulumi.CustomTimeouts(update=going, delete=going),
            ),
        )

    def _launches(self) -> aws.autoscaling.GroupLaunchTemplateArgs:
        return aws.autoscaling.GroupLaunchTemplateArgs(id=self.template.id, version="$Latest")

    def _mixed(self) -> aws.autoscaling.GroupMixedInstancesPolicyArgs:
        settings = self._settings
        return aws.autoscaling.GroupMixedInstancesPolicyArgs(
            instances_distribution=aws.autoscaling.GroupMixedInstancesPolicyInstancesDistributionArgs(
                on_demand_base_capacity=0,
                on_demand_percentage_above_base_capacity=0,
                spot_allocation_strategy=settings.spot.allocation,
                spot_max_price=settings.spot.max_price_usd_per_hour,
            ),
            launch_template=aws.autoscaling.GroupMixedInstancesPolicyLaunchTemplateArgs(
                launch_template_specification=aws.autoscaling.GroupMixedInstancesPolicyLaunchTemplateLaunchTemplateSpecificationArgs(
                    launch_template_id=self.template.id, version="$Latest"
                ),
                overrides=[
                    aws.autoscaling.GroupMixedInstancesPolicyLaunchTemplateOverrideArgs(instance_type=name)
                    for name in settings.types
                ],
            ),
        )

    def _reservation_first(self) -> aws.autoscaling.GroupCapacityReservationSpecificationArgs | None:
        """EC2's own order of the two, at every launch; the template then names no reservation."""
        capacity = self._settings.capacity
        if not capacity.then_on_demand or capacity.reservation_id is None:
            return None
        return aws.autoscaling.GroupCapacityReservationSpecificationArgs(
            capacity_reservation_preference="capacity-reservations-first",
            capacity_reservation_target=aws.autoscaling.GroupCapacityReservationSpecificationCapacityReservationTargetArgs(
                capacity_reservation_ids=[capacity.reservation_id]
            ),
        )

    def _led_elsewhere(self) -> list[str]:
        """With a schedule (or an end to idle nodes) gpuNodeCount is what the group begins with.

        An update at night must not start the nodes.
        """
        return ["desiredCapacity"] if self._settings.scaling.led_elsewhere else []

    def _idle_policy(self) -> aws.autoscaling.Policy:
        """What the idle alarm does, where it was chosen."""
        return aws.autoscaling.Policy(
            f"{self._name}-idle",
            name=f"{self.names.node_group}-idle",
            autoscaling_group_name=self.group.name,
            policy_type="SimpleScaling",
            adjustment_type="ExactCapacity",
            scaling_adjustment=self._settings.minimum,
            opts=self.child(),
        )

    def _scheduled(self, number: int, planned: Scheduled) -> None:
        aws.autoscaling.Schedule(
            f"{self._name}-schedule-{number}",
            scheduled_action_name=f"{self.names.node_group}-{number}",
            autoscaling_group_name=self.group.name,
            recurrence=planned.cron,
            time_zone=self._settings.scaling.time_zone,
            desired_capacity=planned.count,
            # The provider's word for "leave it": without it both become 0.
            min_size=-1,
            max_size=-1,
            opts=self.child(),
        )

    def _first_hook(self) -> aws.autoscaling.GroupInitialLifecycleHookArgs:
        return aws.autoscaling.GroupInitialLifecycleHookArgs(**self._waits())

    def _waits(self) -> dict[str, Any]:
        """The hook that holds an instance back until its boot preflight has said go."""
        return {
            "name": self.names.launch_hook,
            "lifecycle_transition": LAUNCHING,
            "default_result": "ABANDON",
            "heartbeat_timeout": hook_s(self.plan.settings.boot.minutes),
        }

    def _group_tags(self) -> list[aws.autoscaling.GroupTagArgs]:
        return [
            aws.autoscaling.GroupTagArgs(key=key, value=value, propagate_at_launch=True)
            for key, value in sorted(self.plan.instance_tags(contract.ROLE_GPU).items())
        ]

    def _hook(self) -> None:
        aws.autoscaling.LifecycleHook(
            f"{self._name}-hook", autoscaling_group_name=self.group.name, opts=self.child(), **self._waits()
        )

    def _drain(self) -> None:
        """Hold a node that the group ends, whatever for, until its jobs are done (roles/flightline_notice)."""
        aws.autoscaling.LifecycleHook(
            f"{self._name}-drain",
            name=self.names.drain_hook,
            autoscaling_group_name=self.group.name,
            lifecycle_transition=TERMINATING,
            # Either result ends the node; this one lets hooks of others have their time as well.
            default_result="CONTINUE",
            heartbeat_timeout=hook_s(self._settings.scaling.drain_minutes),
            opts=self.child(),
        )
