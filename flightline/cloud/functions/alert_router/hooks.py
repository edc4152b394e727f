"""Tells the Auto Scaling group what a node's own boot, or its end, came to: a node itself may not.

A lifecycle action names its instance by a parameter, of which IAM knows nothing: who may complete one may complete
every other's. So a node only leaves its word, under a key that IAM holds to it, and puts it there again until it finds
the router's answer beside it: an event that is lost costs a minute, and no node. The default result of the launch hook
is ABANDON, and that of the termination hook ends the node as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from flightline.contract import BOOT_TOLD

from ..common.errors import TryAgain
from .boots import Boot

BEGINS, ENDS = "Pending", "Terminating"
"""How the group's words begin for an instance that is not in service yet, and for one that leaves. Source: EC2 Auto
Scaling user guide, "Amazon EC2 Auto Scaling instance lifecycle"."""
WAITS = ":Wait"
SETTLES = timedelta(minutes=10)
"""What EC2 and the group may take to know of an instance that runs; they answer what was true a moment ago."""


@dataclass(frozen=True)
class Hooks:
    """autoscaling, s3: clients. group: '' where none waits. launch, drain: names of its hooks."""

    autoscaling: Any
    s3: Any
    bucket: str
    group: str
    launch: str
    drain: str

    def state(self, instance_id: str) -> str:
        """What the group says of an instance; '' of one that it does not have."""
        if not self.group:
            return ""
        found = self.autoscaling.describe_auto_scaling_instances(InstanceIds=[instance_id])["AutoScalingInstances"]
        return next((str(one["LifecycleState"]) for one in found if one["AutoScalingGroupName"] == self.group), "")

    def tell(self, boot: Boot, state: str, at: str) -> None:
        """Tell the group, where it waits for just this, and then the node. Raises TryAgain where that is not clear yet.

        Done again it changes nothing: the group no longer waits.
        """
        awaited, hook = (ENDS, self.drain) if boot.ends else (BEGINS, self.launch)
        if state == BEGINS or (not state and boot.first and is_young(at)):
            raise TryAgain(f"the group says {state or 'nothing'} of {boot.instance_id}, whose boot is over")
        if hook and state == awaited + WAITS:
            result = "CONTINUE" if boot.go or boot.ends else "ABANDON"
            self.autoscaling.complete_lifecycle_action(
                AutoScalingGroupName=self.group,
                LifecycleHookName=hook,
                InstanceId=boot.instance_id,
                LifecycleActionResult=result,
            )
        key = f"{boot.place.removeprefix(f's3://{self.bucket}/')}{BOOT_TOLD}"
        said = {"instance_id": boot.instance_id, "state": state, "at": at}
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=json.dumps(said).encode(), ContentType="application/json")


def is_young(at: str) -> bool:
    """Whether an event is so new that AWS may not know its instance yet."""
    return datetime.now(timezone.utc) - datetime.fromisoformat(at) < SETTLES
