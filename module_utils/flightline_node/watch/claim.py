"""A claim: who took a node out of service and for what, as the reason that a scheduler shows beside it.

    flightline: CHECK[ PART | : MESSAGE] by WHO at LEVEL for REASON[ run RUN][ MARK]

Every program of Flightline writes this form, on the node and on the control side, and none writes another. It is read
as a whole, to the last word: whatever else stands beside a node, with our name in it or not, is a person's. With a
mark of the rule (rule.py) it is one that has not taken its node out. Pure.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Optional

from ..model import BLOCKING, EVIDENCE, LEVELS, Verdict, as_status
from .rule import MARKS

BEGINNING = "flightline: "
MOST_CHARS = 120
"""`sinfo -R` and `scontrol show node` show that much on one line; Slurm itself takes more."""
WATCH, PROLOG, EPILOG, HEALTH, CHECK, AGENT = "watch", "prolog", "epilog", "health", "check", "agent"
REMEDIATE, PREFLIGHT, BLAME = "remediate", "preflight", "blame"
AROUND_JOBS = frozenset({PROLOG, EPILOG, HEALTH})
"""Slurm's hooks: they judge at level quick."""
OF_THE_NODE = frozenset({WATCH, CHECK, AGENT, *AROUND_JOBS})
WRITERS = (*sorted(OF_THE_NODE), REMEDIATE, PREFLIGHT, BLAME)
NO_VERDICT, NO_GO = "no_verdict", "no_go"
"""Reasons of the check `node`: it did not come to a verdict; a preflight found it no-go, for what its report says."""
WHOLE = frozenset({"node", "quarantine"})
"""Names for the verdict as a whole: a go answers them."""

_FORM = re.compile(
    r"flightline: (?P<check>(?:site\.)?[a-z][a-z0-9_]*)(?P<what>(?:: | ).*)? "
    rf"by (?P<by>{'|'.join(WRITERS)}) at (?P<level>{'|'.join(LEVELS)}) "
    r"for (?P<reason>[a-z0-9_]+(?:\.[a-z0-9_]+)*)(?: run (?P<run>[A-Za-z0-9_.:+-]+))?"
    rf"(?: (?P<mark>{'|'.join(MARKS)}))?"
)
_COUNT = re.compile(r" \(\+[0-9]+\)$")
_NOT_A_NAME = re.compile(r"[^a-z0-9_.]+")
_NOT_A_RUN = re.compile(r"[^A-Za-z0-9_.:+-]+")
_QUOTES = frozenset("'\"\\`$")
"""Not for a scheduler's hooks and a person's shell."""


class Claim(NamedTuple):
    """What a reason says. what: the part or message between check and writer, as written. run: '' where it has none."""

    check: str
    what: str
    by: str
    level: str
    reason: str
    run: str = ""
    mark: str = ""

    @property
    def text(self) -> str:
        """The reason as it is written: on one line, of which the message is cut, but for the count at its end."""
        run = f" run {_NOT_A_RUN.sub('_', self.run)}" if self.run else ""
        why = ".".join(part for part in _NOT_A_NAME.sub("_", self.reason.lower()).split(".") if part) or "unnamed"
        tail = f" by {self.by} at {self.level} for {why}{run}{self.mark and ' '}{self.mark}"
        said = self.what if self.what.startswith(":") or not self.what else f" {self.what}"
        shown = "".join(ch if ch.isprintable() and ch not in _QUOTES else " " for ch in said)
        head = " ".join(f"{BEGINNING}{self.check}{shown}".split())
        count = _COUNT.search(head)
        tail = count.group() + tail if count else tail
        head = head[: count.start()] if count else head
        return head[: max(MOST_CHARS - len(tail), len(BEGINNING) + len(self.check))].rstrip(" :") + tail


def read(text: str) -> Optional[Claim]:
    """The claim that a reason is; None for a person's words and for another program's."""
    found = _FORM.fullmatch(text)
    return Claim(**{name: (value or "").strip() for name, value in found.groupdict().items()}) if found else None


def of_finding(finding: Mapping[str, Any], what: str, by: str, level: str, run: str = "") -> Claim:
    """The claim that rests on a finding."""
    return Claim(str(finding.get("check")), what, by, level, str(finding.get("reason") or ""), run)


def why_kept(claim: Claim, record: Mapping[str, Any]) -> str:
    """Why a record of this node does not end a claim; '' where it does.

    The level that took the node out, or a deeper one, has to say go, and to have measured what was found. What a
    remediator, a preflight or blame found is theirs to end: they may have looked deeper than the node does by itself.
    """
    if claim.by not in OF_THE_NODE:
        return f"{claim.by} took it out, and only that returns it"
    level = str(record.get("level"))
    if level not in LEVELS or LEVELS.index(level) < LEVELS.index(claim.level):
        return f"level {claim.level} took it out, and this is level {level}"
    if record.get("verdict") != str(Verdict.GO):
        return "it is no-go"
    good = {str(one.get("check")) for one in record["findings"] if as_status(one.get("status")) in EVIDENCE - BLOCKING}
    return "" if claim.check in WHOLE or claim.check in good else f"{claim.check} was not measured"
