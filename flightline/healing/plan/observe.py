"""From what was seen of nodes (a run, a marker) to incidents: opened, added to, cleared. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flightline_node.judge.checks import CHECKS
from flightline_node.model import BLOCKING, EVIDENCE, Remedy, Verdict, device_label
from flightline_node.names import check_id
from flightline_node.watch.marker import findings_of, is_suspect

from ...fleet.causes import Finding, troubles
from ...fleet.judgement import NO_SERIAL
from ...fleet.result import Report
from ...record.reasons import HOST_LOST
from ...store.rows import NODE, REACHABLE
from ..journal.incident import CLAIMED, LOST, Incident, Moment, NodeTrouble, advance, deeper, opened
from ..journal.machine import EventKind, NodeState
from ..journal.stamps import seconds
from .planner import SchedulerView

NO_GROUP = "nodes"
MARKER_SCHEMA = "flightline-quarantine/1"
_LEVEL_OF = {name: check.level for name, check in CHECKS.items()}


@dataclass(frozen=True)
class Sighting:
    """A node as it was seen once. good: checks that were measured and passed. out_at: since when it is out, or ''.

    run: which saw it, where it was one of the control side. about: CLAIMED or LOST, where only the scheduler said so.
    """

    host: str
    instance_id: str
    group: str
    at: str
    actor: str
    level: str
    troubles: tuple[NodeTrouble, ...] = ()
    out_at: str = ""
    why_out: str = ""
    good: frozenset[str] = frozenset()
    run: str = ""
    about: str = ""

    def clears(self, one: Incident) -> bool:
        """Does it prove that an incident is over? Only what was measured again, as deep, and passed is over."""
        asked = {trouble.check for trouble in one.troubles}
        return not self.troubles and asked <= self.good and deeper(self.level, one.level) == self.level


def groups_of(report: Report) -> dict[str, str]:
    """Host -> group: the instance type, because that is what a job asks for."""
    return {row.host: row.instance_type or NO_GROUP for row in report.rows}


def from_report(report: Report, serials: Mapping[tuple[str, str], str] | None = None) -> list[Sighting]:
    """Every node of a run. serials: (host, PCI address or index) -> GPU serial, for findings that lack it."""
    at = report.run.finished_at or report.run.started_at
    found = []
    for row in report.rows:
        roots = [trouble.root for trouble in row.troubles]
        if row.verdict is Verdict.NO_GO and not roots:
            roots = [{"check": "node", "status": "UNKNOWN", "message": "nothing could be judged"}]
        name = row.instance_id or row.host
        named = tuple(trouble_of(root, name, row.host, serials or {}) for root in roots)
        group = row.instance_type or NO_GROUP
        level = report.run.level
        good = {check for check, status in row.cells.items() if status in EVIDENCE - BLOCKING}
        # A node that was measured at all is there.
        good |= {REACHABLE, NODE} - row.cells.keys() if good else set()
        run = report.run.id
        seen = Sighting(row.host, row.instance_id, group, at, f"run {run}", level, named, good=frozenset(good), run=run)
        found.append(seen)
    return found


def from_marker(host: str, group: str, marker: Mapping[str, Any], drained_at: str = "") -> Sighting:
    """A node that quarantined itself. Raises ValueError for what is no marker.

    drained_at: since when the scheduler has it out. A marker that somebody overruled, and that took the node out again,
    is seen anew then.
    """
    if marker.get("schema") != MARKER_SCHEMA:
        raise ValueError(f"{host}: saw the marker schema {marker.get('schema')!r}, wanted {MARKER_SCHEMA}")
    known = [item for item in findings_of(marker) if item.get("check")]
    findings = [{**item, "check": check_id(str(item["check"]))} for item in known]
    instance = str(marker.get("instance_id") or "")
    roots = [trouble.root for trouble in troubles(findings)] or findings or [{"check": "node", "status": "UNKNOWN"}]
    named = tuple(trouble_of(root, instance or host, host, {}) for root in roots)
    level = "quick"
    for root in named:
        level = deeper(level, _LEVEL_OF.get(root.check, "quick"))
    since = max(str(marker.get("since") or ""), drained_at, key=seconds)
    actor, run = str(marker.get("by") or "flightline-watch"), str(marker.get("run") or "")
    out_at = "" if is_suspect(marker) else since
    return Sighting(
        host, instance, group, since, f"{actor} run {run}".strip(), level, named, out_at, f"marker of {actor}"
    )


def from_claim(host: str, instance_id: str, group: str, place: SchedulerView, now: str) -> Sighting | None:
    """A node of which only the scheduler tells: by our claim, or because it lost the host; None for neither."""
    at, name = place.since or now, instance_id or host
    if place.lost:
        said = f"the scheduler lost the host: {place.reason}"
        one = NodeTrouble(f"{REACHABLE}@{name}:lost", REACHABLE, str(HOST_LOST.remedy), said, reason=HOST_LOST.id)
        return Sighting(host, instance_id, group, at, "the scheduler", "quick", (one,), at, place.reason, about=LOST)
    held = place.claim or place.suspect
    if held is None:
        return None
    remedy, what = str(Remedy.INVESTIGATE), held.what.lstrip(": ") or held.reason
    one = NodeTrouble(f"{held.check}@{name}:{held.reason}", held.check, remedy, what, reason=held.reason)
    actor = f"flightline-{held.by} run {held.run}".removesuffix(" run ")
    out_at = at if place.out else ""
    return Sighting(host, instance_id, group, at, actor, held.level, (one,), out_at, place.reason, about=CLAIMED)


def trouble_of(finding: Finding, node: str, host: str, serials: Mapping[tuple[str, str], str]) -> NodeTrouble:
    """A root finding with its key: check and GPU serial, else check, node and part."""
    device = finding.get("device") or {}
    serial = str(device.get("serial") or "")
    if serial in NO_SERIAL:
        places = (str(device.get(key, "")) for key in ("pci", "index"))
        serial = next((serials[host, place] for place in places if (host, place) in serials), "")
    check, label = str(finding["check"]), device_label(device)
    return NodeTrouble(
        key=f"{check}@{serial}" if serial else f"{check}@{node}:{label}",
        check=check,
        remedy=str(finding.get("remedy") or "NONE"),
        message=str(finding.get("message") or "")[:400],
        device=label,
        serial=serial,
        status=str(finding.get("status") or "UNKNOWN"),
        evidence=tuple(str(line)[:300] for line in (finding.get("evidence") or ())[:8]),
        reason=str(finding.get("reason") or ""),
    )


def absorb(sightings: Iterable[Sighting], known: Sequence[Incident], now: str) -> list[Incident]:
    """The open incidents after these sightings: opened, added to, cleared; those that are closed by it come too.

    A sighting that is older than the end of the node's last incident says nothing new.
    """
    by_host = {one.host: one for one in known if one.is_open}
    ended: dict[str, float] = {}
    for one in known:
        if not one.is_open:
            ended[one.host] = max(ended.get(one.host, 0.0), seconds(one.closed_at))
    for seen in sightings:
        there = by_host.get(seen.host)
        if there is not None:
            by_host[seen.host] = _out(_adds(there, seen, now), seen)
        elif seen.troubles and seconds(seen.at) > ended.get(seen.host, -1.0):
            by_host[seen.host] = _out(_opened(seen), seen)
    return list(by_host.values())


def _adds(there: Incident, seen: Sighting, now: str) -> Incident:
    """An open incident and one more look. All that the scheduler alone can add is, once, that the host is lost."""
    if seen.about == CLAIMED or (seen.about == LOST and {one.key for one in seen.troubles} <= there.keys):
        return there
    return _joined(there, replace(seen, at=now) if seen.about == LOST else seen, now)


def _opened(seen: Sighting) -> Incident:
    evidence = tuple(line for trouble in seen.troubles for line in trouble.evidence)
    first = Moment(
        seen.at, EventKind.DETECTED, seen.actor, _said(seen.troubles), evidence, run=seen.run, about=seen.about
    )
    level = seen.level
    for trouble in seen.troubles:
        level = deeper(level, _LEVEL_OF.get(trouble.check, level))
    return opened(seen.host, seen.instance_id, seen.group, level, seen.troubles, first)


def _out(one: Incident, seen: Sighting) -> Incident:
    if seen.out_at and one.is_open and one.state is NodeState.IN_SERVICE:
        return advance(one, Moment(seen.out_at, EventKind.QUARANTINED, seen.actor, seen.why_out))
    return one


def _joined(one: Incident, seen: Sighting, now: str) -> Incident:
    """What a later look at a node with an open incident adds to it; an older look adds nothing."""
    if seconds(seen.at) <= max(seconds(one.opened_at), seconds(one.proof.at) if one.proof else 0.0):
        return one
    if not seen.troubles:
        if one.state is not NodeState.IN_SERVICE or not seen.clears(one):
            return one
        return advance(one, Moment(now, EventKind.CLEARED, seen.actor, "a later run found the node good"))
    fresh = tuple(trouble for trouble in seen.troubles if trouble.key not in one.keys)
    if not fresh and one.proof is None:
        return one
    if any(event.at == seen.at and event.actor == seen.actor for event in one.events):
        return one
    evidence = tuple(line for trouble in seen.troubles for line in trouble.evidence)
    event = Moment(seen.at, EventKind.DETECTED, seen.actor, _said(fresh or seen.troubles), evidence, run=seen.run)
    return advance(replace(one, troubles=(*one.troubles, *fresh), level=deeper(one.level, seen.level)), event)


def _said(found: Sequence[NodeTrouble]) -> str:
    return "; ".join(one.said for one in found[:4])
