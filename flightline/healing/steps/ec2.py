"""EC2: reboot an instance, and have another one in its place without changing the size of its Auto Scaling group.

On demand, the bad instance is terminated through its group, which launches another. In a capacity reservation or block
the host that is given back is the next one that is handed out, so there the bad instance is detached and kept until the
one that came in its place has its proof; then it is reported to AWS and given back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from ...cloud.clients import Clients, explained
from ..journal import incident as incidents
from ..journal.incident import Attempt, Incident
from ..plan.planner import OutsideView
from .ports import EdgeError, StepOutcome

TAG = "flightline:incident"
NEEDED = frozenset({"Launch", "Terminate"})
GONE = frozenset({"shutting-down", "terminated"})
LEAVING = frozenset({"Terminating", "Terminating:Wait", "Terminating:Proceed", "Terminated", "Detaching", "Detached"})
KARPENTER, EKS_CLUSTER, EKS_GROUP = "karpenter.sh/nodepool", "eks:cluster-name", "eks:nodegroup-name"
"""Tags that Karpenter and EKS give to the instances that they launch."""
HEALTHY_GROUP = ("ACTIVE", "DEGRADED")
"""A group is degraded for want of capacity too: its nodes can be healed."""
REASON = "other"
"""Of ReportInstanceStatus' codes the one that claims nothing that was not measured. Source: EC2 API reference."""
MOST_DESCRIPTION = 1000
MOST_IDS = 100
"""Of DescribeInstanceStatus by id. Source: EC2 API reference."""


