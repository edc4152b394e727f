"""What EC2 and the results table know about a node, for the message that people get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flightline.cloud import items
from flightline.contract import ROLE_GPU, TAG_CLUSTER, TAG_ROLE

GROUP = "aws:autoscaling:groupName"
"""Auto Scaling's own tag. Tags that begin with aws: are AWS'. Source: EC2 Auto Scaling user guide, "Tag Auto Scaling
groups and instances"."""
BATCH = 100
"""DescribeInstanceStatus takes at most 100 ids (EC2 API reference)."""
_STATUS_PARTS = (("system", "SystemStatus"), ("instance", "InstanceStatus"), ("EBS", "AttachedEbsStatus"))


@dataclass(frozen=True)
class KnownNode:
    """An instance as EC2 knows it. launched_s: seconds since 1970.

    group: its Auto Scaling group, by a tag that nobody else can set. reason: code of why it is in its state.
    """

    instance_id: str
    name: str
    cluster: str
    role: str
    state: str
    launched_s: float
    group: str = ""
    reason: str = ""


@dataclass(frozen=True)
class NodeLookup:
    """Look-ups. ec2, dynamodb, cloudwatch: clients."""

    ec2: Any
    dynamodb: Any
    cloudwatch: Any
    table: str
    cluster: str

    def find(self, instance_ids: Sequence[str]) -> dict[str, KnownNode]:
        """Instances that EC2 knows; with a filter, because an unknown id in InstanceIds fails the whole request."""
        found: dict[str, KnownNode] = {}
        for start in range(0, len(instance_ids), BATCH):
            wanted = [{"Name": "instance-id", "Values": list(instance_ids[start : start + BATCH])}]
            found |= {node.instance_id: node for node in self._describe(wanted)}
        return found

    def running(self) -> list[KnownNode]:
        """The cluster's running GPU nodes."""
        filters = [
            {"Name": f"tag:{TAG_CLUSTER}", "Values": [self.cluster]},
            {"Name": f"tag:{TAG_ROLE}", "Values": [ROLE_GPU]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        return list(self._describe(filters))

    def peers(self, group: str) -> list[KnownNode]:
        """Running instances of an Auto Scaling group."""
        running = {"Name": "instance-state-name", "Values": ["running"]}
        return list(self._describe([{"Name": f"tag:{GROUP}", "Values": [group]}, running]))

    def statuses(self, instance_ids: Sequence[str]) -> dict[str, str]:
        """'system ok, instance impaired; scheduled: system-reboot from ...' per instance."""
        found: dict[str, str] = {}
        for start in range(0, len(instance_ids), BATCH):
            chunk = list(instance_ids[start : start + BATCH])
            answer = self.ec2.describe_instance_status(InstanceIds=chunk, IncludeAllInstances=True)
            found |= {item["InstanceId"]: status_text(item) for item in answer.get("InstanceStatuses", [])}
        return found

    def last_result(self, instance_id: str) -> items.Item:
        """The newest stored result of an instance; empty when it never reported."""
        request = {
            "TableName": self.table,
            "IndexName": items.BY_INSTANCE,
            "KeyConditionExpression": "instance_id = :id",
            "ExpressionAttributeValues": items.marshal({":id": instance_id}),
            "ScanIndexForward": False,
            "Limit": 1,
        }
        found = self.dynamodb.query(**request).get("Items", [])
        return items.unmarshal(found[0]) if found else {}

    def contributors(self, alarm: str) -> list[str]:
        """Instances that make a fleet's alarm ring now."""
        found: list[str] = []
        request = {"AlarmName": alarm}
        while True:
            page = self.cloudwatch.describe_alarm_contributors(**request)
            attributes = [item.get("ContributorAttributes") or {} for item in page.get("AlarmContributors", [])]
            found += [str(named["InstanceId"]) for named in attributes if named.get("InstanceId")]
            if not page.get("NextToken"):
                return found
            request["NextToken"] = page["NextToken"]

    def _describe(self, filters: Sequence[Mapping[str, Any]]) -> Iterator[KnownNode]:
        for page in self.ec2.get_paginator("describe_instances").paginate(Filters=list(filters)):
            for reservation in page["Reservations"]:
                yield from map(_node, reservation["Instances"])


def status_text(item: Mapping[str, Any]) -> str:
    """EC2's status checks and scheduled events in a line."""
    parts = [f"instance {item['InstanceState']['Name']}"] if item.get("InstanceState") else []
    checks = [f"{word} {item[key]['Status']}" for word, key in _STATUS_PARTS if item.get(key)]
    parts += [", ".join(checks)] if checks else []
    planned = [
        f"{event.get('Code')} from {event.get('NotBefore')}"
        for event in item.get("Events") or []
        # EC2 keeps events that are over and marks them in the text. Source: EC2 API reference, InstanceStatusEvent.
        if not str(event.get("Description") or "").startswith(("[Completed]", "[Canceled]"))
    ]
    return "; ".join(parts + ([f"scheduled: {', '.join(planned)}"] if planned else []))


def result_text(item: Mapping[str, Any]) -> str:
    """'last preflight no-go at ... (gpu_count FAIL, xid FAIL)'."""
    if not item:
        return "never judged by a preflight"
    wrong = [f"{check} {status}" for check, status in (item.get("wrong") or {}).items()]
    why = f" ({', '.join(wrong[:5])}{', ...' if len(wrong) > 5 else ''})" if wrong else ""
    return f"last preflight {item.get('verdict')} at {item.get('started_at')}{why}"


def _node(raw: Mapping[str, Any]) -> KnownNode:
    tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags") or []}
    launched = raw["LaunchTime"].timestamp() if raw.get("LaunchTime") else 0.0
    return KnownNode(
        raw["InstanceId"],
        tags.get("Name", ""),
        tags.get(TAG_CLUSTER, ""),
        tags.get(TAG_ROLE, ""),
        (raw.get("State") or {}).get("Name", ""),
        launched,
        tags.get(GROUP, ""),
        (raw.get("StateReason") or {}).get("Code", ""),
    )
