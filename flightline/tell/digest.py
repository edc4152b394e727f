"""What people are told: alerts, digests, recovery notices, and a digest as text. Pure.

An alert's key says whether it is the same
trouble as before; `plan` decides what is new, what is due again, what is quiet and what has recovered.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from ..record.printable import clip, clip_bytes, printable

MAX_SUBJECT = 99
"""SNS wants fewer than 100 ASCII characters. Source: SNS API reference, Publish."""
MAX_SNS_BYTES = 256 * 1024
SNS_ROOM_BYTES = 4 * 1024
"""Kept free of the message: attributes and the subject count towards the limit as well."""
MAX_VALUE = 160
MOST_PLACES = 10
MAX_MESSAGE = 600
MAX_KEY_PART = 250
"""Bytes. An alert's key has three, and a sort key of DynamoDB takes 1,024."""

Item = dict[str, Any]


@dataclass(frozen=True)
class Alert:
    """One trouble of one part of one node. Everything is text for people.

    node: instance id, else host. measured, expected: with their unit. at: ISO 8601, UTC. seen: how often it came.
    """

    node: str
    check: str
    status: str
    message: str
    host: str = ""
    instance_id: str = ""
    device: str = ""
    measured: str = ""
    expected: str = ""
    remedy: str = "INVESTIGATE"
    remedy_text: str = ""
    at: str = ""
    seen: int = 1

    @property
    def key(self) -> str:
        """The same trouble has the same key, in whatever run or event it comes."""
        return "#".join(_part(text) for text in (self.node, self.check, self.device))

    @property
    def where(self) -> str:
        """'gpu-07 (i-0abc)'."""
        names = [name for name in dict.fromkeys((self.host, self.instance_id or self.node)) if name]
        return names[0] if len(names) < 2 else f"{names[0]} ({names[1]})"


