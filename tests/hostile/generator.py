"""Answers that are no good records: the declaration of the record, walked field by field, and mutations of good ones."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from flightline.record.schema import RECORD
from flightline.record.shape import Listed, Mapped, Object, OrNull, Text

HOST, TYPE, CALL = "n", "p5.48xlarge", "call-1"
CHECKS = ("memory", "xid", "gpu_count")
GPUS = 8
START = datetime.now(timezone.utc).isoformat(timespec="seconds")
"""When the nodes are asked."""
ESCAPE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
ABSENT = object()


@dataclass(frozen=True)
class Case:
    """One answer. text: as JSON, where a value cannot say it (a key twice)."""

    name: str
    answer: Any
    text: str = ""


def good(status: str = "PASS", host: str = HOST, call: str = CALL) -> dict[str, Any]:
    """A complete record that uses every field of the declaration; invented."""
    finding = {"status": "PASS", "device": {}, "measured": 8, "expected": 8, "unit": "GPUs", "remedy": "NONE"}
    findings = [{**finding, "check": check, "message": f"{check} seen", "evidence": ["a line"]} for check in CHECKS]
    findings[0] |= {"status": status, "device": {"index": 3, "uuid": "GPU-1", "serial": None}}
    return {
        "schema": "flightline-node/1", "flightline": "0.1.0", "call_id": call, "host": host, "instance_id": "i-0",
        "instance_type": TYPE, "level": "quick", "verdict": "go", "started_at": START,
        "seconds": 1.5, "library_cpu_s": 0.5, "findings": findings,
        "measures": {"ecc_uncorrected_aggregate": {"unit": "errors", "values": {"GPU 0": 0, "GPU 1": 0.5}}},
        "versions": {"driver": "580.95.05"},
        "gpus": [{"index": at, "uuid": f"GPU-{at}", "serial": f"S-{at}", "name": "x"} for at in range(GPUS)],
        "probes": [{"id": "df", "rc": 0, "seconds": 0.1, "timed_out": False, "note": ""}],
        "evidence": {"archive": "/var/log/a", "bytes": 9, "note": "none"},
        "fleet_waivers": [{"check": "uniform_driver", "scope": "*", "reason": "r", "owner": "o", "expiry": "2099-01-01"}],
    }  # fmt: skip


Path = tuple[Any, ...]


def places(kind: Any, value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field of a record that the declaration knows, with its kind."""
    inner = kind.kind if isinstance(kind, OrNull) else kind
    if path:
        yield path, inner
    if isinstance(inner, Object):
        for name, part in inner.fields.items():
            yield from places(part, value.get(name) if isinstance(value, dict) else None, (*path, name))
    elif isinstance(inner, Listed) and isinstance(value, list) and value:
        for place in {0, len(value) - 1}:
            yield from places(inner.kind, value[place], (*path, place))
    elif isinstance(inner, Mapped) and isinstance(value, dict):
        for name in value:
            yield from places(inner.kind, value[name], (*path, name))


def twists(kind: Any) -> Iterator[tuple[str, Any]]:
    """What a field may be instead."""
    yield "absent", ABSENT
    numbers = (5, 1.5, -(10**400), float("nan"), float("inf"))
    wrong = (None, True, *numbers, "x", "", [], {}, [[[[[[1]]]]]], {"a": {"b": 1}})
    yield from ((f"is {str(value)[:12]}", value) for value in wrong)
    yield "lists nonsense", ["x", None, 5]
    yield "escaped", ESCAPE
    yield "surrogate", "\ud800 lone"
    yield "long", "y" * 70_000
    if isinstance(kind, Text):
        yield "a little too long", "y" * (kind.most + 1)
        yield from (("a choice", choice) for choice in kind.choices)
    if isinstance(kind, Listed):
        yield "too many", [{}] * (kind.most + 1)
    if isinstance(kind, Mapped):
        yield "too many", {f"k{number}": 1 for number in range(kind.most + 1)}


def put(record: Any, path: Path, value: Any) -> Any:
    """A record with another value at a place."""
    changed = copy.deepcopy(record)
    part = changed
    for step in path[:-1]:
        if isinstance(part, dict) and part.get(step) is None:
            part[step] = {}
        part = part[step]
    if value is not ABSENT:
        part[path[-1]] = value
    elif isinstance(part, dict):
        part.pop(path[-1], None)
    else:
        del part[path[-1]]
    return changed


