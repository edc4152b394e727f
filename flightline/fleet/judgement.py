"""Judge a run: a row for every expected host, what only shows across hosts, and the fleet's verdict.

Records stream through once and are boiled down (PASS findings become a cell), so that ten thousand
nodes fit in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from sys import intern
from typing import Any

import flightline_node
from flightline_node.judge.checks import CHECKS, ecc_uncorrected
from flightline_node.judge.must import Answer, verdict_of
from flightline_node.model import BLOCKING, LEVELS, RANK, STATUSES, UNSAID, Reason, Remedy, Status, Verdict, worst

from ..record import reasons
from ..store.rows import NODE, REACHABLE, gave_none, lost_record
from ..store.sqlite import ExpectedHost, Record, Run, Store
from . import growth, together
from .checks import FLEET_CHECKS, UNIFORM
from .groups import group
from .outliers import Samples, distributions
from .result import Distribution, FindingDict, NodeRow, Report, RunInfo
from .stragglers import stragglers
from .waivers import FleetWaivers, date_of

NO_SERIAL = frozenset({"", "0", "N/A", "[N/A]", "None", "Unknown"})
MOST_PLACES_IN_EVIDENCE = 8


@dataclass
class _FleetIntake:
    """What the records leave behind as they stream by."""

    rows: dict[str, NodeRow] = field(default_factory=dict)
    samples: Samples = field(default_factory=Samples)
    gpus: dict[str, dict[str, str]] = field(default_factory=lambda: {"uuid": {}, "serial": {}})
    twice: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    skips: dict[tuple[str, str], FindingDict] = field(default_factory=dict)
    waivers: FleetWaivers = field(default_factory=lambda: FleetWaivers(date.max))
    counters: dict[str, growth.Sample] = field(default_factory=dict)
    together: Record = field(default_factory=dict)
    lost: bool = False
    late: list[str] = field(default_factory=list)

    def add(self, record: Record, late: bool = False) -> None:
        if record.get("host") == together.FABRIC_HOST:
            self.together = self.together or record
            return
        row = self._row(record)
        if row.host in self.rows:
            return
        self.rows[row.host] = row
        if late:
            self.late.append(row.host)
        if record.get("fleet_waivers"):
            self.waivers.add(row.host, record["fleet_waivers"])
        if growth.is_counting(record):
            self.counters[row.host] = growth.sample(record)
        self.samples.add(row.host, row.instance_type, record.get("measures") or {})
        for gpu in record.get("gpus") or ():
            for key, owners in self.gpus.items():
                value = str(gpu.get(key) or "")
                first = owners.setdefault(value, row.host) if value not in NO_SERIAL else row.host
                if first != row.host:
                    self.twice.setdefault((key, value), {first}).add(row.host)

    def _row(self, record: Record) -> NodeRow:
        cells: dict[str, Status] = {}
        kept: list[FindingDict] = []
        for finding in record.get("findings", ()):
            status, check = STATUSES.get(finding["status"], Status.UNKNOWN), intern(finding["check"])
            known = cells.get(check)
            if known is None or RANK[status] > RANK[known]:
                cells[check] = status
            if status is not Status.PASS:
                kept.append(self._slim(finding, status, check))
        seen = set(cells.values())
        return NodeRow(
            host=str(record["host"]),
            verdict=verdict_of(Answer("", status) for status in seen),
            status=worst(seen),
            instance_id=str(record.get("instance_id") or ""),
            instance_type=intern(str(record.get("instance_type") or "")),
            seconds=float(record.get("seconds") or 0.0),
            cells=cells,
            findings=kept,
            versions={intern(str(k)): intern(str(v)) for k, v in (record.get("versions") or {}).items()},
        )

    def _slim(self, finding: FindingDict, status: Status, check: str) -> FindingDict:
        if status is Status.SKIP and not finding.get("device") and not finding.get("waiver"):
            # The same skip on every node is one object, made once: half of a record's findings are skips.
            key = (check, finding["message"])
            known = self.skips.get(key)
            if known is None:
                known = self.skips[key] = {**UNSAID, **finding}
            return known
        words = {"status": str(status), "remedy": str(_REMEDIES.get(finding.get("remedy", ""), Remedy.INVESTIGATE))}
        return {**UNSAID, **finding, "check": check, **words}


_REMEDIES = {str(remedy): remedy for remedy in Remedy}


def judge_run(store: Store, run_id: str, late: bool = True) -> Report:
    """The report of a run.

    late: take what came after a host was given up in place of the row that says so; without it this is what was
    judged first.

    Raises StoreError when the run is not there or cannot be read.
    """
    run = store.run(run_id)
    intake = _FleetIntake(waivers=FleetWaivers(date_of(run.started_at)))
    for record, is_late in _with_late(store, run, late):
        intake.add(record, late=is_late)
    rows = [_row_of(host, intake) for host in run.hosts]
    intake.lost = not intake.together and run.level == LEVELS[-1] and together.FABRIC_HOST in store.answered(run.run_id)
    shared = _together(rows, intake)
    _grow(rows, intake, growth.earlier(store, run, intake.counters))
    fleet = [*_inventory(rows), *shared, *_uniform(rows, intake.waivers), *_duplicates(rows, intake.twice)]
    measured = distributions(intake.samples)
    _straggle(rows, measured, intake.waivers)
    go = rows and all(row.verdict is Verdict.GO for row in rows)
    blocked = any(Status(finding["status"]) in BLOCKING for finding in fleet)
    info = RunInfo(run.run_id, run.started_at, run.finished_at, run.level, run.inventory, flightline_node.__version__)
    return Report(
        run=info,
        verdict=Verdict.GO if go and not blocked else Verdict.NO_GO,
        checks=_columns(rows),
        rows=rows,
        fleet=fleet,
        groups=group(rows),
        distributions=measured,
        late=[row.host for row in rows if row.host in set(intake.late)],
        first=run.verdict,
    )


def as_judged(store: Store, run_id: str) -> Iterator[Record]:
    """The records of a run as judge_run takes them: a late one in place of the row that says that none came."""
    return (record for record, _ in _with_late(store, store.run(run_id), True))


def _with_late(store: Store, run: Run, late: bool) -> Iterator[tuple[Record, bool]]:
    came = {str(record["host"]): record for record in store.late(run.run_id)} if late else {}
    open_ = {host.host for host in run.hosts}
    for record in store.records(run.run_id):
        is_late = record["host"] in came and record["host"] in open_ and gave_none(record)
        open_.discard(record["host"])
        yield (came[record["host"]] if is_late else record), is_late
    yield from ((came[host], True) for host in came if host in open_)


def _row_of(host: ExpectedHost, intake: _FleetIntake) -> NodeRow:
    row = intake.rows.get(host.host)
    if row is None:
        intake.add(lost_record(host))
        row = intake.rows[host.host]
    row.instance_id = row.instance_id or host.instance_id
    row.instance_type = row.instance_type or host.instance_type
    row.place, row.address = host.place, host.address
    return row


def _columns(rows: Iterable[NodeRow]) -> list[str]:
    seen = {check for row in rows for check in row.cells}
    known = [REACHABLE, NODE, *CHECKS, *(check for check in FLEET_CHECKS if check not in (REACHABLE, NODE))]
    return [check for check in known if check in seen] + sorted(seen - set(known))


def _finding(
    check: str,
    status: Status,
    reason: Reason,
    message: str,
    hosts: list[str],
    remedy: Remedy | None = None,
    **rest: Any,
) -> FindingDict:
    base: FindingDict = {"device": {}, "measured": None, "expected": None, "unit": "", "evidence": []}
    words = {"check": check, "status": str(status), "message": message, "remedy": str(remedy or reason.remedy)}
    return {**words, "hosts": hosts, **base, "reason": reason.id, **rest}


def _inventory(rows: list[NodeRow]) -> list[FindingDict]:
    if rows:
        return []
    message = "no hosts: the inventory (or --limit) selects none, wanted at least one"
    figures: dict[str, Any] = {"measured": 0, "expected": 1, "unit": "hosts"}
    return [_finding("inventory", Status.FAIL, reasons.NO_HOSTS, message, [], **figures)]


def _together(rows: list[NodeRow], intake: _FleetIntake) -> list[FindingDict]:
    """Put what the nodes showed together into their rows; what is about all of them is the fleet's."""
    found = together.by_host(intake.together)
    for row in rows:
        for finding in found.get(row.host, ()):
            for one in intake.waivers.settle(row, finding):
                if one["status"] == str(Status.PASS):
                    row.cells[one["check"]] = worst((Status.PASS, row.cells.get(one["check"], Status.SKIP)))
                else:
                    _blame(row, one)
    everyone = [row.host for row in rows]
    if intake.lost:
        message = "the record of the test over several nodes cannot be read; wanted it whole: judge the nodes again"
        found.setdefault("", []).append(_finding(together.FABRIC, Status.UNKNOWN, reasons.RECORD_LOST, message, []))
    return [{**finding, "hosts": everyone} for finding in found.get("", ()) if finding["status"] != str(Status.PASS)]


