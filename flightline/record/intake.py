"""The one gate: a node's answer becomes a record here, or the reason why it is none. Pure.

First intake (`admit`): the shape, who answered and to which call, every check that was asked for, none other; the
verdict follows from the findings, the node's own word decides nothing. What was admitted carries a stamp and is not
looked at again. What a store holds without the stamp (an older version's, a damaged one) passes the shape alone
(`stored`): which checks it had to have is not known any more, and was asked when it came in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from flightline_node import names
from flightline_node.bounds import SHOWN_CHARS
from flightline_node.judge import must
from flightline_node.judge.waivers import Waiver, apply, for_fleet
from flightline_node.model import RECORD_SCHEMA, Finding, Remedy, Status, Verdict, as_status

from . import reasons, witness
from .schema import RECORD, STORED
from .shape import MalformedError, Object, seen

Record = dict[str, Any]

STAMP, STAMPED = "admitted", "2"
"""Raised when what RECORD takes becomes narrower: stored records then pass again."""
NODE = "node"
CANNOT = "the node could not be judged: "
NOT_LET_THROUGH = "the module returned no record that has passed the gate"
SHORT = 3
"""Checks that are named when several are missing."""


class AnswerRefusedError(ValueError):
    """An answer is no record of what was asked; the text says why and how the answer begins."""


@dataclass(frozen=True)
class Asked:
    """What a node was asked. checks: those that its record must have; skipped: those it may have. Empty text: any.

    table: what must be judged. waivers: the site's; a node sets nothing aside itself. begun: when it was asked, in
    seconds since the epoch; 0 where that is not known.
    """

    host: str = ""
    instance_id: str = ""
    instance_type: str = ""
    level: str = ""
    call_id: str = ""
    checks: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    table: must.Table = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    begun: float = 0.0


def let_through(record: Any) -> Record | None:
    """The record in a module's result, None where it has not been admitted: only the action plugin lets one through."""
    return record if isinstance(record, dict) and STAMP in record else None


def admit(answer: Any, asked: Asked) -> Record:
    """The record in an answer. Raises RefusedError."""
    try:
        record = _shaped(answer, RECORD)
        _is_ours(record, asked)
        _covers(record, asked)
    except MalformedError as error:
        raise AnswerRefusedError(f"its answer was refused: {error}; it began: {first(answer)}") from None
    return stamped(_weighed(record, asked))


