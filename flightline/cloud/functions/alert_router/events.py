"""What an alarm or an EC2 event says, in one shape. Pure.

Shapes after the documentation: CloudWatch user guide "Alarm events and EventBridge" (alarm, composite and contributor
state changes) and "Notifying users on alarm changes" (the message that SNS gets); EC2 user guide "Spot Instance
interruption notices", "EC2 instance rebalance recommendations", "Monitor for instance state changes"; EC2 user guide
"Monitor Capacity Blocks using EventBridge"; EC2 Auto Scaling user guide "Amazon EC2 Auto Scaling event reference";
AWS Health user guide "Amazon EventBridge event schema for AWS Health"; S3 user guide "Event message structure" and
"Amazon S3 event notifications" (the test event).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote_plus

from flightline.cloud.signals import BLOCK_ENDS, LAUNCH_FAILED, LAUNCHED, TEST_TYPE

from ..common.errors import InvalidEvent
from ..common.stamps import utc

INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")
ALARM, CONTRIBUTOR, NODE, TEST, WATCH, BOOT = "alarm", "contributor", "node", "test", "watch", "boot"
LAUNCH, BLOCK = "launch", "capacity_block"

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """One event. id: the same for the same occurrence, in whatever shape it comes. at: when it happened (UTC).

    status: FAIL, WARN or INFO; PASS when it tells of recovery; UNKNOWN when nothing is measured any more.
    source: what it is about beside nodes in service: bucket/key of an object, or the instance that a launch ended.
    group, began: of a launch, its Auto Scaling group and when it began (UTC).
    """

    id: str
    kind: str
    name: str
    status: str
    at: str
    message: str
    instances: tuple[str, ...] = ()
    remedy: str = "INVESTIGATE"
    measured: str = ""
    expected: str = ""
    alarm: str = ""
    device: str = ""
    source: str = ""
    group: str = ""
    began: str = ""


def read(raw: object) -> Event:
    """The event in an EventBridge event or in an alarm's SNS message. Raises InvalidEvent naming what is missing."""
    if not isinstance(raw, Mapping):
        raise InvalidEvent(f"a {type(raw).__name__}, wanted an object")
    if "AlarmName" in raw and "NewStateValue" in raw:
        return _sns_alarm(raw)
    if raw.get("eventSource") == "aws:s3":
        return _object(raw)
    if raw.get("Event") == "s3:TestEvent":
        return Event(f"s3:{raw.get('RequestId')}", NODE, "s3_test", "INFO", utc(raw.get("Time")), "S3 tries the queue")
    name, detail = raw.get("detail-type"), raw.get("detail")
    reader = _READERS.get(str(name))
    if reader is None or not isinstance(detail, Mapping):
        raise InvalidEvent(
            f"detail-type {str(name)[:80]!r}: wanted one of {', '.join(_READERS)}, or an alarm's message"
        )
    if not raw.get("id"):
        raise InvalidEvent("an event without an id cannot be told from its repetition")
    try:
        return reader(raw, detail)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidEvent(f"{name}: {type(error).__name__} {error} in its detail") from None


def _alarm(raw: Raw, detail: Raw) -> Event:
    state = detail["state"]
    arn = str((raw.get("resources") or [detail["alarmName"]])[0])
    numbers = _numbers(state.get("reasonData"))
    metrics = (detail.get("configuration") or {}).get("metrics") or []
    named = _named_instances(metrics)
    said = (state["value"], state["timestamp"], state["reason"])
    return _alarm_event(str(detail["alarmName"]), arn, *said, named, numbers)


def _contributor(raw: Raw, detail: Raw) -> Event:
    state, who = detail["state"], detail["alarmContributor"]
    attributes = who.get("attributes") or {}
    instance = str(attributes.get("InstanceId") or "")
    arn = str((raw.get("resources") or [detail["alarmName"]])[0])
    at = utc(state["timestamp"])
    return Event(
        id=f"contributor:{arn}:{who['id']}:{at}:{state['value']}",
        kind=CONTRIBUTOR,
        name=str(detail["alarmName"]),
        status=_STATES.get(str(state["value"]), "UNKNOWN"),
        at=at,
        message=str(state["reason"]),
        instances=(instance,) if INSTANCE.fullmatch(instance) else (),
        alarm=str(detail["alarmName"]),
    )