@dataclass(frozen=True)
class Digest:
    """One message about a run or a burst of events. quiet: known troubles that are not told again.

    link: where to see more, link_name says what that is. store: where the records are, as --store takes it.
    scope: whose troubles they are. about: what several digests are about, which then belong together; over: nothing of
    it is left.
    """

    title: str
    alerts: tuple[Alert, ...] = ()
    recovered: tuple[Alert, ...] = ()
    quiet: int = 0
    run_id: str = ""
    facts: tuple[str, ...] = ()
    link: str = ""
    link_name: str = "Report"
    store: str = ""
    scope: str = ""
    about: str = ""
    over: bool = False

    @property
    def key(self) -> str:
        """De-duplication key: the same content of the same run has the same key."""
        told: list[Any] = sorted([alert.key, alert.status] for alert in (*self.alerts, *self.recovered))
        # All digests about one thing have its title.
        told += [self.about, *self.facts] if self.about else []
        return hashlib.sha256(json.dumps([self.run_id, self.title, told]).encode()).hexdigest()

    @property
    def state(self) -> str:
        """For who subscribes to one of them only."""
        return "alert" if self.alerts else "recovery"

    @property
    def again(self) -> str:
        """The command that shows more: of the run, or of the first node when it is about no run; may be empty."""
        store = f" --store {self.store}" if self.store else ""
        if self.run_id:
            return f"flightline report {self.run_id}{store}"
        nodes = [alert.instance_id for alert in (*self.alerts, *self.recovered) if alert.instance_id]
        return f"flightline history {nodes[0]}{store}" if nodes and store else ""

    def to_json(self) -> str:
        """The digest as it waits in the outbox."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Digest:
        """A digest from the outbox."""
        raw = json.loads(text)
        alerts, recovered = (tuple(Alert(**alert) for alert in raw.pop(name)) for name in ("alerts", "recovered"))
        return Digest(**{**raw, "facts": tuple(raw["facts"])}, alerts=alerts, recovered=recovered)


@dataclass
class DigestPlan:
    """What to tell and what to remember. put: items of the ALERT partition; drop: their sort keys to delete."""

    tell: list[Alert] = field(default_factory=list)
    quiet: list[Alert] = field(default_factory=list)
    recovered: list[Alert] = field(default_factory=list)
    put: dict[str, Item] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)


def collapse(alerts: Iterable[Alert]) -> list[Alert]:
    """The same trouble once, the first that came, with how often it came."""
    found: dict[str, Alert] = {}
    counts: dict[str, int] = {}
    for alert in alerts:
        key = alert.key
        found.setdefault(key, alert)
        counts[key] = counts.get(key, 0) + alert.seen
    return [replace(alert, seen=counts[key]) if counts[key] != alert.seen else alert for key, alert in found.items()]


def plan(
    known: Mapping[str, Mapping[str, Any]],
    alerts: Iterable[Alert],
    healthy: Collection[tuple[str, str]],
    now: str,
    renotify_s: float,
) -> DigestPlan:
    """Compare what is wrong now with what people know.

    known: the ALERT items by sort key. healthy: (node, check) pairs that were measured and found good; only
    these can recover, because silence is no recovery. now: the moment of the run (ISO 8601), not of the call, so
    that planning again after a crash gives the same plan.
    """
    made = DigestPlan()
    for alert in collapse(alerts):
        before = known.get(alert.key)
        if before is None or before.get("status") != alert.status or _due(before, now, renotify_s):
            made.tell.append(alert)
            made.put[alert.key] = _remember(alert, before, now)
        else:
            made.quiet.append(alert)
    for key, before in known.items():
        pair = (str(before.get("node")), str(before.get("check")))
        if pair in healthy and not _later(before, now):
            made.recovered.append(_recall(before))
            made.drop.append(key)
    return made


def _later(before: Mapping[str, Any], now: str) -> bool:
    """Was it told after this run? An old run that comes late proves no recovery."""
    try:
        return datetime.fromisoformat(str(before.get("notified_at"))) > datetime.fromisoformat(now)
    except (ValueError, TypeError):
        return False


def _due(before: Mapping[str, Any], now: str, renotify_s: float) -> bool:
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(str(before.get("notified_at")))
    except (ValueError, TypeError):
        return True
    return renotify_s > 0 and passed.total_seconds() >= renotify_s


_REMEMBERED = ("node", "check", "status", "message", "host", "instance_id", "device", "measured", "expected", "remedy")


def _remember(alert: Alert, before: Mapping[str, Any] | None, now: str) -> Item:
    first = str((before or {}).get("first_at") or now)
    kept = {name: getattr(alert, name) for name in _REMEMBERED if getattr(alert, name)}
    # An item takes 400 KB, and people are told no more of it again.
    kept |= {name: clip(kept[name], MAX_MESSAGE) for name in ("message", "measured", "expected") if name in kept}
    return {**kept, "kind": "alert", "first_at": first, "notified_at": now}


def _recall(item: Mapping[str, Any]) -> Alert:
    words: dict[str, Any] = {name: str(item.get(name) or "") for name in _REMEMBERED}
    return Alert(**words, at=str(item.get("first_at") or ""))


def shown(value: Any, unit: str = "") -> str:
    """A measured or expected value as short text; None is the empty string."""
    if value is None:
        return ""
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return f"{clip(clean(text), MAX_VALUE)} {clean(unit)}".strip()


def device_text(label: str, device: Mapping[str, Any]) -> str:
    """'GPU 3 (serial 1654922000123, 0000:ca:00.0)': what a person at the console and one at the rack can find.

    label: as flightline_node.model.device_label gives it. It is part of an alert's key: every sender uses this.
    """
    more = [f"serial {device['serial']}"] if device.get("serial") else []
    more += [str(device["pci"])] if device.get("pci") else []
    more = [text for text in more if text.removeprefix("serial ") != label]
    return f"{label} ({', '.join(more)})" if more and label else label


def clean(text: object) -> str:
    """One line of text that can steer no terminal and no page."""
    return printable(str(text))


def subject(text: str) -> str:
    """A subject as SNS takes it: ASCII, one line, fewer than 100 characters, beginning with a letter or digit."""
    ascii_ = unicodedata.normalize("NFKD", clean(text)).encode("ascii", "ignore").decode()
    line = " ".join(ascii_.split()).lstrip("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")
    return clip(line or "Flightline", MAX_SUBJECT)


def render(digest: Digest, limit_bytes: int = MAX_SNS_BYTES - SNS_ROOM_BYTES) -> str:
    """The digest as text of at most limit_bytes in UTF-8; what does not fit is counted, with where it is."""
    tail = [f"{digest.link_name}: {clean(digest.link)}"] if digest.link else []
    tail += [f"Look back: {clean(digest.again)}"] if digest.again else []
    lines, kept, used = list(_lines(digest)), [], 0
    room = limit_bytes - sum(len(line.encode()) + 1 for line in tail) - 200
    for number, line in enumerate(lines):
        used += len(line.encode("utf-8", "replace")) + 1
        if used > room:
            kept += ["", f"... {len(lines) - number:,} more lines do not fit into a message; all of it:"]
            break
        kept.append(line)
    text = "\n".join([*kept, "", *tail]).strip() + "\n"
    return text.encode("utf-8", "replace").decode()


def _lines(digest: Digest) -> Iterator[str]:
    yield clean(digest.title)
    yield from (clean(fact) for fact in digest.facts)
    for group in groups(digest.alerts):
        yield ""
        yield from _group_lines(group)
    if digest.quiet:
        yield ""
        yield f"{digest.quiet:,} more known and told before, still there."
    if digest.recovered:
        yield ""
        yield "Recovered:"
        yield from (f"  {recovered_line(alert)}" for alert in digest.recovered)


def groups(alerts: Iterable[Alert]) -> list[list[Alert]]:
    """The same kind of trouble of several parts together, in the order they come."""
    found: dict[tuple[str, ...], list[Alert]] = {}
    for alert in alerts:
        found.setdefault((alert.check, alert.status, alert.remedy, alert.expected), []).append(alert)
    return list(found.values())


def _group_lines(group: Sequence[Alert]) -> Iterator[str]:
    first = group[0]
    nodes = len({alert.node for alert in group})
    yield f"{first.status} {first.check} on {nodes:,} node{'' if nodes == 1 else 's'}"
    yield f"  saw       {clip(clean(first.message), MAX_MESSAGE)}"
    if first.expected:
        yield f"  expected  {first.expected}"
    yield f"  do        {remedy_line(first)}"
    yield from (f"  where     {place_line(alert)}" for alert in group)


def place_line(alert: Alert) -> str:
    """Where a trouble is, and what was measured there."""
    device = f", {clean(alert.device)}" if alert.device else ""
    measured = f": measured {alert.measured}" if alert.measured else ""
    often = f" ({alert.seen:,} times)" if alert.seen > 1 else ""
    return f"{clean(alert.where)}{device}{measured}{often}"


def remedy_line(alert: Alert) -> str:
    """What to do about a trouble."""
    return f"{alert.remedy}: {clean(alert.remedy_text)}" if alert.remedy_text else alert.remedy


def recovered_line(alert: Alert) -> str:
    """What is over, and since when it was wrong."""
    device = f", {clean(alert.device)}" if alert.device else ""
    since = f" (wrong since {alert.at})" if alert.at else ""
    return f"{alert.check} on {clean(alert.where)}{device}{since}"


def some(lines: Sequence[str], mark: str = "") -> list[str]:
    """The first lines of many, with a mark before each, and how many there are more."""
    more = len(lines) - MOST_PLACES
    return [f"{mark}{line}" for line in lines[:MOST_PLACES]] + ([f"+{more:,} more"] if more > 0 else [])


def _part(text: str) -> str:
    return clip_bytes(text.replace("%", "%25").replace("#", "%23"), MAX_KEY_PART)