@dataclass
class Ec2:
    """One account and region. Every method raises EdgeError."""

    clients: Clients

    def before(self, incident: Incident) -> dict[str, Any]:
        """The group, who is in it, and whether the instance stands in reserved capacity."""
        bad = self._instance(incident.instance_id)
        self._leave_to_others(bad)
        name = incident.instance_id
        found = self._asg("describe_auto_scaling_instances", name, InstanceIds=[name])
        listed = found["AutoScalingInstances"]
        if not listed:
            raise EdgeError(f"{incident.instance_id}: in no Auto Scaling group, so a person replaces it")
        group = self._group(str(listed[0]["AutoScalingGroupName"]))
        paused = {str(one["ProcessName"]) for one in group.get("SuspendedProcesses") or ()} & NEEDED
        if paused:
            raise EdgeError(
                f"{group['AutoScalingGroupName']}: {', '.join(sorted(paused))} is suspended: nothing is replaced"
            )
        reserved = _reservation(bad)
        if reserved:
            self._room(reserved)
        return {
            "bad": incident.instance_id,
            "group": str(group["AutoScalingGroupName"]),
            "size": int(group["DesiredCapacity"]),
            "members": [str(one["InstanceId"]) for one in group["Instances"]],
            "kept": bool(reserved),
            "reservation": reserved,
        }

    def seen(self, instance_ids: Collection[str]) -> dict[str, OutsideView]:
        """State, status checks and scheduled events of instances; one that EC2 does not know any more is dead."""
        wanted, found = sorted(set(instance_ids)), dict[str, OutsideView]()
        for first in range(0, len(wanted), MOST_IDS):
            part = wanted[first : first + MOST_IDS]
            # By filter, for one id that EC2 forgot would have the request refused.
            match = [{"Name": "instance-id", "Values": part}]
            states = self._ec2("describe_instances", f"{len(part)} instances", Filters=match)
            here = {one["InstanceId"] for held in states["Reservations"] for one in held["Instances"]}
            alive = [name for name in part if name in here]
            given = {"InstanceIds": alive, "IncludeAllInstances": True}
            said = self._ec2("describe_instance_status", f"{len(alive)} instances", **given) if alive else {}
            found |= {str(one["InstanceId"]): _outside(one) for one in said.get("InstanceStatuses") or ()}
            found |= {name: OutsideView("EC2 knows it no more", dead=True) for name in part if name not in here}
        return found

    def replace(self, incident: Incident, before: Mapping[str, Any]) -> tuple[StepOutcome, dict[str, Any]]:
        """Have another instance in its place; the size of the group stays."""
        swap, bad, group = dict(before), str(before["bad"]), str(before["group"])
        if before.get("kept"):
            self._ec2("create_tags", bad, Resources=[bad], Tags=[{"Key": TAG, "Value": incident.id}])
            stays = {"AutoScalingGroupName": group, "ShouldDecrementDesiredCapacity": False}
            self._asg("detach_instances", bad, InstanceIds=[bad], **stays)
            return StepOutcome(incidents.DONE, f"{bad} was detached from {group} and is kept"), swap
        stays = {"InstanceId": bad, "ShouldDecrementDesiredCapacity": False}
        self._asg("terminate_instance_in_auto_scaling_group", bad, **stays)
        return StepOutcome(incidents.DONE, f"{bad} is terminated, {group} launches another"), swap

    def reboot(self, incident: Incident) -> StepOutcome:
        """Ask EC2 for a reboot; it is a hard one when the instance does not shut down within minutes."""
        self._leave_to_others(self._instance(incident.instance_id))
        self._ec2("reboot_instances", incident.instance_id, InstanceIds=[incident.instance_id])
        return StepOutcome(incidents.NOT_YET, "EC2 was asked for a reboot")

    def successor(self, swap: Mapping[str, Any], taken: Collection[str] = ()) -> str:
        """An instance in service that was not in the group before; '' while there is none."""
        group = self._group(str(swap["group"]))
        old = {*swap["members"], *taken}
        fresh = [
            str(one["InstanceId"])
            for one in group["Instances"]
            if one["InstanceId"] not in old and one["LifecycleState"] == "InService"
        ]
        return sorted(fresh)[0] if fresh else ""

    def release(self, swap: Mapping[str, Any], incident: Incident) -> StepOutcome:
        """Report the kept bad instance and give it back."""
        bad = str(swap["bad"])
        if self._state(bad) in GONE:
            return StepOutcome(incidents.DONE, f"{bad} is gone")
        said = "; ".join(trouble.said for trouble in incident.troubles)
        serials = ", ".join(sorted(incident.serials))
        text = f"{said}{f' (GPU serial {serials})' if serials else ''}"[:MOST_DESCRIPTION]
        told = {"Status": "impaired", "ReasonCodes": [REASON], "Description": text}
        self._ec2("report_instance_status", bad, Instances=[bad], **told)
        self._ec2("terminate_instances", bad, InstanceIds=[bad])
        return StepOutcome(incidents.DONE, f"{bad} was reported as impaired and terminated")

    def settle(self, incident: Incident, attempt: Attempt) -> tuple[StepOutcome | None, dict[str, Any]]:
        """What came of a step that was cut off, from what EC2 shows now."""
        before = dict(attempt.before)
        bad = str(before.get("bad") or incident.instance_id)
        if attempt.step == incidents.RELEASE:
            gone = self._state(bad) in GONE
            return StepOutcome(
                incidents.DONE if gone else incidents.NOT_DONE, f"{bad} is {'gone' if gone else 'there'}"
            ), before
        group = self._group(str(before["group"]))
        member = {str(one["InstanceId"]): str(one["LifecycleState"]) for one in group["Instances"]}.get(bad, "")
        left = not member or member in LEAVING or self._state(bad) in GONE
        what = incidents.DONE if left else incidents.NOT_DONE
        return StepOutcome(what, f"{bad} is {member or 'not'} in {before['group']}"), before if left else {}

    def _ask(self, service: str, operation: str, about: str, **given: Any) -> Any:
        """One request, with what AWS says of it in words."""
        with explained(EdgeError, f"{operation} {about}"):
            return getattr(self.clients.get(service), operation)(**given)

    _ec2, _asg = partialmethod(_ask, "ec2"), partialmethod(_ask, "autoscaling")

    def _instance(self, instance_id: str) -> Mapping[str, Any]:
        if not instance_id:
            raise EdgeError("the node's instance id is not known, so it is not replaced")
        found = self._ec2("describe_instances", instance_id, InstanceIds=[instance_id])
        listed = [one for held in found["Reservations"] for one in held["Instances"]]
        if not listed:
            raise EdgeError(f"{instance_id}: EC2 knows no such instance here; check the region")
        instance: Mapping[str, Any] = listed[0]
        return instance

    def _leave_to_others(self, instance: Mapping[str, Any]) -> None:
        """Raises EdgeError for an instance that Karpenter or EKS repairs, or whose node group is changing."""
        name = str(instance["InstanceId"])
        tags = {str(one["Key"]): str(one["Value"]) for one in instance.get("Tags") or ()}
        if KARPENTER in tags:
            raise EdgeError(f"{name}: Karpenter's (node pool {tags[KARPENTER]}), which replaces it itself; left to it")
        cluster, group = tags.get(EKS_CLUSTER), tags.get(EKS_GROUP)
        if not cluster or not group:
            return
        named = {"clusterName": cluster, "nodegroupName": group}
        found = self._ask("eks", "describe_nodegroup", group, **named)["nodegroup"]
        if (found.get("nodeRepairConfig") or {}).get("enabled"):
            raise EdgeError(
                f"{name}: EKS repairs the nodes of {group} itself (node auto repair); left to it: for Flightline's "
                "ladder and budgets switch it off there"
            )
        if found.get("status") not in HEALTHY_GROUP:
            raise EdgeError(
                f"{name}: the node group {group} is {found.get('status')}; nothing is changed until it is done"
            )

    def _state(self, instance_id: str) -> str:
        try:
            return str(self._instance(instance_id)["State"]["Name"])
        except EdgeError as error:
            # EC2 forgets a terminated instance within the hour.
            if "InvalidInstanceID" in str(error) or "no such instance" in str(error):
                return "terminated"
            raise

    def _group(self, name: str) -> Mapping[str, Any]:
        found = self._asg("describe_auto_scaling_groups", name, AutoScalingGroupNames=[name])
        if not found["AutoScalingGroups"]:
            raise EdgeError(f"{name}: no such Auto Scaling group here; check the region")
        group: Mapping[str, Any] = found["AutoScalingGroups"][0]
        return group

    def _room(self, reservation: str) -> None:
        """A kept instance needs a free place beside it for the one that comes. Raises EdgeError when there is none."""
        found = self._ec2("describe_capacity_reservations", reservation, CapacityReservationIds=[reservation])
        free = sum(int(one.get("AvailableInstanceCount") or 0) for one in found["CapacityReservations"])
        if free < 1:
            raise EdgeError(
                f"{reservation}: no free instance beside the bad one; given back first, the same host could come "
                "again: free a place or ask AWS, then: flightline remediate --retry NODE"
            )


