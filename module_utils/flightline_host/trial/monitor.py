"""Does monitoring work from end to end? A test metric and a test alert are sent, and waited for where they arrive.

The alert's receiver is the queue that a stack has for it on its topic, or where there is none one of its own, made for
the probe and removed after it: what people get by e-mail cannot be read here, but they are told through the same topic.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

METRIC = "MonitorProbe"
DIMENSION = ({"Name": "Probe", "Value": "monitor"},)
"""One metric for all probes: each name and dimension is billed as a metric of its own."""
EVENT_SOURCE, EVENT_TYPE = "flightline.monitor", "Flightline Test Alert"
"""Spelled as the alert router and its rule do (cloud/functions/alert_router/events.py); a test compares them."""
HEARTBEAT = "mem_used_percent"
QUERIES = 500
"""GetMetricData's limit. Source: CloudWatch API reference."""
EVENT, TOPIC = "event", "topic"


class ProbeError(RuntimeError):
    """The probe could not be sent; the text says what was seen, what was wanted and what to do."""


@dataclass(frozen=True)
class MonitorProbe:
    """What to look for. via: "event" goes the whole way (EventBridge, alert router, topic), "topic" only the last step.

    instance_ids: nodes whose agents must have reported within fresh_s.
    """

    cluster: str
    namespace: str
    topic_arn: str
    via: str = EVENT
    timeout_s: float = 300.0
    poll_s: float = 5.0
    instance_ids: Tuple[str, ...] = ()
    fresh_s: float = 600.0