def _sns_alarm(raw: Raw) -> Event:
    try:
        trigger = raw.get("Trigger") or {}
        dimensions = trigger.get("Dimensions") or []
        named = tuple(str(item["value"]) for item in dimensions if item.get("name") == "InstanceId")
        numbers = ("", str(trigger.get("Threshold", "")))
        arn = str(raw.get("AlarmArn") or raw["AlarmName"])
        args = (raw["NewStateValue"], raw["StateChangeTime"], raw.get("NewStateReason") or "")
        return _alarm_event(str(raw["AlarmName"]), arn, *args, named, numbers)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidEvent(f"an alarm's message without {error}") from None


def _alarm_event(
    name: str, arn: str, value: object, stamp: object, reason: object, named: tuple[str, ...], numbers: tuple[str, str]
) -> Event:
    at = utc(stamp)
    return Event(
        id=f"alarm:{arn}:{at}:{value}",
        kind=ALARM,
        name=name,
        status=_STATES.get(str(value), "UNKNOWN"),
        at=at,
        message=str(reason),
        instances=named,
        measured=numbers[0],
        expected=numbers[1],
        alarm=name,
    )


def _object(raw: Raw) -> Event:
    """An object was put: the outcome of a boot. A key comes as in a URL."""
    try:
        bucket, key = str(raw["s3"]["bucket"]["name"]), unquote_plus(str(raw["s3"]["object"]["key"]))
        at = utc(raw["eventTime"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidEvent(f"an S3 event without {error}") from None
    # Each boot has a key of its own, so the key tells a repetition.
    return Event(f"s3:{bucket}/{key}", BOOT, "boot", "INFO", at, "a boot came to its end", source=f"{bucket}/{key}")


def _spot(raw: Raw, detail: Raw) -> Event:
    action = str(detail.get("instance-action") or "interrupted")
    text = f"EC2 takes this spot instance back in about two minutes (action: {action})"
    return _node(raw, "spot_interruption", "FAIL", text, (str(detail["instance-id"]),), "REPLACE")


def _rebalance(raw: Raw, detail: Raw) -> Event:
    text = "EC2 recommends to rebalance: this spot instance is at elevated risk of interruption"
    return _node(raw, "spot_rebalance", "WARN", text, (str(detail["instance-id"]),), "REPLACE")


def _state(raw: Raw, detail: Raw) -> Event:
    state = str(detail["state"])
    status = {"running": "PASS", "pending": "INFO"}.get(state, "WARN")
    return _node(raw, "instance_state", status, f"the instance is {state}", (str(detail["instance-id"]),))


def _launch_failed(raw: Raw, detail: Raw) -> Event:
    """A launch without capacity, or abandoned by the boot preflight. The group's trouble: each try is a new node."""
    said = str(detail.get("StatusMessage") or detail.get("Cause") or detail["StatusCode"])
    instance = str(detail.get("EC2InstanceId") or "")
    who = f"{instance}: " if instance else ""
    text = f"{detail['AutoScalingGroupName']} could not launch a node: {who}{said}"
    # Only an instance that was there cost anything; a launch without capacity has none.
    source = instance if INSTANCE.fullmatch(instance) else ""
    return replace(_node(raw, LAUNCH, "FAIL", text, ()), source=source, group=str(detail["AutoScalingGroupName"]))


def _block_ends(raw: Raw, detail: Raw) -> Event:
    """Forty minutes before a block ends; EC2 takes its instances away from thirty minutes before."""
    who, end = str(detail["capacity-reservation-id"]), str(detail.get("end-date") or "soon")
    text = (
        f"{who} ends at {end}: EC2 ends its nodes from ten minutes after this warning on. Write a checkpoint now. No "
        "node is launched any more; with another block: set capacityReservationId, `make up`, then resume its launches"
    )
    return replace(_node(raw, BLOCK, "FAIL", text, (), "NONE"), source=who)


def _launched(raw: Raw, detail: Raw) -> Event:
    group, event = str(detail["AutoScalingGroupName"]), _node(raw, LAUNCH, "PASS", "", ())
    began = utc(detail["StartTime"]) if detail.get("StartTime") else event.at
    return replace(event, message=f"{group} launched a node", group=group, began=began)


def _health(raw: Raw, detail: Raw) -> Event:
    code, category = str(detail["eventTypeCode"]), str(detail["eventTypeCategory"])
    described = detail.get("eventDescription") or []
    text = " ".join(str(item.get("latestDescription") or "") for item in described).strip()
    window = " to ".join(str(detail[key]) for key in ("startTime", "endTime") if detail.get(key))
    # An entity is an id or an ARN that ends with one.
    named = [str(item.get("entityValue") or "") for item in detail.get("affectedEntities") or []]
    affected = [name.rpartition("/")[2] for name in named]
    status = {"issue": "FAIL", "scheduledChange": "WARN"}.get(category, "INFO")
    if detail.get("statusCode") == "closed":
        status = "PASS"
    message = ": ".join(part for part in (code, window, text) if part)
    remedy = next((remedy for word, remedy in _HEALTH_REMEDIES if word in code), "INVESTIGATE")
    return _node(raw, f"health_{code.lower()}", status, message, tuple(filter(INSTANCE.fullmatch, affected)), remedy)


def _test(raw: Raw, detail: Raw) -> Event:
    return Event(f"event:{raw['id']}", TEST, "monitor_test", "INFO", utc(raw["time"]), f"probe {detail['probe']}")


def _watch(raw: Raw, _detail: Raw) -> Event:
    return Event(f"event:{raw['id']}", WATCH, "watch", "INFO", utc(raw["time"]), "scheduled look at the nodes")


def _node(raw: Raw, name: str, status: str, message: str, who: tuple[str, ...], remedy: str = "INVESTIGATE") -> Event:
    wrong = [instance for instance in who if not INSTANCE.fullmatch(instance)]
    if wrong:
        raise InvalidEvent(f"instance id {wrong[0][:60]!r}: wanted i- and 8 to 17 hexadecimal digits")
    return Event(f"event:{raw['id']}", NODE, name, status, utc(raw["time"]), message, who, remedy)


def _numbers(reason_data: object) -> tuple[str, str]:
    """Latest data point and threshold of an alarm's reasonData, which is JSON in a string."""
    try:
        data = json.loads(str(reason_data))
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(data, Mapping):
        return "", ""
    recent = data.get("recentDatapoints")
    points = [_number(point) for point in recent if point is not None] if isinstance(recent, list) else []
    return points[-1] if points else "", _number(data.get("threshold"))


def _number(value: object) -> str:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return f"{value:g}" if good else ""


def _named_instances(metrics: object) -> tuple[str, ...]:
    found = []
    for item in metrics if isinstance(metrics, list) else []:
        dimensions = ((item.get("metricStat") or {}).get("metric") or {}).get("dimensions") or {}
        found.append(str(dimensions.get("InstanceId") or ""))
    return tuple(sorted(set(filter(INSTANCE.fullmatch, found))))


_STATES = {"ALARM": "FAIL", "OK": "PASS"}
_HEALTH_REMEDIES = (
    ("RETIREMENT", "REPLACE"),
    ("STOP", "REPLACE"),
    ("REBOOT", "REBOOT"),
    ("MAINTENANCE", "REBOOT"),
)
_READERS = {
    "CloudWatch Alarm State Change": _alarm,
    "CloudWatch Alarm Contributor State Change": _contributor,
    "EC2 Spot Instance Interruption Warning": _spot,
    "EC2 Instance Rebalance Recommendation": _rebalance,
    "EC2 Instance State-change Notification": _state,
    LAUNCH_FAILED: _launch_failed,
    LAUNCHED: _launched,
    BLOCK_ENDS: _block_ends,
    "AWS Health Event": _health,
    "Scheduled Event": _watch,
    TEST_TYPE: _test,
}
