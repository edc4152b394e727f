"""Checks of the site's own, without a fork: a program on the node, or a rule over facts that are read already.

Each is a Check like any other, under `site.NAME`: what breaks, hangs or prints nonsense is UNKNOWN, and what is
declared in the inventory must be measured (docs/site-checks.md). What a program says it says of its own id alone.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..bounds import MAX_PARTS
from ..model import LEVELS, Check, Evaluate, Finding, Reason, Remedy, SettingsError, Status
from ..names import SITE, is_site
from ..read import strictjson
from .checks import CHECKS
from .context import Context

DIRECTORY = "/etc/flightline/checks.d"
SAID = Reason("said", "a check of the site's own says so")
BAD_ANSWER = Reason("bad_answer", "a check of the site's own gave no answer that can be used", Remedy.FIX_CONFIG)
NO_FIELD = Reason("no_field", "the facts have no such field, or a value that does not compare", Remedy.FIX_CONFIG)
BROKEN_RULE = Reason("rule", "a value is not as a rule of the site's wants it")
FACTS = frozenset(name for check in CHECKS.values() for name in (*check.needs, *check.needs_any, *check.wants))
"""What is read already."""
MOST_SECONDS: Mapping[str, float] = {"quick": 8.0, "standard": 600.0, "deep": 1800.0}
"""A quick check has the time of a quick probe (ask/probes.py)."""
OF_STATUS = {0: Status.PASS, 1: Status.FAIL, 2: Status.FAIL, 3: Status.UNKNOWN}
"""NHC ends with 1 for a node that is not fit, Nagios with 1 for a warning: 1 is FAIL unless `warns` says otherwise.
Sources: mej/nhc README; Monitoring Plugins, Development Guidelines, Plugin Return Codes."""
SAYS = frozenset({"status", "message", "reason", "remedy", "measured", "expected", "unit", "device", "evidence"})
COMMON = frozenset({"level", "remedy", "what"})
OF_PROGRAM, OF_RULE = (
    COMMON | {"program", "seconds", "warns"},
    COMMON | {"facts", "field", "must", "value", "reason", "else"},
)
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda seen, wanted: seen in wanted, "matches": lambda seen, wanted: bool(re.fullmatch(wanted, seen)),
}  # fmt: skip
_WORDS = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
_PART = re.compile(r"(?<=\[)[^\]]+(?=\])|[^.\[\]]+")
_MISSING = object()


class SiteProgram(NamedTuple):
    """A program to be run. path: on the node."""

    name: str
    path: str
    level: str
    seconds: float

    @property
    def file(self) -> str:
        """Its answer in the bundle."""
        return f"site_{self.name}.json"


@dataclass(frozen=True)
class SiteCheck(Check):
    """A check that a site declared. program: None for a rule."""

    program: Optional[SiteProgram] = None


def declared(given: Any, named: Iterable[str] = ()) -> List[SiteCheck]:
    """The checks of an inventory's declarations; a name alone is a program of the directory. Raises SettingsError."""
    if not isinstance(given or {}, Mapping):
        raise SettingsError(f"site_checks: saw {type(given).__name__}, wanted a mapping of names to checks")
    whole = {**{name[len(SITE) :]: {} for name in named if is_site(name)}, **(given or {})}
    mistakes: List[str] = []
    found = []
    for name, one in sorted(whole.items()):
        try:
            found.append(check_of(str(name), one))
        except SettingsError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SettingsError(*mistakes)
    return found


def check_of(name: str, one: Any) -> SiteCheck:
    """A declaration as a check. Raises SettingsError."""
    where = f"site check {name!r}"
    if not is_site(SITE + name):
        raise SettingsError(f"{where}: saw this name, wanted small letters, digits and _, at most 48")
    if not isinstance(one, Mapping):
        raise SettingsError(f"{where}: saw {type(one).__name__}, wanted a mapping")
    rule = "facts" in one or "field" in one
    unknown = sorted({*map(str, one)} - (OF_RULE if rule else OF_PROGRAM))
    if unknown:
        wanted = ", ".join(sorted(OF_RULE if rule else OF_PROGRAM))
        raise SettingsError(f"{where}: saw {', '.join(unknown)}, wanted {wanted}")
    level = one.get("level", "quick")
    if level not in LEVELS:
        raise SettingsError(f"{where}: saw level {level!r}, wanted {', '.join(LEVELS)}")
    remedy = one.get("remedy", str(Remedy.INVESTIGATE))
    if remedy not in Remedy.__members__:
        raise SettingsError(f"{where}: saw remedy {remedy!r}, wanted {', '.join(Remedy.__members__)}")
    return (_rule if rule else _program)(where, name, one, level, Remedy(remedy))


