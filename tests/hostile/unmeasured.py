"""Answers of healthy nodes in which something was not measured: checks turned, alone and in pairs, on every kind of node.

The nodes are those of the demo fleet: invented outputs, judged by the real checks. What only their processes could answer
(an EFA loopback) is put in by hand.
"""

import atexit
import copy
import itertools
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from flightline.record import intake
from flightline.record.answers import asked_of
from flightline_node import node
from flightline_node.inputs import defaults
from flightline_node.judge import judgement, skips
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Check, Finding, Status
from flightline_node.read import bundle
from flightline_node.read.facts import FactBook
from flightline_node.settings import build
from tests.corpus.material import demo
from tests.harness import NOW
from tools.must import KINDS, REASONS

from .generator import CALL, HOST, START
from .oracle import proves_health

PUT_IN = {"efa_loopback": "put in by hand", "imex": "put in by hand"}


@dataclass(frozen=True)
class Turned:
    """One answer. kind, level: of the node."""

    name: str
    kind: str
    level: str
    record: dict[str, Any]


@lru_cache(maxsize=None)
def asked(kind: str, level: str) -> intake.Asked:
    """What the control side asks such a node."""
    given = {"instance_type": kind, "level": level, "host": HOST, "instance_id": "", "call_id": CALL}
    return asked_of({**defaults(), **given}, datetime.fromisoformat(START).timestamp())


@lru_cache(maxsize=None)
def healthy(kind: str, level: str) -> dict[str, Any]:
    """A healthy node's record."""
    found = judgement.judge(_bundle(kind), resolve(kind), build(level=level), NOW, required=True)
    record = node.record(_bundle(kind), found, level, START, 1.5)
    identity = {"host": HOST, "instance_id": "", "instance_type": kind, "call_id": CALL}
    return {**record, **identity, "findings": [_put_in(one) for one in record["findings"]]}