def by_field(status: str = "PASS") -> Iterator[Case]:
    """Every field, every twist; keys twice; more of the same; somebody else's record."""
    base = good(status)
    for path, kind in places(RECORD, base):
        name = ".".join(map(str, path))
        for twist, value in twists(kind):
            yield Case(f"{name} {twist}", put(base, path, value))
    for path, _ in places(RECORD, base):
        if isinstance(path[-1], str):
            yield Case(f"{'.'.join(map(str, path))} twice", None, twice(base, path))
    yield from _other_times(base)
    yield from _other_identities(base)
    yield Case("waived by the node", put(base, ("findings", 0), {**SKIPPED, "message": "waived by ops"}))
    for reason in ("waived", "no_nvidia_gpu", "driver_silent", "not_asked", "not_collected", "made_up"):
        yield Case(f"skipped: {reason}", put(base, ("findings", 1), {**SKIPPED, "check": CHECKS[1], "reason": reason}))
    for name in ("findings", "gpus", "probes", "fleet_waivers"):
        yield Case(f"{name} doubled", put(base, (name,), base[name] * 2))
    for name, value in (("host", "other"), ("call_id", "call-0"), ("level", "deep"), ("instance_type", "p4d.24xlarge")):
        yield Case(f"another's {name}", put(base, (name,), value))
    for count in range(len(CHECKS)):
        yield Case(f"only {count} checks", put(base, ("findings",), base["findings"][:count]))
    yield Case("a strange key", {**base, "zebra": 1})
    yield from (Case(f"no object: {str(value)[:20]}", value) for value in (None, 5, "go", [], [base], {}, True))
    yield Case("claims go", {"verdict": "go", "findings": [base["findings"][0]]})


SKIPPED = {"check": CHECKS[0], "status": "SKIP", "message": "not installed", "measured": None}


def _other_times(base: Any) -> Iterator[Case]:
    stamps = ("2016-01-01T00:00:00Z", "2036-01-01T00:00:00+00:00", "1970-01-01T00:00:00Z", "2026-13-41T00:00:00Z")
    yield from (Case(f"of {stamp}", put(base, ("started_at",), stamp)) for stamp in stamps)
    yield from (Case(f"{seconds:g} s long", put(base, ("seconds",), seconds)) for seconds in (86_400, 1e7))


def _other_identities(base: Any) -> Iterator[Case]:
    gpus = base["gpus"]
    yield Case("no GPU named", put(base, ("gpus",), []))
    yield Case("one GPU not named", put(base, ("gpus",), gpus[:-1]))
    yield Case("one GPU twice", put(base, ("gpus",), [*gpus[:-1], gpus[0]]))
    yield Case("GPUs without names", put(base, ("gpus",), [{"index": at} for at in range(GPUS)]))
    yield Case("a flag for an index", put(base, ("gpus", 0, "index"), True))
    yield Case("a flag for a number", put(base, ("findings", 2, "measured"), True))


def twice(record: Any, path: Path) -> str:
    """The record as JSON in which a key is given twice, the second time as it should be."""
    marked = put(record, path, "\x00mark")
    value = record
    for step in path:
        value = value.get(step) if isinstance(value, dict) else value and value[step]
    name = json.dumps(path[-1])
    return json.dumps(marked).replace(f'{name}: "\\u0000mark"', f'{name}: "FAIL", {name}: {json.dumps(value)}')


def mutated(rng: random.Random, status: str = "PASS") -> Case:
    """A good record with one to four random twists."""
    record, names = good(status), []
    for _ in range(rng.randint(1, 4)):
        path, kind = rng.choice(list(places(RECORD, record)))
        twist, value = rng.choice(list(twists(kind)))
        try:
            record = put(record, path, value)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # the place went with an earlier twist
        names.append(f"{'.'.join(map(str, path))} {twist}")
    return Case("; ".join(names), record)


def cut(rng: random.Random) -> Case:
    """A good record's JSON, cut off, spliced or with bytes of its own."""
    text = json.dumps(good())
    at, to = sorted(rng.sample(range(len(text)), 2))
    ways: list[Callable[[], str]] = [
        lambda: text[:at],
        lambda: text[:at] + text[to:],
        lambda: text[:at] + rng.choice('{}[]",:\\0x\x1b') + text[at:],
        lambda: text[:at] + text[at:to] + text[at:],
    ]
    return Case(f"cut at {at}", None, rng.choice(ways)())
