"""NCCL's Inspector: how long each rank's kernel ran in each collective, from which follows who comes late.

A kernel of a collective runs from its rank's arrival to the end that all share: the rank that comes last waits least.
Source: plugins/profiler/inspector of NCCL 2.30, its README and inspector_json.cc (format v4.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

NAME, KEY = re.compile(r".+-pid\d+\.log"), b'"coll_perf"'
"""HOST-pidPID.log; a log of another program may have such a name too."""
MAX_BYTES = 64 << 20
"""Of the end of a dump, which grows by 200 to 500 bytes a collective."""


@dataclass
class Lateness:
    """Of the communicator of most ranks. late: by rank and collective, seconds after the first. hosts: of ranks.

    lengths: of each collective, the seconds between two of its kind.
    """

    late: dict[int, dict[int, float]] = field(default_factory=dict)
    lengths: dict[int, float] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)


def read(paths: Sequence[Path]) -> Lateness:
    """From Inspector's dumps among these files."""
    rows = [row for path in paths if NAME.fullmatch(path.name) for row in _rows(path)]
    groups: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["ranks"], row["id"], row["coll"]), []).append(row)
    if not groups:
        return Lateness()
    return _lateness(max(groups.items(), key=lambda item: (item[0][0], len(item[1])))[1])


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_BYTES))
        raw = file.read()
    found = []
    for line in raw.decode("utf-8", "replace").splitlines() if KEY in raw[:4096] else ():
        try:
            one = json.loads(line)
            head, about, coll = one["header"], one["metadata"], one["coll_perf"]
            row = {"id": str(head["id"]), "rank": int(head["rank"]), "ranks": int(head["n_ranks"])}
            row.update(coll=str(coll["coll"]), number=int(coll["coll_sn"]), host=str(about["hostname"]))
            micros = {"seconds": coll["coll_exec_time_us"], "at": about["dump_timestamp_us"]}
            found.append({**row, **{name: int(value) / 1e6 for name, value in micros.items()}})
        except (ValueError, KeyError, TypeError):
            continue  # the first line may be cut, the last half written
    return found


def _lateness(rows: Sequence[dict[str, Any]]) -> Lateness:
    found = Lateness()
    by_number: dict[int, dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_number.setdefault(row["number"], {})[row["rank"]] = row
        found.hosts[row["rank"]] = row["host"]
    whole = {number: of for number, of in sorted(by_number.items()) if len(of) == rows[0]["ranks"]}
    moments = [median(row["at"] for row in of.values()) for of in whole.values()]
    # One length for all: a dump has the moment of its writing, of several collectives perhaps.
    length = (moments[-1] - moments[0]) / (len(moments) - 1) if len(moments) > 1 else 0.0
    for number, of in whole.items():
        found.lengths[number] = length
        for rank, row in of.items():
            found.late.setdefault(rank, {})[number] = max(one["seconds"] for one in of.values()) - row["seconds"]
    return found