@lru_cache(maxsize=None)
def _bundle(kind: str) -> bundle.Bundle:
    """What a simulated node of the kind prints."""
    place = Path(tempfile.mkdtemp(prefix="unmeasured-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for file, content in demo("g6.xlarge" if kind == "none" else kind):
        (place / file).write_bytes(content)
    return bundle.load(place)


def _put_in(finding: Mapping[str, Any]) -> dict[str, Any]:
    if finding["status"] == "UNKNOWN" and finding["check"] in PUT_IN:
        return {"check": finding["check"], "status": "PASS", "message": PUT_IN[finding["check"]]}
    # No probe of a machine without a type asks what only Neuron devices answer.
    if finding["status"] == "UNKNOWN" and finding["check"].startswith(("neuron", "nccom")):
        return _skipped(finding["check"], skips.GPU_MACHINE.id)
    if finding["status"] == "UNKNOWN":
        return {"check": finding["check"], "status": "PASS", "message": "put in by hand"}
    return dict(finding)


def _skipped(check: str, reason: str) -> dict[str, Any]:
    return {"check": check, "status": "SKIP", "message": "skipped", **({"reason": reason} if reason else {})}


def _with(record: Mapping[str, Any], check: str, *findings: Mapping[str, Any]) -> dict[str, Any]:
    """The record with other findings of a check."""
    return {**record, "findings": [*(one for one in record["findings"] if one["check"] != check), *findings]}


def one_check(kind: str, level: str, reasons: Iterable[str] = sorted(REASONS)) -> Iterator[Turned]:
    """Each check alone: skipped for each reason of the list, for none and for one that is made up; INFO; absent."""
    record = healthy(kind, level)
    for check in sorted(asked(kind, level).checks):
        for reason in ("", "made_up", *reasons):
            yield Turned(
                f"{check} skipped: {reason or 'no reason'}", kind, level, _with(record, check, _skipped(check, reason))
            )
        info = {"check": check, "status": "INFO", "message": "looked at"}
        yield Turned(f"{check} INFO", kind, level, _with(record, check, info))
        yield Turned(f"{check} absent", kind, level, _with(record, check))


def every(kind: str, level: str) -> Iterator[Turned]:
    """All checks but one alike; all of a tag; only INFO."""
    record = healthy(kind, level)
    ids = sorted(asked(kind, level).checks)
    for kept, reason in itertools.product(ids[:3], ("", "waived", "not_asked", "driver_silent", "no_expectation")):
        changed = [_skipped(one, reason) for one in ids if one != kept]
        mine = [one for one in record["findings"] if one["check"] == kept]
        yield Turned(f"all but {kept} skipped: {reason}", kind, level, {**record, "findings": [*mine, *changed]})
    for tag in sorted({tag for check in CHECKS.values() for tag in check.tags}):
        tagged = [one for one in ids if tag in CHECKS[one].tags]
        changed = [one for one in record["findings"] if one["check"] not in tagged]
        made = {**record, "findings": [*changed, *(_skipped(one, "driver_silent") for one in tagged)]}
        yield Turned(f"all of {tag} skipped", kind, level, made)
    info = [{"check": one, "status": "INFO", "message": "looked at"} for one in ids]
    yield Turned("INFO everywhere", kind, level, {**record, "findings": info})


def random_pairs(rng: random.Random) -> Iterator[Turned]:
    """Two checks turned at random, or the reasons of two skipped ones exchanged."""
    while True:
        kind, level = rng.choice(KINDS), rng.choice(LEVELS)
        record, ids = healthy(kind, level), sorted(asked(kind, level).checks)
        for check in rng.sample(ids, 2):
            status = rng.choice(("SKIP", "INFO", "PASS", "WARN"))
            made = {"check": check, "status": status, "message": "turned", "reason": rng.choice(sorted(REASONS))}
            record = _with(record, check, made)
        if rng.random() < 0.5:
            record = _exchanged(healthy(kind, level), rng)
        yield Turned("a pair", kind, level, record)


def _exchanged(record: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    changed = copy.deepcopy(dict(record))
    given = [one for one in changed["findings"] if one.get("reason")]
    if len(given) > 1:
        first, second = rng.sample(given, 2)
        first["reason"], second["reason"] = second["reason"], first["reason"]
    return changed


def defects(kind: str, level: str) -> Iterator[Turned]:
    """A node whose check raises, says nothing, or says SKIP "not installed" where it must judge."""
    settings, book = build(level=level), FactBook(_bundle(kind))
    for check in [one for one in CHECKS.values() if one.id in asked(kind, level).checks]:
        for name, broken in _broken(check):
            said = judgement.answers([broken], book, resolve(kind), settings, NOW, {}, required=True)
            found = judgement.settled(said, {check.id: asked(kind, level).table[check.id]})
            record = _with(healthy(kind, level), check.id, *(one.to_record() for one in found))
            yield Turned(f"{check.id} {name}", kind, level, record)


def _broken(check: Check) -> Iterator[tuple[str, Check]]:
    missing = Finding(check.id, Status.SKIP, "not installed")
    yield "raises", replace(check, evaluate=lambda context: [missing] * (1 // 0))
    yield "says nothing", replace(check, evaluate=lambda context: ())
    yield "skips", replace(check, evaluate=lambda context: (missing,))
    yield "informs", replace(check, evaluate=lambda context: (replace(missing, status=Status.INFO),))


def cases(many: int, seed: int) -> Iterator[Turned]:
    """Whole nodes first, then single checks of each kind and level in turn, then pairs at random."""
    pairs = [(kind, level) for kind in KINDS for level in LEVELS]
    whole = itertools.chain.from_iterable(every(*pair) for pair in pairs)
    single = itertools.chain.from_iterable(one_check(*pair) for pair in pairs)
    rng = random.Random(seed)
    singles = list(single)
    rng.shuffle(singles)
    yield from itertools.islice(itertools.chain(whole, singles, random_pairs(rng)), many)


def is_go(turned: Turned) -> bool:
    """What the control side makes of it."""
    try:
        return intake.is_go(intake.admit(copy.deepcopy(turned.record), asked(turned.kind, turned.level)))
    except intake.AnswerRefusedError:
        return False


def should_be_go(turned: Turned) -> bool:
    """What the operator says."""
    return proves_health(turned.record, asked(turned.kind, turned.level).table)


def wrong(many: int, seed: int) -> Iterator[str]:
    """Answers on which gate and operator differ."""
    for one in cases(many, seed):
        if is_go(one) is not should_be_go(one):
            yield f"{one.kind} {one.level}: {one.name}: go is {is_go(one)}"
