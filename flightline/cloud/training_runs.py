"""Runs of the training table, put together from the steps that the functions wrote of each. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from . import items
from .clients import Clients, explained

UNKNOWN = "unknown"
"""What a launcher says of a data set or a model that its job does not name: the request's own name stays."""


class TrainingTableError(RuntimeError):
    """The table could not be read; the text says what to do."""


@dataclass(frozen=True)
class TrainingQuery:
    """Which runs. job, dataset, model: '' for every one. days: so far back, where none of the three is named."""

    job: str = ""
    dataset: str = ""
    model: str = ""
    days: int = 30


def find(table: str, query: TrainingQuery, today: date, clients: Clients | None = None) -> list[dict[str, Any]]:
    """Runs, newest first, each with what its newest step says. Raises TrainingTableError."""
    with explained(TrainingTableError, f"{table}: cannot read"):
        client = (clients or Clients()).get("dynamodb")
        steps = named = list(_steps(client, table, query, today))
        wanted = {(step["job"], step["run"]) for step in named}
        # A job's own steps are all of them; an index has only those that name the data set, the model or the day.
        if not query.job:
            steps = [step for job in sorted({job for job, _ in wanted}) for step in _job(client, table, job)]
    by_run: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for step in steps:
        by_run.setdefault((step["job"], step["run"]), []).append(step)
    found = [together(by_run[key]) for key in by_run if key in wanted]
    return sorted(
        (one for one in found if all(_same(one, query, key) for key in ("job", "dataset", "model"))),
        key=lambda one: (one["started_at"], one["run"]),
        reverse=True,
    )


def together(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One run of all its steps: the newest word on each thing. Pure."""
    ordered = sorted(steps, key=lambda step: str(step[items.SK]))
    found: dict[str, Any] = {"started_at": ordered[0]["at"]}
    for step in ordered:
        known = {key: value for key, value in step.items() if value not in ("", None, UNKNOWN)}
        found.update(known)
    found["finished_at"] = found["at"] if found["status"] in ("finished", "failed", "refused") else None
    return {key: value for key, value in found.items() if key not in (items.PK, items.SK, "day", "at")}


def _same(one: Mapping[str, Any], query: TrainingQuery, key: str) -> bool:
    wanted = getattr(query, key)
    return not wanted or one.get(key) == wanted


def _steps(client: Any, table: str, query: TrainingQuery, today: date) -> Iterator[dict[str, Any]]:
    if query.job:
        yield from _job(client, table, query.job)
    elif query.dataset:
        yield from _query(client, table, "by_dataset", "dataset", query.dataset)
    elif query.model:
        yield from _query(client, table, "by_model", "model", query.model)
    else:
        for back in range(query.days):
            yield from _query(client, table, "by_day", "day", (today - timedelta(days=back)).isoformat())


def _job(client: Any, table: str, job: str) -> Iterator[dict[str, Any]]:
    return _query(client, table, "", items.PK, f"JOB#{items.part(job)}")


def _query(client: Any, table: str, index: str, name: str, value: str) -> Iterator[dict[str, Any]]:
    request: dict[str, Any] = {
        "TableName": table,
        "KeyConditionExpression": "#key = :value",
        "ExpressionAttributeNames": {"#key": name},
        "ExpressionAttributeValues": {":value": {"S": value}},
    }
    if index:
        request["IndexName"] = index
    for page in client.get_paginator("query").paginate(**request):
        yield from map(items.unmarshal, page["Items"])
