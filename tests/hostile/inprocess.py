"""Hostile answers through the gate, the store and the judgement of a fleet, in this process."""

import json
import random
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from flightline.fleet.judgement import judge_run
from flightline.fleet.result import Report
from flightline.record import intake
from flightline.record.answers import asked_of
from flightline.store.rows import broken_record
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore
from flightline_node.inputs import defaults
from flightline_node.read import strictjson
from tests.memory_store import MemoryStore

from .generator import CALL, CHECKS, HOST, START, TYPE, Case, by_field, cut, good, mutated
from .oracle import of_text, should_be_go

ASKED = asked_of(
    {**defaults(), "instance_type": TYPE, "host": HOST, "instance_id": "", "call_id": CALL, "checks": CHECKS},
    datetime.fromisoformat(START).timestamp(),
)
IDENTITY = {"host": HOST, "instance_type": TYPE, "level": "quick", "call_id": CALL}
FLEET = 100


def cases(many: int, seed: int) -> Iterator[Case]:
    """Every field's twists, then mutations, as many as wanted."""
    rng, made = random.Random(seed), 0
    for source in (by_field(), by_field("FAIL"), _random(rng)):
        for case in source:
            yield case
            made += 1
            if made >= many:
                return


def _random(rng: random.Random) -> Iterator[Case]:
    while True:
        yield cut(rng) if rng.random() < 0.2 else mutated(rng, rng.choice(("PASS", "PASS", "WARN", "FAIL")))


def expected(case: Case) -> bool:
    """Go, by the oracle."""
    return (
        of_text(case.text, ASKED.table, **IDENTITY) if case.text else should_be_go(case.answer, ASKED.table, **IDENTITY)
    )


def taken(case: Case, host: str) -> dict[str, Any]:
    """What the control side makes of it."""
    try:
        answer = strictjson.loads(case.text) if case.text else case.answer
        return {**intake.admit(answer, ASKED), "host": host}
    except (ValueError, intake.AnswerRefusedError) as error:
        return broken_record(ExpectedHost(host), str(error))


def judge(batch: Iterable[Case]) -> dict[str, bool]:
    """Host -> go, of a fleet in which every tenth host is a good one."""
    rows: dict[str, Any] = {}
    for number, case in enumerate(batch):
        rows[f"h{number:04}"] = taken(case, f"h{number:04}")
        if number % 10 == 0:
            rows[f"good{number:04}"] = {**intake.admit(good(), ASKED), "host": f"good{number:04}"}
    return verdicts(judge_run(MemoryStore(_run(rows), rows), "r"))


def _run(hosts: Iterable[str], run_id: str = "r", hour: int = 10) -> Run:
    return Run(
        run_id, f"2026-11-22T{hour}:00:00+00:00", "quick", "made", tuple(ExpectedHost(host, TYPE) for host in hosts)
    )


def verdicts(report: Report) -> dict[str, bool]:
    """Host -> go by its own record.

    Good hosts share a GPU by construction, a twisted counter of an earlier run may well have grown since, and a twisted
    driver is none of its neighbours': the
    fleet's judgement blames both, rightly.
    """
    shared = ("duplicate_gpu", "duplicate_instance", "growth_ecc", "uniform_driver")
    found = {}
    for row in report.rows:
        blocking = [one for one in row.findings if one["status"] in ("FAIL", "UNKNOWN", "UNREACHABLE")]
        found[row.host] = row.verdict == "go" or (bool(blocking) and all(one["check"] in shared for one in blocking))
    return found


def stored_raw(batch: Iterable[Case], path: Path) -> dict[str, bool]:
    """Answers as a version without the gate stored them, judged; then judged again by a healthy run after it."""
    named = {f"h{number:04}": case.answer for number, case in enumerate(batch)}
    answers = {host: {**one, "host": host} if isinstance(one, dict) else one for host, one in named.items()}
    later = {host: {**intake.admit(good(), ASKED), "host": host} for host in answers}
    with SqliteStore(path) as store:
        for run_id, hour, rows in (("r", 10, answers), ("later", 11, later)):
            store.start(_run(rows, run_id, hour))
            with store._transaction("write") as db:
                for host, row in rows.items():
                    packed = zlib.compress(json.dumps(row, default=str).encode(), 1)
                    db.execute("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?)", (run_id, host, "", "", "go", packed))
                    db.execute("INSERT INTO names VALUES (?, ?, ?)", (host, run_id, host))
        judge_run(store, "r")
        for host in answers:
            assert len(store.history(host)) == 2
        return verdicts(judge_run(store, "later"))