def _outside(status: Mapping[str, Any]) -> OutsideView:
    """Source of the states, checks and event codes: EC2 API reference, DescribeInstanceStatus."""
    state = str((status.get("InstanceState") or {}).get("Name") or "")
    checks = {name: str((status.get(f"{name}Status") or {}).get("Status") or "") for name in ("System", "Instance")}
    bad = [f"{name.lower()} check impaired" for name, said in checks.items() if said == "impaired"]
    codes = [str(one.get("Code")) for one in status.get("Events") or () if _is_ahead(one)]
    leaving = [f"scheduled: {code}" for code in codes if code in ("instance-stop", "instance-retirement")]
    stopped = [state] if state not in ("running", "pending") else []
    dead = bool(stopped or bad or leaving)
    return OutsideView(f"EC2 says {', '.join([*stopped, *bad, *leaving]) or f'{state}, checks passed'}", dead)


def _is_ahead(event: Mapping[str, Any]) -> bool:
    return not str(event.get("Description") or "").startswith(("[Completed]", "[Canceled]"))


def _reservation(instance: Mapping[str, Any]) -> str:
    """The capacity reservation or block that the instance stands in; '' for none."""
    named = str(instance.get("CapacityReservationId") or "")
    if named or str(instance.get("InstanceLifecycle") or "") != "capacity-block":
        return named
    raise EdgeError(f"{instance['InstanceId']}: in a capacity block that EC2 does not name, so a person replaces it")