@dataclass
class Arrivals:
    """What arrived, with the seconds it took; None is not yet. silent: nodes that do not report."""

    metric_s: Any = None
    alert_s: Any = None
    silent: List[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Both arrived and no node is silent."""
        return self.metric_s is not None and self.alert_s is not None and not self.silent


def run(
    clients: Mapping[str, Any],
    probe: MonitorProbe,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Arrivals:
    """Send and wait. clients: cloudwatch, events, sns and sqs by name. Raises ProbeError, or the clients' errors."""
    token, started = uuid.uuid4().hex[:12], clock()
    queue, subscription = _listen(clients, probe, token)
    try:
        _send_metric(clients["cloudwatch"], probe, started)
        _send_alert(clients, probe, token)
        seen = Arrivals()
        while True:
            _look(clients, probe, queue, token, started, clock, seen)
            if seen.complete or clock() - started >= probe.timeout_s:
                return seen
            sleep(probe.poll_s)
    finally:
        if subscription:
            clients["sns"].unsubscribe(SubscriptionArn=subscription)
            clients["sqs"].delete_queue(QueueUrl=queue)


def look_only(clients: Mapping[str, Any], probe: MonitorProbe, clock: Callable[[], float] = time.time) -> Arrivals:
    """What can be said without sending anything: is the topic there, which nodes are silent."""
    clients["sns"].get_topic_attributes(TopicArn=probe.topic_arn)
    return Arrivals(silent=silent_nodes(clients["cloudwatch"], probe, clock()))


def silent_nodes(cloudwatch: Any, probe: MonitorProbe, now_s: float) -> List[str]:
    """Nodes whose agent reported nothing of late."""
    alive = set()
    for start in range(0, len(probe.instance_ids), QUERIES):
        chunk = probe.instance_ids[start : start + QUERIES]
        queries = [
            _query(number, probe.namespace, HEARTBEAT, [{"Name": "InstanceId", "Value": instance}], "SampleCount")
            for number, instance in enumerate(chunk)
        ]
        for found in _results(cloudwatch, queries, now_s - probe.fresh_s, now_s):
            if found.get("Values"):
                alive.add(chunk[int(found["Id"][1:])])
    return [instance for instance in probe.instance_ids if instance not in alive]


def advice(probe: MonitorProbe, seen: Arrivals, sent: bool = True) -> str:
    """What is missing and what to do, in the words of the project's errors; empty when nothing is."""
    missing = []
    if sent and seen.metric_s is None:
        missing.append(
            f"seen: no {METRIC} in {probe.namespace} after {probe.timeout_s:g} s; wanted: the value that was sent; "
            "do: check cloudwatch:PutMetricData and cloudwatch:GetMetricData of this role"
        )
    if sent and seen.alert_s is None:
        way = "rule, router queue and alert router's log" if probe.via == EVENT else "topic's policy and key"
        missing.append(
            f"seen: no test alert at {probe.topic_arn} after {probe.timeout_s:g} s; wanted: the one that was sent; "
            f"do: check the {way}"
        )
    if seen.silent:
        missing.append(
            f"seen: nothing from {', '.join(seen.silent[:10])}{' ...' if len(seen.silent) > 10 else ''} in "
            f"{probe.fresh_s:g} s; wanted: {HEARTBEAT} of every node in {probe.namespace}; "
            "do: check amazon-cloudwatch-agent on those nodes and what their role may do"
        )
    return "\n".join(missing)


def _listen(clients: Mapping[str, Any], probe: MonitorProbe, token: str) -> Tuple[str, str]:
    """The queue, and the subscription to take back; '' where the queue is the stack's (infra/components)."""
    sqs, sns = clients["sqs"], clients["sns"]
    name = f"{probe.cluster}-monitor-probe"
    try:
        return str(sqs.get_queue_url(QueueName=name)["QueueUrl"]), ""
    except sqs.exceptions.ClientError:
        name = f"{name}-{token}"
    queue = sqs.create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": "3600"})["QueueUrl"]
    try:
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": probe.topic_arn}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
        made = sns.subscribe(TopicArn=probe.topic_arn, Protocol="sqs", Endpoint=arn, ReturnSubscriptionArn=True)
    except BaseException:
        sqs.delete_queue(QueueUrl=queue)
        raise
    return queue, str(made["SubscriptionArn"])


def _send_metric(cloudwatch: Any, probe: MonitorProbe, started: float) -> None:
    data = {"MetricName": METRIC, "Dimensions": list(DIMENSION), "Value": float(int(started)), "Unit": "None"}
    cloudwatch.put_metric_data(Namespace=probe.namespace, MetricData=[data])


def _send_alert(clients: Mapping[str, Any], probe: MonitorProbe, token: str) -> None:
    if probe.via == TOPIC:
        text = f"Flightline {probe.cluster}: test, probe {token}"
        clients["sns"].publish(TopicArn=probe.topic_arn, Subject=text, Message=text)
        return
    entry = {
        "Source": EVENT_SOURCE,
        "DetailType": EVENT_TYPE,
        "Detail": json.dumps({"cluster": probe.cluster, "probe": token}),
    }
    answer = clients["events"].put_events(Entries=[entry])
    if answer.get("FailedEntryCount"):
        why = answer["Entries"][0].get("ErrorMessage") or answer["Entries"][0].get("ErrorCode")
        raise ProbeError(
            f"seen: EventBridge refused the test event ({why}); wanted: it taken; do: check events:PutEvents"
        )


def _look(
    clients: Mapping[str, Any],
    probe: MonitorProbe,
    queue: str,
    token: str,
    started: float,
    clock: Callable[[], float],
    seen: Arrivals,
) -> None:
    if seen.metric_s is None and _metric_there(clients["cloudwatch"], probe, started, clock()):
        seen.metric_s = round(clock() - started, 1)
    if seen.alert_s is None and _alert_there(clients["sqs"], queue, token):
        seen.alert_s = round(clock() - started, 1)
    seen.silent = silent_nodes(clients["cloudwatch"], probe, clock())


def _metric_there(cloudwatch: Any, probe: MonitorProbe, started: float, now_s: float) -> bool:
    queries = [_query(0, probe.namespace, METRIC, list(DIMENSION), "Maximum")]
    found = _results(cloudwatch, queries, started - 120, now_s)
    # An earlier probe's value is smaller: it is the moment at which that one began.
    return any(value >= int(started) for result in found for value in result.get("Values", []))


def _alert_there(sqs: Any, queue: str, token: str) -> bool:
    answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
    return any(token in message["Body"] for message in answer.get("Messages", []))


def _query(number: int, namespace: str, name: str, dimensions: List[Dict[str, str]], stat: str) -> Dict[str, Any]:
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": 60, "Stat": stat}}


def _results(cloudwatch: Any, queries: Sequence[Dict[str, Any]], start_s: float, end_s: float) -> List[Dict[str, Any]]:
    # A minute into the future: what was sent this moment lies in a period that has not ended.
    start, end = (datetime.fromtimestamp(stamp, timezone.utc) for stamp in (start_s, end_s))
    request: Dict[str, Any] = {
        "MetricDataQueries": list(queries),
        "StartTime": start,
        "EndTime": end + timedelta(minutes=1),
    }
    found: List[Dict[str, Any]] = []
    while True:
        page = cloudwatch.get_metric_data(**request)
        found += page["MetricDataResults"]
        if not page.get("NextToken"):
            return found
        request["NextToken"] = page["NextToken"]
