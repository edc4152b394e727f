"""Events as AWS sends them, written by hand after its documentation; no event here was recorded from an account.

Sources: CloudWatch user guide "Alarm events and EventBridge", "Notifying users on alarm changes"; CloudWatch Logs
user guide "Real-time processing of log data with subscriptions"; EC2 user guide on spot interruption, rebalance and
state changes; AWS Health user guide, event schema; Lambda developer guide on SQS and SNS.
"""

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

NODE = "i-0123456789abcdef0"
CLUSTER = "demo"
ADDRESS = "10.0.0.7"
AT = "2026-11-21T10:00:00Z"
UTC = "2026-11-21T10:00:00+00:00"


def stream_of(instance: str = NODE, more: str = "") -> str:
    """The name of a node's log stream."""
    return f"{ADDRESS}_{instance}{more}"


class KnowingEc2:
    """An EC2 client that knows every instance asked for, at one address."""

    def describe_instances(self, **_: Any) -> dict[str, Any]:
        return {"Reservations": [{"Instances": [{"PrivateIpAddress": ADDRESS}]}]}


def envelope(messages: Sequence[str], stream: str = stream_of(), kind: str = "DATA_MESSAGE") -> dict[str, Any]:
    """A CloudWatch Logs subscription's event: base64 of gzip of JSON."""
    number, first = "3195310660696698337880902507980421114328961542429", 1795255200000
    events = [{"id": f"{number}{n:07d}", "timestamp": first + n, "message": text} for n, text in enumerate(messages)]
    content = {
        "messageType": kind,
        "owner": "123456789012",
        "logGroup": f"/flightline/{CLUSTER}/results",
        "logStream": stream,
        "subscriptionFilters": [f"{CLUSTER}-storage"],
        "logEvents": events,
    }
    return {"awslogs": {"data": base64.b64encode(gzip.compress(json.dumps(content).encode())).decode()}}


def record(instance: str = NODE, host: str = "gpu-01", verdict: str = "go", **more: Any) -> dict[str, Any]:
    """A node's record as flightline_node.node.record() makes it, shortened."""
    count: dict[str, Any] = {"check": "gpu_count", "status": "PASS", "message": "8 of 8 GPUs"}
    if verdict == "no-go":
        count |= {"status": "FAIL", "message": "7 of 8 GPUs: 1 missing", "measured": 7, "expected": 8}
        count |= {"remedy": "REPLACE", "device": {"index": 3}}
    made = {
        "schema": "flightline-node/1",
        "flightline": "0.1.0",
        "host": host,
        "instance_id": instance,
        "instance_type": "p5.48xlarge",
        "level": "quick",
        "verdict": verdict,
        "started_at": UTC,
        "seconds": 1.5,
        "findings": [count, {"check": "xid", "status": "PASS", "message": "no Xid"}],
        "measures": {},
        "versions": {},
        "probes": [],
        "gpus": [{"index": 0, "serial": f"serial-{host}", "uuid": f"GPU-{host}"}],
    }
    return {**made, **more}


def bridge(kind: str, source: str, detail: dict[str, Any], **more: Any) -> dict[str, Any]:
    """EventBridge's envelope."""
    made = {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": kind,
        "source": source,
        "account": "123456789012",
        "time": AT,
        "region": "eu-west-1",
        "resources": [],
        "detail": detail,
    }
    return {**made, **more}


NAME = f"{CLUSTER}-node-gpu-temperature"
OVER = "Threshold Crossed: 3 datapoints were greater than the threshold (85.0)."


def _arn(name: str) -> str:
    return f"arn:aws:cloudwatch:eu-west-1:123456789012:alarm:{name}"


def _changed(what: str, name: str, state: dict[str, Any], metrics: list[Any], **more: Any) -> dict[str, Any]:
    detail = {"alarmName": name, **more, "state": state, "configuration": {"metrics": metrics}}
    return bridge(f"CloudWatch Alarm {what}State Change", "aws.cloudwatch", detail, resources=[_arn(name)])


def alarm(value: str = "ALARM", name: str = NAME, at: str = "2026-11-21T10:00:00.123+0000") -> dict[str, Any]:
    """A Metrics Insights alarm's change of state."""
    reason = {"version": "1.0", "recentDatapoints": [88.0, 91.5], "threshold": 85.0}
    said = {"reason": "1 out of 3 time series evaluated to ALARM", "reasonData": json.dumps(reason)}
    query = "SELECT MAX(nvidia_smi_temperature_gpu) ..."
    metrics = [{"id": "q1", "expression": query, "period": 300, "returnData": True}]
    before = {"value": "OK", "reason": "", "timestamp": "2026-11-21T09:00:00.000+0000"}
    return _changed("", name, {"value": value, **said, "timestamp": at}, metrics, previousState=before)


