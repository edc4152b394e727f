"""Has EC2 announced that it will take the node away?"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Iterator, Optional

from ...model import Check, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context

NOT_SAID = Reason("not_said", "the metadata service did not tell whether an event is scheduled")
SCHEDULED_SOON = Reason("scheduled_soon", "EC2 has scheduled an event for soon", Remedy.REPLACE)
SCHEDULED = Reason("scheduled", "EC2 has scheduled an event", Remedy.REPLACE)
SPOT_ACTION = Reason("spot_action", "EC2 takes the spot instance back", Remedy.REPLACE)
REBALANCE = Reason("rebalance", "EC2 recommends to rebalance", Remedy.REPLACE)

_ENDED = frozenset({"completed", "canceled", "cancelled"})
NO_EVENT = "no event"
_LAST = frozenset({"instance-retirement", "instance-stop"})
_FACTS = ("maintenance_events", "spot_action", "rebalance")
_PATHS = ("scheduled", "instance-action", "rebalance")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_STAMP = re.compile(r"(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2})", re.ASCII)


def evaluate(context: Context) -> Iterator[Finding]:
    """Scheduled events, spot interruption, rebalance recommendation."""
    facts = context.facts("imds")
    if not facts.get("available"):
        yield context.skip(skips.OFF_EC2.because(f"no instance metadata: {facts.get('reason', 'not available')}"))
        return
    findings = [*_scheduled(context, facts.get("maintenance_events") or []), *_spot(context, facts)]
    yield from findings
    lost = [f"{path}: {text}" for path, text in facts.get("errors", {}).items() if path.endswith(_PATHS)]
    if lost:
        yield context.unknown(
            NOT_SAID, "the metadata service did not tell whether an event is scheduled", evidence=lost
        )
    elif not findings and any(name in facts for name in _FACTS):
        yield context.ok("no event is scheduled")
    elif not findings:
        yield context.skip(skips.NOT_PRINTED.because("the metadata given says nothing of events"))


def _scheduled(context: Context, events: Any) -> Iterator[Finding]:
    for event in events:
        if str(event.get("state")).lower() in _ENDED:
            continue
        code, begins = event.get("code") or "event", event.get("not_before")
        message = f"EC2 has scheduled {code} for {begins or 'an unknown time'}: {event.get('description') or '?'}"
        rest: Dict[str, Any] = {"measured": begins or code, "expected": NO_EVENT}
        rest["evidence"] = [f"{key}: {value}" for key, value in event.items()]
        if code in _LAST:
            yield context.fail(SCHEDULED_SOON, message, **rest)
        elif _soon(context, begins):
            remedy = Remedy.REBOOT if "reboot" in code else Remedy.REPLACE
            yield context.fail(SCHEDULED, message, remedy=remedy, **rest)
        else:
            yield context.warn(SCHEDULED, message, **rest)


def _soon(context: Context, begins: Optional[str]) -> bool:
    match = _STAMP.search(begins or "")
    if not match:
        return True  # a time that cannot be read is no reason to wait
    month = _MONTHS.find(match.group(2)) // 3 + 1  # 0 for a word that is no month
    day, year, hour, minute, second = (int(match.group(group)) for group in (1, 3, 4, 5, 6))
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return True
    return at - context.now < timedelta(days=context.threshold("horizon_days"))


def _spot(context: Context, facts: Dict[str, Any]) -> Iterator[Finding]:
    action, notice = facts.get("spot_action"), facts.get("rebalance")
    if action:
        message = f"EC2 will {action.get('action') or 'interrupt'} this spot instance at {action.get('time')}"
        yield context.fail(SPOT_ACTION, message, measured=action.get("time") or "soon", expected=NO_EVENT)
    if notice:
        message = f"EC2 recommends rebalancing (noticed {notice.get('notice_time')}): an interruption is likely"
        yield context.warn(REBALANCE, message, measured=notice.get("notice_time"))


CHECK = Check(
    id="maintenance",
    order=710,
    title="Scheduled maintenance",
    what="Events that EC2 has scheduled for the instance, spot interruption and rebalance notices.",
    why="A job started on a node that EC2 will reboot or retire loses everything since its last checkpoint.",
    remedy="A scheduled reboot: do it now, between jobs, and look again. Retirement or interruption: replace.",
    do="",
    out_of_service="Yes when EC2 ends or reboots the instance soon; later warns.",
    first="aws ec2 describe-instance-status --instance-ids ID",
    source="EC2 user guide: scheduled events, spot interruption notices, rebalance recommendations",
    needs=("imds",),
    tags=("host", "aws"),
    thresholds=(
        Threshold(
            "horizon_days",
            14,
            "days",
            "how near an event must be to block",
            "EC2 gives about two weeks of notice; a training run lasts as long",
            0,
        ),
    ),
    skips=(skips.OFF_EC2, skips.NOT_PRINTED),
    evaluate=evaluate,
)