def _program(where: str, name: str, one: Mapping[str, Any], level: str, remedy: Remedy) -> SiteCheck:
    path, seconds = one.get("program", f"{DIRECTORY}/{name}"), one.get("seconds", MOST_SECONDS["quick"])
    if not isinstance(path, str) or not path.startswith("/"):
        raise SettingsError(f"{where}: saw program {path!r}, wanted an absolute path on the node")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= MOST_SECONDS[level]:
        raise SettingsError(f"{where}: saw {seconds!r} seconds, wanted up to {MOST_SECONDS[level]:g} at level {level}")
    warns = one.get("warns", False)
    if not isinstance(warns, bool):
        raise SettingsError(f"{where}: saw warns {warns!r}, wanted true where the exit status 1 is a warning")
    program = SiteProgram(name, path, level, float(seconds))
    return _check(name, one, level, SITE + name, partial(_said, remedy, warns), program)


def _rule(where: str, name: str, one: Mapping[str, Any], level: str, remedy: Remedy) -> SiteCheck:
    facts, field, must = one.get("facts"), one.get("field"), one.get("must", "==")
    if facts not in FACTS:
        raise SettingsError(f"{where}: saw facts {facts!r}, wanted one of {', '.join(sorted(FACTS))}")
    if not isinstance(field, str) or not field or "value" not in one or must not in COMPARED:
        raise SettingsError(f"{where}: saw {sorted(one)}, wanted field, value, and must of {', '.join(COMPARED)}")
    other, reason = one.get("else", "FAIL"), one.get("reason", BROKEN_RULE.id)
    if other not in ("FAIL", "WARN") or not isinstance(reason, str) or not _WORDS.fullmatch(reason):
        raise SettingsError(f"{where}: saw else {other!r}, reason {reason!r}; wanted FAIL or WARN, and small letters")
    if must == "matches":
        try:
            re.compile(one["value"])
        except (re.error, TypeError) as error:
            raise SettingsError(f"{where}: saw a pattern that is none ({error}), wanted one") from None
    ruled = Ruled(facts, field, must, one["value"], Status(other), Reason(reason, BROKEN_RULE.says, remedy))
    return _check(name, one, level, facts, partial(_compared, ruled), None)


def _check(
    name: str, one: Mapping[str, Any], level: str, needs: str, judged: Evaluate, program: Optional[SiteProgram]
) -> SiteCheck:
    what = str(one.get("what") or f"The site's own check {name}.")
    return SiteCheck(
        id=SITE + name, order=10_000, title=name, what=what, why=what, remedy="Ask whoever wrote it.", level=level,
        out_of_service="As the site says.", source="the site", evaluate=judged, needs=(needs,), tags=("site",),
        program=program,
    )  # fmt: skip


class Ruled(NamedTuple):
    """A rule: every value of the field must compare so."""

    facts: str
    field: str
    must: str
    value: Any
    other: Status
    reason: Reason


def _compared(rule: Ruled, context: Context) -> Iterator[Finding]:
    seen = list(values(context.facts(rule.facts), _PART.findall(rule.field)))
    good = 0
    for label, value in seen:
        device = {"name": label} if label else {}
        wanted = f"{rule.field} {rule.must} {rule.value}"
        try:
            holds = _alike(value, rule) and COMPARED[rule.must](value, rule.value)
        except TypeError:
            yield context.unknown(NO_FIELD, f"{value!r} does not compare, wanted {wanted}"[:300], device=device)
            continue
        good += holds
        if not holds:
            words = {"measured": _plain(value), "expected": _plain(rule.value), "device": device}
            yield context.because(
                rule.other, rule.reason, f"{rule.field} is {value!r}, wanted {rule.must} {rule.value!r}"[:300], **words
            )
    if not seen:
        yield context.unknown(NO_FIELD, f"no {rule.field} in {rule.facts}")
    elif good == len(seen):
        yield context.ok(f"{rule.field} {rule.must} {rule.value!r} ({good} values)"[:300])


