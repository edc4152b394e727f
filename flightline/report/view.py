"""What the page shows, worked out in plain data so that the template only lays it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from flightline.fleet.causes import EXPLAINED
from flightline.fleet.remedies import ORDER, how
from flightline.fleet.result import Distribution, FindingDict, NodeRow, Report, TroubleGroup
from flightline_node.model import Status, Verdict, as_remedy, as_status

from . import charts
from .copies import Copies, copies
from .node_lines import NodeLine, lines, natural, where
from .notes import verdict_notes
from .text import (
    blocks,
    clean,
    compare,
    compare_group,
    count,
    covered,
    device_label,
    device_of,
    duration,
    evidence_of,
    example,
    host_ranges,
    hosts_of,
    no_go_parts,
    places,
    rank,
    short_list,
    show_value,
)

MOST_GROUPS = 120
MOST_LINES = 200
MOST_HOSTS = 12
MOST_PLACES = 60
MOST_OUTLIERS = 30
MOST_MEASURES = 150
MOST_MOMENTS = 16
DETAIL_CHARS = 2_000_000
"""Room for the findings of no-go nodes; a page over about 5 MB is slow to open and to send."""
FINDING_CHARS = 420
"""What the markup around one finding takes."""
VERSION_TITLES = {
    "driver": "Driver",
    "cuda": "CUDA",
    "vbios": "VBIOS",
    "kernel": "Kernel",
    "nccl": "NCCL",
    "efa_installer": "EFA installer",
    "efa_driver": "EFA driver",
}


@dataclass(frozen=True)
class Item:
    """One finding, or one group of findings, ready to be shown."""

    status: str
    check: str
    title: str
    message: str
    values: str
    where: str
    remedy: str
    remedy_text: str
    identity: str = ""
    evidence: Sequence[str] = ()
    places: Sequence[tuple[str, str, str]] = ()
    unlisted: int = 0
    explains: str = ""
    explained_by: str = ""


@dataclass
class Action:
    """A remedy with everything that asks for it. also: hosts that a remedy above lists as well."""

    title: str
    items: list[Item] = field(default_factory=list)
    hosts: dict[str, None] = field(default_factory=dict)
    also: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Detail:
    """A no-go node with its findings; quiet: those that do not block it and say little."""

    number: int
    host: str
    status: str
    facts: str
    loud: list[Item]
    quiet: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Timeline:
    """An incident: what happened when, who decided, and why."""

    id: str
    host: str
    state: str
    open: bool
    moments: list[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Measure:
    """A distribution with its drawing; chart is None when every value is the same."""

    name: str
    size: str
    low: str
    middle: str
    high: str
    chart: Any
    outliers: list[tuple[str, str, str, str]]
    unlisted: int


def view(report: Report) -> SimpleNamespace:
    """Work out the page of a report: everything that the template reads."""
    groups = sorted(report.groups, key=lambda group: -rank(group.status))
    fleet = sorted(report.fleet, key=lambda finding: -rank(finding.get("status")))
    found, copied = lines(report.rows), copies(report)
    details, undetailed = _details(report)
    standing = _by_place(report.rows)
    drawn, flat = _drawn(report.distributions)
    warned = [group for group in groups if group.status is Status.WARN and not covered(group, fleet)]
    passed = [finding for finding in fleet if as_status(finding.get("status")) is Status.PASS]
    return SimpleNamespace(
        title=f"{str(report.verdict).upper()}: {clean(report.run.id)}",
        go=report.verdict is Verdict.GO,
        verdict=str(report.verdict).upper(),
        counts=report.counts,
        parts=no_go_parts(report.rows),
        lines=[_line(line) for line in found[:MOST_LINES]],
        unlined=sum(len(line.hosts) for line in found[MOST_LINES:]),
        copies=_copies(copied) if copied else [],
        unnamed=copied.unnamed if copied else 0,
        notes=[clean(note) for note in verdict_notes(report)],
        facts=_facts(report),
        versions=_versions(report.rows),
        actions=_actions(groups, fleet),
        warnings=[_group(group) for group in warned[:MOST_GROUPS]],
        by_place=standing[:MOST_PLACES],
        unplaced=max(len(standing) - MOST_PLACES, 0),
        fleet=[_fleet(finding) for finding in fleet if finding not in passed],
        fleet_passed=[clean(finding.get("check", "")) for finding in passed],
        details=details,
        undetailed=undetailed,
        measures=[_measure(item) for item in drawn[:MOST_MEASURES]],
        flat=[(clean(item.name), show_value(charts.median(item), item.unit), f"{item.count:,}") for item in flat],
        unmeasured=max(len(drawn) - MOST_MEASURES, 0),
        detailed=[detail.number for detail in details],
        incidents=[_timeline(one) for one in report.incidents],
    )


def _timeline(one: Mapping[str, Any]) -> Timeline:
    """An incident as the store has it; what it lacks is left blank."""
    events = [event for event in one.get("events") or () if isinstance(event, Mapping)]
    is_open = not one.get("closed_at")
    state = one.get("state") if is_open else (events[-1].get("what") if events else "over")
    first, last = events[: MOST_MOMENTS // 2], events[MOST_MOMENTS // 2 :][-(MOST_MOMENTS // 2) :]
    moments = [_moment(event) for event in (*first, *last)]
    return Timeline(clean(one.get("id", "")), clean(one.get("host", "")), clean(state), is_open, moments)


def _moment(event: Mapping[str, Any]) -> tuple[str, str, str, str]:
    jobs = ", ".join(str(job) for job in event.get("jobs") or ())
    why = clean(event.get("why", "")) + (f" (jobs {clean(jobs)})" if jobs else "")
    at, what, actor = (clean(event.get(name, "")) for name in ("at", "what", "actor"))
    return at[:19].replace("T", " "), what, actor, why


def _line(line: NodeLine) -> tuple[str, str, str, str, str]:
    hosts = clean(line.hosts[0]) if len(line.hosts) == 1 else f"{count(len(line.hosts), 'node')}: {where(line)}"
    return hosts, str(line.remedy), str(line.status), clean(line.text), clean(line.tail)


def _copies(found: Copies) -> list[tuple[str, str]]:
    named = (("For --limit", found.limit), ("Slurm drain", found.drain), ("Hosts", found.hosts))
    return [(title, text) for title, text in named if text]


def _facts(report: Report) -> list[tuple[str, str]]:
    run = report.run
    types = Counter(row.instance_type for row in report.rows if row.instance_type)
    facts = {
        "Run": run.id,
        "Level": run.level,
        "Inventory": run.inventory,
        "Started": run.started_at.replace("T", " ").replace("+00:00", " UTC"),
        "Took": duration(run.started_at, run.finished_at),
        "Instance types": ", ".join(
            f"{name} \N{MULTIPLICATION SIGN} {number:,}" for name, number in types.most_common(6)
        ),
        "Checks": str(len(report.checks)),
        "Flightline": run.flightline,
    }
    return [(name, clean(value)) for name, value in facts.items() if value]


def _versions(rows: Iterable[NodeRow]) -> list[tuple[str, list[tuple[str, int]]]]:
    seen: dict[str, Counter[str]] = {}
    for row in rows:
        for name, value in row.versions.items():
            seen.setdefault(name, Counter())[str(value)] += 1
    return [
        (VERSION_TITLES.get(name, clean(name)), [(clean(value), number) for value, number in values.most_common(8)])
        for name, values in seen.items()
    ]


def _by_place(rows: Iterable[NodeRow]) -> list[tuple[str, int, int, str]]:
    """Rack or zone, its nodes, how many are no-go and with what: most trouble first. Nothing where all stand in one."""
    standing: dict[str, list[NodeRow]] = {}
    for row in rows:
        standing.setdefault(row.place, []).append(row)
    found = []
    for place in sorted(standing, key=natural):
        bad = [row for row in standing[place] if row.verdict is Verdict.NO_GO]
        roots = Counter(clean(check) for row in bad for check in {trouble.root["check"] for trouble in row.troubles})
        checks = short_list([(f"{check} {number}", number) for check, number in roots.most_common()], 4, "node")
        found.append((clean(place) or "no place known", len(standing[place]), len(bad), checks))
    return sorted(found, key=lambda one: -one[2]) if len(found) > 1 else []


def _group(group: TroubleGroup) -> Item:
    unit = group.unit
    rows = [
        (clean(host), clean(device), show_value(measured, unit)) for host, device, measured in group.where[:MOST_PLACES]
    ]
    return Item(
        status=str(group.status),
        check=clean(group.check),
        title=clean(group.title),
        message=("e.g. " if example(group) else "") + clean(group.message),
        values=compare_group(group.where, group.expected, unit),
        where=places(group.where, unit, most=MOST_HOSTS),
        remedy=str(group.remedy),
        remedy_text=clean(group.remedy_text),
        places=rows if len(rows) > MOST_HOSTS else (),
        unlisted=max(len(group.where) - MOST_PLACES, 0),
        explains=short_list([(clean(check), 1) for check in group.explains], MOST_HOSTS, "check"),
    )


def _fleet(finding: FindingDict) -> Item:
    return _finding(finding, where=short_list(host_ranges(hosts_of(finding)), MOST_HOSTS))


def _finding(finding: FindingDict, where: str = "", cause: str = "") -> Item:
    device, unit = device_of(finding), str(finding.get("unit") or "")
    label, message = device_label(device), clean(finding.get("message", ""))
    check, remedy = str(finding.get("check", "")), as_remedy(finding.get("remedy", "NONE"))
    return Item(
        status=str(as_status(finding.get("status"))),
        check=clean(check),
        title="",
        message=message if not label or label in message else f"{label}: {message}",
        values=compare(finding.get("measured"), finding.get("expected"), unit),
        where=where,
        remedy=str(remedy),
        remedy_text=how(finding, cause).text,
        explained_by=_explained_by(finding),
        identity=", ".join(f"{clean(key)} {clean(value)}" for key, value in device.items() if value is not None),
        evidence=evidence_of(finding),
    )


def _actions(groups: Sequence[TroubleGroup], fleet: Sequence[FindingDict]) -> list[Action]:
    """Sort what blocks by remedy, in the order to act; each with the hosts to hand to a command."""
    actions = {remedy: Action(remedy.row.title) for remedy in ORDER}
    roots = [group for group in groups if blocks(group.status) and not group.explained_by]
    for number, group in enumerate(roots):
        action = actions[group.remedy]
        action.hosts.update(dict.fromkeys(clean(host) for host in group.hosts))
        if number < MOST_GROUPS:
            action.items.append(_group(group))
        else:
            action.left_out += 1
    said = {check for check, covering in _by_check(groups).items() if any(covered(one, fleet) for one in covering)}
    for finding in fleet:
        if blocks(as_status(finding.get("status"))) and finding.get("check") not in said:
            action = actions[as_remedy(finding.get("remedy", "NONE"))]
            action.hosts.update(dict.fromkeys(clean(host) for host in hosts_of(finding)))
            action.items.append(_fleet(finding))
    wanted = [action for action in actions.values() if action.items or action.left_out]
    listed: dict[str, None] = {}
    for action in wanted:
        action.also = sum(host in listed for host in action.hosts)
        listed.update(action.hosts)
    return wanted


def _by_check(groups: Iterable[TroubleGroup]) -> dict[str, list[TroubleGroup]]:
    found: dict[str, list[TroubleGroup]] = {}
    for group in groups:
        found.setdefault(group.check, []).append(group)
    return found


def _details(report: Report) -> tuple[list[Detail], int]:
    """Sections of the no-go nodes while there is room, and how many nodes are left without one."""
    details: list[Detail] = []
    room, left = DETAIL_CHARS, 0
    for number, row in enumerate(report.rows):
        if row.verdict is Verdict.GO:
            continue
        room -= sum(_size(finding) for finding in row.findings) + FINDING_CHARS if room > 0 else 0
        if room > 0:
            details.append(_detail(number, row))
        else:
            left += 1
    return details, left


def _size(finding: FindingDict) -> int:
    """About how many characters a finding takes on the page."""
    evidence = sum(len(line) for line in evidence_of(finding))
    message = len(str(finding.get("message", "")))
    loud = rank(finding.get("status")) >= rank(Status.WARN)
    return message + (evidence + FINDING_CHARS + len(str(finding.get("device", ""))) if loud else 100)


def _detail(number: int, row: NodeRow) -> Detail:
    ordered = sorted(row.findings, key=lambda finding: -rank(finding.get("status")))
    loud = [finding for finding in ordered if rank(finding.get("status")) >= rank(Status.WARN)]
    quiet = [finding for finding in ordered if rank(finding.get("status")) < rank(Status.WARN)]
    took = f"{row.seconds:.{0 if row.seconds >= 10 else 1}f} s" if row.seconds else ""
    return Detail(
        number,
        clean(row.host),
        str(row.status),
        ", ".join(clean(fact) for fact in (row.instance_type, row.instance_id, took) if fact),
        _together(_causes_first(row, loud)),
        [
            (str(as_status(item.get("status"))), clean(item.get("check", "")), clean(item.get("message", "")))
            for item in quiet
        ],
    )


def _explained_by(finding: FindingDict) -> str:
    found = finding.get(EXPLAINED) or {}
    return clean(f"{found['check']}: {found['message']}") if found else ""


def _causes_first(row: NodeRow, loud: Sequence[FindingDict]) -> list[Item]:
    """Each root cause before what it explains, and warnings after all that blocks."""
    causes = {id(trouble.root): trouble.cause for trouble in row.troubles}
    order = [one for trouble in row.troubles for one in (trouble.root, *trouble.explained)]
    rest = [finding for finding in loud if not blocks(as_status(finding.get("status")))]
    return [_finding(finding, cause=causes.get(id(finding), "")) for finding in (*order, *rest)]


def _together(items: Iterable[Item]) -> list[Item]:
    """Join the checks that one cause left with the same words on a node: a broken probe is told once."""
    alike: dict[tuple[object, ...], list[Item]] = {}
    for one in items:
        words = (one.status, one.message, one.values, one.remedy, one.identity)
        alike.setdefault((*words, tuple(one.evidence), bool(one.explained_by)), []).append(one)
    return [
        replace(same[0], check=", ".join(dict.fromkeys(one.check for one in same)), remedy_text=_common(same))
        for same in alike.values()
    ]


def _common(same: Sequence[Item]) -> str:
    texts = {one.remedy_text for one in same}
    return texts.pop() if len(texts) == 1 else ""


def _drawn(items: Iterable[Distribution]) -> tuple[list[Distribution], list[Distribution]]:
    """Part what deserves a drawing, most outliers first, from what is the same everywhere."""
    kept: tuple[list[Distribution], list[Distribution]] = ([], [])
    for item in items:
        kept[charts.is_flat(item) and not item.outliers].append(item)
    return sorted(kept[0], key=lambda item: -len(item.outliers)), kept[1]


def _measure(item: Distribution) -> Measure:
    least, most = charts.ends(item)
    low, middle, high = (show_value(value, item.unit) for value in (least, charts.median(item), most))
    chart = None if charts.is_flat(item) else charts.histogram(item)
    outliers = [
        (clean(one.host), clean(one.device), show_value(one.value, item.unit), f"{one.score:+.1f}")
        for one in item.outliers[:MOST_OUTLIERS]
    ]
    left = max(len(item.outliers) - MOST_OUTLIERS, 0)
    return Measure(clean(item.name), count(item.count, "value"), low, middle, high, chart, outliers, left)
