"""Baselines in use: one file for each instance type, beside the run store. What cannot be read is refused by name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from flightline_node.model import Finding, Status

from ..fleet import baseline as criteria
from ..fleet.baseline import Baseline, BaselineError
from ..fleet.checks import BASELINE
from ..fleet.together import HOST
from ..record.reasons import BAD_BASELINE

_TYPE = re.compile(r"[a-z0-9][a-z0-9.\-]{0,63}")
MOST_BYTES = 4 << 20


def place(store: Path) -> Path:
    """The directory of a store's baselines."""
    return store.parent / "baselines"


def load(path: Path) -> Baseline:
    """A baseline file. Raises BaselineError, which names it."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BaselineError(f"saw more than {MOST_BYTES >> 20} MiB, wanted a baseline; do: name another file")
        return criteria.read(json.loads(path.read_text(encoding="utf-8")))
    except BaselineError as error:
        raise BaselineError(f"{path}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: saw {error}, wanted a baseline; do: flightline baseline save") from error


def write(path: Path, baseline: Baseline) -> None:
    """Write a baseline; a reader sees the old file or the new one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(baseline.to_dict(), indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def use(store: Path, baseline: Baseline) -> Path:
    """Take it into use for its instance type; returns where it is kept. Raises BaselineError."""
    if not _TYPE.fullmatch(baseline.instance_type):
        raise BaselineError(f"saw the instance type {baseline.instance_type!a}, wanted one of EC2's; do: save it again")
    path = place(store) / f"{baseline.instance_type}.json"
    write(path, baseline)
    return path


def in_use(store: Path) -> dict[str, Path]:
    """Instance type -> the file of its baseline."""
    return {path.stem: path for path in sorted(place(store).glob("*.json"))}


def of_type(store: Path, instance_type: str, now: datetime | None = None) -> Baseline | None:
    """The baseline that judges nodes of a type; None where none is in use. Raises BaselineError for one unfit."""
    path = in_use(store).get(instance_type)
    if path is None:
        return None
    found = load(path)
    why = criteria.unfit(found, instance_type, now or datetime.now(timezone.utc))
    if why:
        raise BaselineError(why)
    return found


def findings(store: Path, records: Iterable[Mapping[str, Any]], now: datetime | None = None) -> list[dict[str, Any]]:
    """What the baselines in use say of a run's nodes, as findings of a record beside theirs."""
    used = in_use(store)
    own = [record for record in records if str(record.get("instance_type")) in used and record.get("measures")]
    measured: dict[str, set[str]] = {}
    for record in own:
        measured.setdefault(str(record["instance_type"]), set()).update(record["measures"])
    found = []
    for record in own:
        name = str(record["instance_type"])
        try:
            baseline = of_type(store, name, now)
            said = criteria.judge(baseline, record["measures"], measured[name]) if baseline else []
        except BaselineError as error:
            words = BASELINE, Status.UNKNOWN, str(error), BAD_BASELINE.remedy
            said = [Finding(*words, reason=BAD_BASELINE.id)]
        found += [{**one.to_dict(), "device": {HOST: str(record["host"]), **one.device}} for one in said]
    return found