def _alike(value: Any, rule: Ruled) -> bool:
    """Raises TypeError where comparing says nothing: no value, a number and a text, a truth and a number."""
    if value is _MISSING or value is None:
        raise TypeError
    wanted = rule.value[0] if rule.must == "in" and isinstance(rule.value, list) and rule.value else rule.value
    number = isinstance(value, (int, float)), isinstance(wanted, (int, float))
    if number[0] != number[1] or isinstance(value, bool) != isinstance(wanted, bool):
        raise TypeError
    return True


def values(found: Any, path: Sequence[str], label: str = "") -> Iterator[Tuple[str, Any]]:
    """Each value that a path names, with the part it is of; `*` is every entry. What is not there is _MISSING."""
    if not path:
        yield label, found
    elif path[0] == "*":
        entries = found.items() if isinstance(found, Mapping) else enumerate(found) if isinstance(found, list) else ()
        for key, one in list(entries)[: MAX_PARTS * 4]:
            yield from values(one, path[1:], f"{label}.{key}" if label else str(key))
    elif isinstance(found, Mapping) and path[0] in found:
        yield from values(found[path[0]], path[1:], label)
    else:
        yield label, _MISSING


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool)) else str(value)[:200]


def _said(remedy: Remedy, warns: bool, context: Context) -> Iterator[Finding]:
    """A program's exit status, or its one JSON document; where both speak, neither may be better than the other."""
    told = context.facts(context.check.needs[0])
    if told.get("refused"):
        yield context.unknown(BAD_ANSWER, told["refused"])
        return
    status, text = told["status"], str(told["stdout"]).strip()
    by_status = Status.WARN if warns and status == 1 else OF_STATUS.get(status, Status.UNKNOWN)
    if text[:1] not in ("{", "["):
        said = (text or str(told["stderr"]).strip() or "no words").splitlines()[0].partition("|")[0].strip()[:300]
        reason = BAD_ANSWER if by_status is Status.UNKNOWN else SAID
        if by_status is Status.PASS:
            yield context.ok(said)
        else:
            yield context.because(by_status, reason, f"{said} (exit status {status})", remedy=remedy)
        return
    try:
        found = list(_documents(context, text, remedy))
    except (ValueError, TypeError, KeyError) as error:
        yield context.unknown(BAD_ANSWER, f"its JSON cannot be used: {error}"[:300])
        return
    yield from found
    if by_status is not Status.PASS and all(one.status in (Status.PASS, Status.INFO) for one in found):
        yield context.unknown(BAD_ANSWER, f"it says {found[0].status} and ends with {status}")


def _documents(context: Context, text: str, remedy: Remedy) -> Iterator[Finding]:
    given = strictjson.loads(text)
    for one in given if isinstance(given, list) else [given]:
        if not isinstance(one, dict) or {*one} - SAYS:
            raise ValueError(
                f"saw {sorted({*one} - SAYS) if isinstance(one, dict) else one!r}, wanted {', '.join(sorted(SAYS))}"
            )
        status, reason = one["status"], one.get("reason", SAID.id)
        if status not in ("PASS", "INFO", "WARN", "FAIL", "UNKNOWN"):
            raise ValueError(f"saw status {status!r}, wanted PASS, INFO, WARN, FAIL or UNKNOWN")
        if not isinstance(reason, str) or not _WORDS.fullmatch(reason) or not isinstance(one.get("message"), str):
            raise ValueError("wanted message as text, and reason in small letters")
        wanted = Remedy(one["remedy"]) if "remedy" in one else Remedy.NONE if status in ("PASS", "INFO") else remedy
        yield context.finding(
            Status(status), one["message"][:300], _scalar(one.get("measured")), _scalar(one.get("expected")),
            str(one.get("unit", ""))[:32], remedy=wanted, device=_device(one.get("device")),
            evidence=list(map(str, one.get("evidence", ())))[:8], reason="" if status == "PASS" else reason[:64],
        )  # fmt: skip
    if given == []:
        raise ValueError("saw an empty list, wanted a finding")


def _scalar(value: Any) -> Any:
    return None if value is None else _plain(value)


def _device(given: Any) -> Dict[str, Any]:
    """The part it is about, by the words that a report knows."""
    if given in (None, {}):
        return {}
    if isinstance(given, str):
        return {"name": given[:64]}
    known = {key: given[key] for key in ("index", "uuid", "serial", "pci", "name", "port", "mount") if key in given}
    return {key: value if isinstance(value, int) else str(value)[:64] for key, value in known.items()}
