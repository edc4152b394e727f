"""report.json: everything of a run for scripts, one node a line. schema.json beside this file describes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import IO, Any

from flightline.fleet.result import Distribution, NodeRow, Report, TroubleGroup
from flightline.store.jsontext import encode, encode_decoded
from flightline_node.model import UNSAID, Status

SCHEMA = "flightline-report/1"
PASS = str(Status.PASS)


def schema() -> dict[str, Any]:
    """Load the JSON Schema (draft 2020-12) of report.json."""
    text = resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def write(report: Report, records: Iterable[dict[str, Any]], stream: IO[str]) -> None:
    """Write the report; nodes come last, streamed, so that one record at a time is in memory."""
    for number, (key, value) in enumerate(_head(report)):
        stream.write(("{\n" if number == 0 else ",\n") + encode(key) + ": " + encode(value))
    stream.write(',\n"nodes": [')
    for number, node in enumerate(_nodes(report, records)):
        stream.write(("\n" if number == 0 else ",\n") + encode_decoded(node))
    stream.write("\n]\n}\n")


def _head(report: Report) -> Iterator[tuple[str, Any]]:
    run = report.run
    yield "schema", SCHEMA
    yield "run", vars(run)
    yield "verdict", str(report.verdict)
    if report.late:
        yield "late", {"hosts": report.late, "first_verdict": report.first}
    if report.proofs:
        yield "proof_age_hours", report.proofs
    yield "counts", report.counts
    yield "checks", list(report.checks)
    yield "fleet", report.fleet
    yield "groups", [_group(group) for group in report.groups]
    yield "distributions", [_distribution(item) for item in report.distributions]


def _group(group: TroubleGroup) -> dict[str, Any]:
    where = [{"host": host, "device": device, "measured": measured} for host, device, measured in group.where]
    plain = {name: value for name, value in vars(group).items() if name != "where"}
    words = {"status": str(group.status), "remedy": str(group.remedy), "explains": list(group.explains)}
    return {**plain, **words, "where": where}


def _distribution(item: Distribution) -> dict[str, Any]:
    return {**vars(item), "outliers": [vars(outlier) for outlier in item.outliers]}


def _nodes(report: Report, records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give a node per row, each once: those with a record as the records come, then those without one."""
    waiting = {row.host: row for row in report.rows}
    order = {check: number for number, check in enumerate(report.checks)}
    for record in records:
        row = waiting.pop(str(record.get("host", "")), None)
        if row is not None:
            yield _node(row, record, order)
    for row in waiting.values():
        yield _node(row, None, order)


def _node(row: NodeRow, record: dict[str, Any] | None, order: dict[str, int]) -> dict[str, Any]:
    """Join the record with what the run made of it; the row rules where both speak, for it knows the fleet."""
    recorded = (record or {}).get("findings", ())
    passed = [{**UNSAID, **finding} for finding in recorded if finding.get("status") == PASS]
    findings: list[dict[str, Any]] = [*passed, *row.findings]
    places = [order.get(finding.get("check", ""), len(order)) for finding in findings]
    findings = [findings[at] for at in sorted(range(len(findings)), key=places.__getitem__)]
    known = {name: getattr(row, name) for name in ("host", "instance_id", "instance_type", "place")}
    said = {"verdict": str(row.verdict), "status": str(row.status), "seconds": row.seconds}
    rest = {"recorded": record is not None, "cells": row.cells, "findings": findings, "versions": row.versions}
    # A host that was not reached has no measures.
    return {"measures": {}, **(record or {}), **known, **said, **rest}