def contributor(value: str = "ALARM", instance: str = NODE, at: str = "2026-11-21T10:00:05.000+0000") -> dict[str, Any]:
    """One node of a fleet's alarm changes its state."""
    who = {"id": "6d442278dba546f6", "attributes": {"InstanceId": instance}}
    state = {"value": value, "reason": OVER, "timestamp": at}
    return _changed("Contributor ", NAME, state, [], alarmContributor=who)


def sns_alarm(value: str = "ALARM", at: str = "2026-11-21T10:00:00.123+0000") -> dict[str, Any]:
    """What an alarm's action publishes to SNS."""
    return {
        "AlarmName": NAME,
        "AlarmDescription": "A node's hottest GPU, C: above 85 for 15 minutes.",
        "AWSAccountId": "123456789012",
        "NewStateValue": value,
        "NewStateReason": OVER,
        "StateChangeTime": at,
        "Region": "Europe (Ireland)",
        "AlarmArn": _arn(NAME),
        "OldStateValue": "OK",
        "Trigger": {
            "MetricName": "nvidia_smi_temperature_gpu",
            "Namespace": f"Flightline/{CLUSTER}",
            "Dimensions": [{"value": NODE, "name": "InstanceId"}],
            "Period": 300,
            "Threshold": 85.0,
        },
    }


def spot(instance: str = NODE, event_id: str = "1e5527d7-bb36-4607-3370-4164db56a40e") -> dict[str, Any]:
    detail = {"instance-id": instance, "instance-action": "terminate"}
    return bridge("EC2 Spot Instance Interruption Warning", "aws.ec2", detail, id=event_id)


def rebalance(instance: str = NODE) -> dict[str, Any]:
    return bridge("EC2 Instance Rebalance Recommendation", "aws.ec2", {"instance-id": instance})


def state(
    word: str, instance: str = NODE, event_id: str = "ee376907-2647-4179-9203-343cfb3017a4", time: str = AT
) -> dict[str, Any]:
    detail = {"instance-id": instance, "state": word}
    return bridge("EC2 Instance State-change Notification", "aws.ec2", detail, id=event_id, time=time)


def launch(
    result: str = "Unsuccessful",
    instance: str = NODE,
    event_id: str = "7bf73129-1428-4cd3-a780-95db273d1602",
    **said: str,
) -> dict[str, Any]:
    detail = {
        "StatusCode": "Failed",
        "StatusMessage": "Instance failed to complete user's Lifecycle Action: it was abandoned",
        "Cause": "An instance was started in response to a difference between desired and actual capacity.",
        "AutoScalingGroupName": f"{CLUSTER}-gpu",
        "EC2InstanceId": instance,
        **said,
    }
    return bridge(f"EC2 Instance Launch {result}", "aws.autoscaling", detail, id=event_id)


def health(
    instances: Sequence[str] = (NODE,),
    code: str = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    status: str = "upcoming",
) -> dict[str, Any]:
    told = "The instance is scheduled for retirement."
    detail = {
        "eventArn": f"arn:aws:health:eu-west-1::event/EC2/{code}/{code}_1",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "statusCode": status,
        "startTime": "Sat, 5 Dec 2026 06:00:00 GMT",
        "eventDescription": [{"language": "en_US", "latestDescription": told}],
        "affectedEntities": [{"entityValue": instance} for instance in instances],
    }
    return bridge("AWS Health Event", "aws.health", detail, id="121345678-1234-1234-1234-123456789012")


def test_alert(probe: str = "p-1") -> dict[str, Any]:
    return bridge("Flightline Test Alert", "flightline.monitor", {"cluster": CLUSTER, "probe": probe})


test_alert.__test__ = False  # type: ignore[attr-defined]  # an event, not a test


def schedule(time: str = AT, event_id: str = "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa") -> dict[str, Any]:
    return bridge("Scheduled Event", "aws.events", {}, time=time, id=event_id)


def sqs(*bodies: Any) -> dict[str, Any]:
    """A batch as SQS hands it over; message ids are m0, m1, ..."""
    records = [
        {"messageId": f"m{n}", "eventSource": "aws:sqs", "body": body if isinstance(body, str) else json.dumps(body)}
        for n, body in enumerate(bodies)
    ]
    return {"Records": records}


def sns(*messages: Any) -> dict[str, Any]:
    """A delivery of SNS itself."""
    return {
        "Records": [
            {"EventSource": "aws:sns", "Sns": {"MessageId": f"s{n}", "Message": json.dumps(message)}}
            for n, message in enumerate(messages)
        ]
    }