def _straggle(rows: list[NodeRow], measured: list[Distribution], waivers: FleetWaivers) -> None:
    """Name the nodes and GPUs that a job would wait for."""
    by_host = {row.host: row for row in rows}
    for one in stragglers(measured):
        row = by_host.get(one.outlier.host)
        for settled in waivers.settle(row, one.finding()) if row else ():
            _blame(by_host[one.outlier.host], settled)


def _grow(rows: list[NodeRow], intake: _FleetIntake, earlier: Mapping[str, tuple[str, growth.Sample]]) -> None:
    """Compare every node's error counters with its own of an earlier run."""
    for row in rows:
        since, then = earlier.get(row.host, ("", None))
        if then is None:
            continue
        now = intake.counters[row.host]
        for check in growth.compared(then, now):
            row.cells[check] = Status.PASS
        for grown in growth.compare(then, now, since):
            if grown.check == growth.ECC_CHECK and row.cells.get(ecc_uncorrected.CHECK.id) is Status.FAIL:
                continue  # the same errors, named by the node already
            words = (grown.check, grown.status, grown.reason, grown.message, grown.measured, grown.expected)
            finding = _node_finding(*words)
            finding.update(device=dict(grown.device), unit="errors", evidence=list(grown.evidence))
            for one in intake.waivers.settle(row, finding):
                _blame(row, one)


