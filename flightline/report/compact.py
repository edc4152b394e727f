"""The fleet as the page's script reads it: a letter per cell, each distinct row of letters stored once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from flightline.fleet.result import NodeRow, Report
from flightline_node.model import RANK, Status, Verdict, as_status

from ..record.printable import clip
from .node_lines import natural
from .text import CODES, NOT_RUN, blocks, clean, device_label, device_of

MOST_NOTES = 6000
NOTE_CHARS = 140


def compact(report: Report, detailed: Collection[int]) -> dict[str, Any]:
    """JSON-ready columns over the nodes, in the order of the rows.

    detailed: row numbers that have a section of their own on the page. cells[n] is the index in patterns of node
    n's letters, one per check. notes: [node, check, message index] flattened, for as many cells as have room.
    """
    checks = columns(report)
    table, types, places, texts = _TextTable(), _TextTable(), _TextTable(), _TextTable()
    sections = set(detailed)
    return {
        "checks": [clean(check) for check in checks],
        "host": [clean(row.host) for row in report.rows],
        "id": [clean(row.instance_id) for row in report.rows],
        "type": [types.add(clean(row.instance_type)) for row in report.rows],
        "types": types.items,
        "place": [places.add(clean(row.place)) for row in report.rows],
        "places": places.items,
        "order": [number for number, _ in sorted(enumerate(report.rows), key=_by_place)],
        "placed": any(row.place for row in report.rows),
        "go": "".join("g" if row.verdict is Verdict.GO else "n" for row in report.rows),
        "worst": "".join(CODES[row.status] for row in report.rows),
        "seconds": [round(row.seconds, 1) for row in report.rows],
        "section": "".join("1" if number in sections else "0" for number in range(len(report.rows))),
        "cells": [table.add(pattern(row, checks)) for row in report.rows],
        "patterns": table.items,
        "notes": _notes(report.rows, checks, texts),
        "texts": texts.items,
    }


def _by_place(numbered: tuple[int, NodeRow]) -> tuple[object, ...]:
    """Where a node stands, then its name: neighbours share power, cooling and switches."""
    row = numbered[1]
    return natural(row.place), natural(row.host)


def columns(report: Report) -> list[str]:
    """List the report's checks, then any that only some node has a cell for."""
    known = dict.fromkeys(report.checks)
    for row in report.rows:
        for check in row.cells:
            known.setdefault(check)
    return list(known)


def pattern(row: NodeRow, checks: list[str]) -> str:
    """Write a node's letters, one per check."""
    return "".join([CODES[row.cells[check]] if check in row.cells else NOT_RUN for check in checks])


class _TextTable:
    """Texts numbered in the order in which they come, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def items(self) -> list[str]:
        return list(self._numbers)

    def add(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


QUIET = frozenset({"PASS", "INFO", "SKIP"})
"""Neither blocking nor a warning, without being looked up."""


def _notes(rows: list[NodeRow], checks: list[str], texts: _TextTable) -> list[int]:
    """Collect what a cell's tooltip says beyond its status, blocking findings before warnings."""
    numbers = {check: number for number, check in enumerate(checks)}
    notes: list[int] = []
    for wanted in (blocks, _is_warning):
        for node, row in enumerate(rows):
            said: dict[int, str] = {}
            # Most of a large fleet's findings are skips: what says nothing here is not sorted.
            loud = (item for item in row.findings if item.get("status") not in QUIET)
            telling = [item for item in loud if wanted(as_status(item.get("status")))]
            for finding in sorted(telling, key=lambda item: -RANK[as_status(item.get("status"))]):
                check = numbers.get(finding.get("check", ""))
                if check is not None:
                    device, message = device_label(device_of(finding)), clean(finding.get("message", ""))
                    named = message if not device or device in message else f"{device}: {message}"
                    said.setdefault(check, clip(named, NOTE_CHARS))
            for check, text in said.items():
                if len(notes) >= 3 * MOST_NOTES:
                    return notes
                notes += [node, check, texts.add(text)]
    return notes


def _is_warning(status: Status) -> bool:
    return status is Status.WARN
