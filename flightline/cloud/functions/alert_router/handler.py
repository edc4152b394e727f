"""The alert router: alarms and EC2 events in, messages to people out, with the state of the node.

Ways in: an SQS queue (EventBridge rules and schedules send there; failed messages are named and come again), SNS
and EventBridge themselves. An event that comes again, or in another shape, is told once; events of one kind that come
together, such as the end of many instances, are one message.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from flightline.cloud import batches
from flightline.cloud.signals import (
    BUSIEST_GPU,
    REPORTING_NODES,
    SILENT_NODES,
    UNWATCHED_NODES,
    WATCH_RUNS,
    alarm_prefix,
)
from flightline.tell.digest import Alert

from ..common.claims import BUSY, IS_DONE
from ..common.errors import InvalidEvent, TryAgain
from ..common.log import say
from ..common.notify import NoticeContext
from ..common.queue import handle_batch, is_batch
from ..common.services import ServiceNames, Services, client, services
from . import boots, launches, watch
from .boots import Evidence
from .events import ALARM, BLOCK, BOOT, CONTRIBUTOR, LAUNCH, NODE, TEST, WATCH, Event, read
from .hooks import BEGINS, ENDS, Hooks, is_young
from .launches import Launches
from .nodes import KnownNode, NodeLookup, result_text

FUNCTION = "alert-router"
SILENT, UNWATCHED = "node_silent", "node_unwatched"
MOST_DETAILS = 20
"""Nodes whose state is looked up for one event; the message names all of them."""


@dataclass(frozen=True)
class EventResult:
    """What an event has to tell: troubles, or (node, check) pairs that are good again.

    With neither, its trouble is over for every node that people were told of by then. facts: instead of EC2's.
    """

    event: Event
    alerts: Sequence[Alert] = ()
    healthy: frozenset[tuple[str, str]] = frozenset()
    facts: tuple[str, ...] = ()

    @property
    def group(self) -> tuple[str, ...]:
        """Troubles of one kind and minute are told together; a recovery stands alone: it counts from its own moment."""
        return (self.event.name, self.event.status, self.event.at[:16]) if self.alerts else (self.event.id,)


@dataclass(frozen=True)
class Router:
    """The function on its services."""

    on: Services
    fleet: NodeLookup
    cloudwatch: Any
    evidence: Evidence
    launches: Launches
    hooks: Hooks

    def handle(self, event: object) -> dict[str, Any]:
        """Any event that Lambda may hand over."""
        counts: Counter[str] = Counter()
        each = functools.partial(self._each, counts=counts, claimed=set())
        tell = functools.partial(self._tell_all, counts=counts)
        if is_batch(event):
            assert isinstance(event, dict)
            answer = handle_batch(event, each, self.on.keep_invalid, tell)
        else:
            for error in tell([("", each(event))]).values():
                raise error
            answer = dict(counts)
        self.on.count(FUNCTION, **{f"Events{name.title().replace('_', '')}": n for name, n in counts.items()})
        return answer

    def _each(self, event: object, counts: Counter[str], claimed: set[str]) -> list[EventResult]:
        """Every event of a message; a bad one is kept, and does not hold up the others.

        Claims of a result stay taken until it is told; claimed: the ids of this delivery, to know what comes twice.
        """
        results: list[EventResult] = []
        try:
            for raw in _unwrap(event):
                try:
                    outcome = self._one(read(raw), claimed)
                except InvalidEvent as error:
                    self.on.keep_invalid(raw, str(error))
                    outcome = "bad"
                if isinstance(outcome, EventResult):
                    results.append(outcome)
                else:
                    counts[outcome] += 1
        except BaseException:
            self._release(results)
            raise
        return results

    def _one(self, event: Event, claimed: set[str]) -> str | EventResult:
        state = IS_DONE if event.id in claimed else self.on.claims.take(event.id)
        if state == IS_DONE:
            return "duplicate"
        if state == BUSY:
            raise TryAgain(f"event {event.id} is being handled")
        claimed.add(event.id)
        try:
            outcome = self._act(event)
        except BaseException:
            claimed.discard(event.id)
            self.on.claims.release(event.id)
            raise
        if isinstance(outcome, str):
            self.on.claims.done(event.id, outcome=outcome)
        return outcome

    def _act(self, event: Event) -> str | EventResult:
        if event.kind == TEST:
            self.on.notifier.announce(
                NoticeContext(f"Flightline {self.fleet.cluster}: test, {event.message}", event.at)
            )
            return "told"
        if event.kind == WATCH:
            return self._watch(event)
        if event.kind in (ALARM, CONTRIBUTOR):
            return self._alarm(event)
        if event.kind == BOOT:
            return self._boot(event)
        return self._node(event)

    def _boot(self, event: Event) -> str | EventResult:
        """The outcome of a node's boot: its group is told, and people of what its record says is wrong or is over."""
        bucket, _, key = event.source.partition("/")
        if bucket != self.evidence.bucket:
            raise InvalidEvent(f"bucket {bucket[:80]!r}: wanted {self.evidence.bucket}")
        boot = self.evidence.boot(key)
        known = self.fleet.find([boot.instance_id]).get(boot.instance_id)
        if boot.first and is_young(event.at) and not (known and known.group):
            raise TryAgain(f"EC2 knows no {boot.instance_id} of a group yet")
        state = self.hooks.state(boot.instance_id) if known is not None else ""
        if why := self._doubt(boot, known, state, event.at):
            told = replace(event, name=boots.DOUBTED, status="UNKNOWN")
            alert = boots.doubted(boot, why, self.fleet.cluster, event.at)
            return EventResult(told, [alert], facts=(f"{boot.instance_id}: {why}, {boot.place}",))
        self.hooks.tell(boot, state, event.at)
        if boot.ends:
            return "noted"
        if boot.go:
            return EventResult(replace(event, status="PASS"), healthy=boots.healthy(boot))
        found = boots.alerts(boot, event.at)
        stop = self.launches.failed(boot.instance_id, event.at, known) if boot.first else None
        told = replace(event, name="no_go_at_boot", status="FAIL")
        return EventResult(told, [*found, *([stop] if stop else [])], facts=boots.facts([boot]))

    def _doubt(self, boot: boots.Boot, known: KnownNode | None, state: str, at: str) -> str:
        group, since = self.launches.group, datetime.fromisoformat(at) - launches.WINDOW
        if why := boots.doubt(boot, known, self.fleet.cluster, group, since):
            return why
        serves = bool(state) and not state.startswith((BEGINS, ENDS))
        held = boot.first and not boot.go and serves
        return "it says first boot, and the group has the instance in service" if held else ""

    def _alarm(self, event: Event) -> str | EventResult:
        prefix = alarm_prefix(self.fleet.cluster)
        if not event.alarm.startswith(prefix):
            return "not_ours"
        event = replace(event, name=f"alarm_{event.alarm.removeprefix(prefix).replace('-', '_')}")
        if event.status == "UNKNOWN":
            return "no_data"  # neither trouble nor recovery; nodes that went silent are the watch's business
        if event.status == "PASS":
            return EventResult(event, healthy=frozenset((node, event.name) for node in event.instances))
        instances = event.instances or tuple(self._contributors(event.alarm))
        return EventResult(event, self._alerts(event, instances or ("",)))

    def _contributors(self, alarm: str) -> list[str]:
        """The nodes behind a fleet's alarm; when they cannot be had, people are told without them."""
        try:
            return self.fleet.contributors(alarm)
        except Exception as error:  # the alarm matters more than its details
            say("the alarm's nodes are not known", alarm=alarm, error=f"{type(error).__name__}: {error}")
            return []

    def _node(self, event: Event) -> str | EventResult:
        if event.status == "INFO":
            return "noted"
        if not event.instances:
            # A launch of this cluster's group, or an event of AWS Health about a zone or the region: it is about this
            # cluster as far as anybody knows.
            if event.group and event.group != (self.launches.group or event.group):
                return "not_ours"
            if event.status == "PASS":
                if event.name == LAUNCH and self.launches.floor:
                    self.launches.served(event.at)
                goes_on = event.name == LAUNCH and not self.launches.stopped_since(event.began)
                over = {event.name, *([launches.CHECK] if goes_on else [])}
                return EventResult(event, healthy=frozenset((self.fleet.cluster, name) for name in over))
            if event.name == BLOCK:
                # Each try after the end would fail, minute after minute; what runs is EC2's to end.
                self.launches.stop()
            return EventResult(event, [*self._alerts(event, [""]), *self._counted(event)])
        known = self.fleet.find(event.instances)
        ours = self._ours(event, known)
        if not ours:
            return "not_ours"
        if event.status == "PASS":
            return EventResult(event, healthy=frozenset((instance, event.name) for instance in ours))
        return EventResult(event, self._alerts(event, ours, known))

    def _counted(self, event: Event) -> list[Alert]:
        """A launch that failed with an instance is a boot without a go, unless EC2 says that the cloud ended it."""
        if event.name != LAUNCH or not event.source:
            return []
        known = self.fleet.find([event.source]).get(event.source)
        stop = self.launches.failed(event.source, event.at, known)
        return [stop] if stop else []

    def _ours(self, event: Event, known: Mapping[str, KnownNode]) -> list[str]:
        """The event's instances of this cluster. Raises InvalidEvent when nobody knows any of them."""
        ours = [i for i in event.instances if i in known and known[i].cluster == self.fleet.cluster]
        # EC2 forgets an instance an hour after its end; one that reported to us was ours.
        unknown = [i for i in event.instances if i not in known]
        ours += [i for i in unknown if self.fleet.last_result(i)]
        if not ours and not known and event.status != "PASS":
            raise InvalidEvent(f"node {', '.join(unknown)}: neither EC2 nor the results know it")
        return ours

    def _watch(self, event: Event) -> str:
        seen = watch.look(self.fleet, self.cloudwatch, self.on.names.namespace)
        minutes = int(watch.SILENT_AFTER.total_seconds() // 60)
        signs = (
            (SILENT, "its agent reported nothing", seen.silent, seen.reporting),
            (UNWATCHED, "its watcher (flightline-watch) gave no sign", seen.unwatched, seen.watched),
        )
        outcomes = {
            self._missing(event, name, f"runs, but {what} for {minutes} minutes", gone, there)
            for name, what, gone, there in signs
        }
        numbers: dict[str, float] = {
            SILENT_NODES: len(seen.silent),
            UNWATCHED_NODES: len(seen.unwatched),
            REPORTING_NODES: len(seen.reporting),
            WATCH_RUNS: 1,
        }
        # A silent or young node may be the one that works: then nothing is said of how busy the cluster is.
        if not seen.silent and not seen.young:
            busiest = watch.busiest_gpu_percent(self.cloudwatch, self.on.names.namespace, seen.reporting)
            numbers |= {} if busiest is None else {BUSIEST_GPU: busiest}
        self.on.measure(**numbers)
        return "told" if "told" in outcomes else "watched"

    def _missing(
        self, event: Event, name: str, text: str, gone: Sequence[KnownNode], there: Sequence[KnownNode]
    ) -> str:
        """Tell of nodes that give no sign, and of those that do again."""
        told = replace(event, name=name, status="UNKNOWN", message=text, kind=NODE)
        by_id = {node.instance_id: node for node in gone}
        good = frozenset((node.instance_id, name) for node in there)
        return self._tell([EventResult(told, self._alerts(told, list(by_id), by_id), good)])

    def _alerts(
        self, event: Event, instances: Sequence[str], known: Mapping[str, KnownNode] | None = None
    ) -> list[Alert]:
        found = known if known is not None else self.fleet.find([i for i in instances if i])
        return [
            Alert(
                node=instance or self.fleet.cluster,
                host=found[instance].name if instance in found else "",
                instance_id=instance,
                check=event.name,
                status=event.status,
                message=event.message,
                device=event.device,
                measured=event.measured,
                expected=f"threshold {event.expected}" if event.expected else "",
                remedy=event.remedy,
                at=event.at,
            )
            for instance in instances
        ]

    def _facts(self, alerts: Sequence[Alert]) -> tuple[str, ...]:
        """Each node's system status and last result, in words; what cannot be had is said so."""
        where = {alert.instance_id: alert.where for alert in alerts if alert.instance_id}
        instances = list(where)[:MOST_DETAILS]
        try:
            known = self.fleet.find(instances)
            statuses = self.fleet.statuses([i for i in instances if i in known])
        except Exception as error:  # people must be told, even when EC2 does not answer
            why = batches.error_code(error) or type(error).__name__
            statuses = dict.fromkeys(instances, f"status not available ({why})")
        return tuple(
            f"{where[i]}: EC2 {statuses.get(i, 'knows no status')}; {result_text(self.fleet.last_result(i))}"
            for i in instances
        )

    def _tell_all(
        self, found: Sequence[tuple[str, list[EventResult] | None]], counts: Counter[str]
    ) -> dict[str, Exception]:
        """Tell what the messages have to tell, in order of time; returns why, by message, what could not be told."""
        groups: dict[tuple[str, ...], list[tuple[str, EventResult]]] = {}
        for message_id, results in found:
            for one in results or ():
                groups.setdefault(one.group, []).append((message_id, one))
        failed: dict[str, Exception] = {}
        for group in sorted(groups.values(), key=lambda group: max(one.event.at for _, one in group)):
            results = [one for _, one in group]
            try:
                outcome = self._tell(results)
                for one in results:
                    self.on.claims.done(one.event.id, outcome=outcome)
            except Exception as error:
                self._release(results)
                failed |= dict.fromkeys((message_id for message_id, _ in group), error)
            else:
                counts[outcome] += len(results)
        return failed

    def _release(self, results: Sequence[EventResult]) -> None:
        for one in results:
            self.on.claims.release(one.event.id)

    def _tell(self, results: Sequence[EventResult]) -> str:
        """One message about events of one kind."""
        event = max((one.event for one in results), key=lambda event: event.at)
        alerts = [alert for one in results for alert in one.alerts]
        healthy = {pair for one in results for pair in one.healthy}
        if not alerts and not healthy:
            healthy = {(node, event.name) for node in self.on.notifier.nodes_with(event.name)}
        nodes = len({alert.node for alert in alerts if alert.instance_id or len(alerts) == 1})
        about = f"{event.name} on {nodes} node{'' if nodes == 1 else 's'}" if alerts else f"{event.name} recovered"
        known = tuple(fact for one in results for fact in one.facts)
        facts = (lambda alerts: known) if known else self._facts
        notice = NoticeContext(f"Flightline {self.fleet.cluster}: {about}", event.at, facts=facts)
        return "told" if self.on.notifier.tell(alerts, healthy, notice) else "quiet"


def _unwrap(event: object) -> Iterator[object]:
    """Events in a delivery: SNS's records, SNS's envelope (an SQS subscription without raw delivery), or one event."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if isinstance(records, list) and records and all(isinstance(record, Mapping) for record in records):
        for record in records:
            yield record if record.get("eventSource") == "aws:s3" else _message(record.get("Sns"))
    elif isinstance(event, Mapping) and event.get("Type") == "Notification":
        yield _message(event)
    else:
        yield event


def _message(envelope: object) -> object:
    text = envelope.get("Message") if isinstance(envelope, Mapping) else None
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return text


def build(on: Services, ec2: Any, cloudwatch: Any, s3: Any, autoscaling: Any) -> Router:
    """The function on given services."""
    names = on.names
    fleet = NodeLookup(ec2, on.dynamodb, cloudwatch, names.results_table, names.cluster)
    group = names.node_group
    peers = functools.partial(fleet.peers, group)
    limit = Launches(on.dynamodb, autoscaling, names.results_table, names.cluster, group, names.boot_failures, peers)
    hooks = Hooks(autoscaling, s3, names.results_bucket, group, names.launch_hook, names.drain_hook)
    return Router(on, fleet, cloudwatch, Evidence(s3, names.results_bucket), limit, hooks)


@functools.cache
def _router() -> Router:
    on = services(FUNCTION, ServiceNames.read(os.environ))
    return build(on, client("ec2"), client("cloudwatch"), client("s3"), client("autoscaling"))


def entry(event: object, _context: object) -> dict[str, Any]:
    """What Lambda calls."""
    return _router().handle(event)