def _uniform(rows: list[NodeRow], waivers: FleetWaivers) -> list[FindingDict]:
    by_type: dict[str, list[NodeRow]] = defaultdict(list)
    for row in rows:
        by_type[row.instance_type].append(row)
    findings = []
    for instance_type, group_rows in by_type.items():
        driver_odd: set[str] = set()
        for key in UNIFORM:
            # nvidia-smi prints the CUDA version its driver supports: one cause, one finding.
            compared = [row for row in group_rows if key != "cuda" or row.host not in driver_odd]
            finding = _uniform_one(key, instance_type, compared, waivers)
            if finding:
                findings.append(finding)
            if key == "driver":
                driver_odd = {row.host for row in group_rows if _differs(row, "uniform_driver")}
    return findings


def _differs(row: NodeRow, check: str) -> bool:
    """Also where the difference is waived."""
    return row.cells.get(check, Status.PASS) is not Status.PASS and any(
        finding["check"] == check for finding in row.findings
    )


def _uniform_one(key: str, instance_type: str, rows: list[NodeRow], waivers: FleetWaivers) -> FindingDict | None:
    holders: dict[str, list[NodeRow]] = defaultdict(list)
    for row in rows:
        if row.versions.get(key):
            holders[row.versions[key]].append(row)
    if len(holders) < 2:
        return None
    name, status = UNIFORM[key]
    counts = Counter({value: len(nodes) for value, nodes in holders.items()}).most_common()
    tie = counts[0][1] == counts[1][1]
    majority = "one version" if tie else counts[0][0]
    odd = [row for row in rows if row.versions.get(key) not in (None, "", majority)]
    split = ", ".join(f"{value} on {number}" for value, number in counts)
    check = f"uniform_{key}"
    for row in rows:
        if row.versions.get(key) == majority:
            row.cells[check] = Status.PASS
        elif not row.versions.get(key):
            row.cells[check] = Status.SKIP
    settled: dict[str, list[FindingDict]] = {}
    for row in odd:
        measured = row.versions[key]
        message = f"{name} {measured}, wanted {majority} (nodes of {instance_type}: {split})"
        finding = _node_finding(check, status, reasons.DIFFERS, message, measured, majority)
        settled[row.host] = waivers.settle(row, finding)
        for one in settled[row.host]:
            _blame(row, one)
    odd = [row for row in odd if any(one["status"] != str(Status.SKIP) for one in settled[row.host])]
    if not odd:
        return None  # waived on every node that differs: each row says so
    message = f"{name} differs between nodes of {instance_type}: {split}; wanted {majority} on all"
    figures: dict[str, Any] = {"measured": dict(counts), "expected": majority}
    return _finding(check, status, reasons.DIFFERS, message, [row.host for row in odd], **figures)