def _weighed(record: Record, asked: Asked) -> Record:
    """What the record proves: its findings by the table, the site's waivers, and what only the control side sees."""
    findings = [{key: value for key, value in one.items() if key != "waiver"} for one in record["findings"]]
    for place, why in must.unproven([_answer_of(one) for one in findings], asked.table).items():
        findings[place] = must.not_taken(Finding.from_record(findings[place]), why).to_record()
    doubts = list(witness.doubts(record, asked.begun))
    findings = [*doubts, *findings]
    if asked.waivers:
        known_as = [name for name in (record["host"], record["instance_id"]) if name]
        today = datetime.now(timezone.utc).date()
        said = [Finding.from_record(one) for one in findings]
        findings = [one.to_record() for one in apply(said, asked.waivers, known_as, today)]
    kept = {key: value for key, value in record.items() if key != "fleet_waivers"}
    if any(one["check"] == witness.CLOCK for one in doubts):
        # As the newest of its node a moment to come would hide every later one; the finding has the node's own word.
        kept["started_at"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    handed_on = for_fleet(asked.waivers)
    return {**kept, "findings": findings, **({"fleet_waivers": handed_on} if handed_on else {})}


def shaped(answer: Any) -> Record:
    """The record in an answer whose list of checks is its sender's own. Raises RefusedError."""
    try:
        return _shaped(answer, RECORD)
    except MalformedError as error:
        raise AnswerRefusedError(f"its record was refused: {error}; it began: {first(answer)}") from None


def stored(found: Any, host: str) -> Record:
    """A store's record; one that cannot be used is an UNKNOWN row that says why. Never raises."""
    if isinstance(found, dict) and found.get(STAMP) == STAMPED and found.get("host") == host:
        return names.record(found)
    try:
        record = _shaped({key: value for key, value in found.items() if key != STAMP}, STORED)
        if record["host"] != host:
            raise MalformedError("host", seen(record["host"]), f"{host}, under whose name it is stored")
    except (MalformedError, AttributeError) as error:
        return unusable(host, f"{CANNOT}its stored record cannot be used: {error}; it begins: {first(found)}")
    return record


def unusable(host: str, message: str) -> Record:
    """The row of a host whose answer says nothing."""
    words = {"check": NODE, "status": str(Status.UNKNOWN), "message": message, "reason": reasons.NOT_JUDGED.id,
             "remedy": str(Remedy.INVESTIGATE)}  # fmt: skip
    return stamped({"schema": RECORD_SCHEMA, "host": host, "seconds": 0.0, "findings": [words]})


def stamped(record: Record) -> Record:
    """A record of the control side's own, or one that has passed."""
    return {**record, "verdict": str(_verdict(record)), STAMP: STAMPED}


def is_go(record: Mapping[str, Any]) -> bool:
    """What the findings of an admitted record come to."""
    return _verdict(record) is Verdict.GO


def _verdict(record: Mapping[str, Any]) -> Verdict:
    return must.verdict_of(map(_answer_of, record["findings"]))


def _answer_of(finding: Mapping[str, Any]) -> must.Answer:
    return must.Answer(finding["check"], as_status(finding["status"]), finding.get("reason", ""))


def first(answer: Any) -> str:
    """The beginning of an answer, escaped."""
    if not isinstance(answer, str):
        try:
            answer = "".join(_pieces(answer))
        except (TypeError, ValueError, RecursionError):
            return seen(answer)
    return ascii(answer[:SHOWN_CHARS])


def _pieces(answer: Any) -> Iterable[str]:
    """JSON, no further than it is shown."""
    length = 0
    for piece in json.JSONEncoder(default=str).iterencode(answer):
        yield piece[:SHOWN_CHARS]
        length += len(piece)
        if length > SHOWN_CHARS:
            return


def _shaped(answer: Any, kind: Object) -> Record:
    record: Record = names.record(kind.take(answer, ""))
    twice = Counter(map(_key, record["findings"])).most_common(1)
    if twice and twice[0][1] > 1:
        raise MalformedError("findings", f"the same finding of {twice[0][0][0]} {twice[0][1]} times", "each once")
    return stamped(record)


def _key(finding: Mapping[str, Any]) -> tuple[str, str, str]:
    """A check may say several things of one device, each once."""
    return finding["check"], repr(sorted(finding.get("device", {}).items())), finding["message"]


def _is_ours(record: Mapping[str, Any], asked: Asked) -> None:
    for name in ("host", "instance_id", "instance_type", "level", "call_id"):
        wanted = getattr(asked, name)
        if wanted and record.get(name, "") != wanted:
            raise MalformedError(name, seen(record.get(name)), f"{seen(wanted)}, as asked")


def _covers(record: Mapping[str, Any], asked: Asked) -> None:
    found = {finding["check"] for finding in record["findings"]}
    missing = sorted(asked.checks - found)
    if missing:
        more = f" and {len(missing) - SHORT} more" if len(missing) > SHORT else ""
        raise MalformedError(
            "findings", f"none of {', '.join(missing[:SHORT])}{more}", "one of each check that was asked"
        )
    # A node's own directory may have more checks of the site's: they make it worse, and stand for none that was asked.
    strange = sorted(one for one in found - asked.checks - asked.skipped if not names.is_site(one))
    if strange:
        raise MalformedError("findings", f"one of {', '.join(strange[:SHORT])}", "only checks that were asked")
    for finding in record["findings"]:
        where = f"findings of {finding['check']}"
        if finding["status"] == str(Status.UNREACHABLE):
            raise MalformedError(where, "UNREACHABLE", "what only the control side can see")
        if finding.get("unit") and type(finding.get("measured")) is bool:
            raise MalformedError(where, f"{seen(finding['measured'])} {finding['unit']}", "a number with the unit")