def _duplicates(rows: list[NodeRow], twice: Mapping[tuple[str, str], set[str]]) -> list[FindingDict]:
    findings = []
    by_id: dict[str, list[NodeRow]] = defaultdict(list)
    for row in rows:
        if row.instance_id:
            by_id[row.instance_id].append(row)
    for instance_id, same in by_id.items():
        if len(same) > 1:
            findings.append(_duplicate("duplicate_instance", f"instance {instance_id}", same, Remedy.FIX_CONFIG))
    order = {row.host: position for position, row in enumerate(rows)}
    shared: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (key, value), hosts in twice.items():
        shared[tuple(sorted(hosts & set(order), key=order.__getitem__))].append(f"{key} {value}")
    for names, gpus in shared.items():
        if len(names) > 1:
            same = [rows[order[name]] for name in names]
            what = f"GPU {gpus[0]}" + (f" and {len(gpus) - 1} more" if len(gpus) > 1 else "")
            evidence = gpus[:MOST_PLACES_IN_EVIDENCE]
            findings.append(_duplicate("duplicate_gpu", what, same, Remedy.INVESTIGATE, evidence))
    return findings


def _duplicate(
    check: str, what: str, rows: list[NodeRow], remedy: Remedy, evidence: list[str] | None = None
) -> FindingDict:
    hosts = [row.host for row in rows]
    message = f"{what} is on {len(rows)} hosts: {', '.join(hosts[:MOST_PLACES_IN_EVIDENCE])}; wanted on one"
    for row in rows:
        _blame(row, _node_finding(check, Status.FAIL, reasons.TWICE, message, what, "one host", remedy))
    figures: dict[str, Any] = {"measured": len(rows), "expected": 1, "unit": "hosts", "evidence": evidence or []}
    return _finding(check, Status.FAIL, reasons.TWICE, message, hosts, remedy, **figures)


def _node_finding(
    check: str, status: Status, reason: Reason, message: str, measured: Any, expected: Any, remedy: Remedy | None = None
) -> FindingDict:
    finding = _finding(check, status, reason, message, [], remedy, measured=measured, expected=expected)
    del finding["hosts"]
    return finding


def _blame(row: NodeRow, finding: FindingDict) -> None:
    """Put a fleet finding into the row of a node that it concerns."""
    status, check = Status(finding["status"]), finding["check"]
    row.findings.append(finding)
    row.cells[check] = worst((status, row.cells.get(check, Status.SKIP)))
    row.status = worst((status, row.status))
    if status in BLOCKING:
        row.verdict = Verdict.NO_GO
