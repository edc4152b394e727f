"""The words every part shares: status, remedy, level, finding, check, threshold.

The lattice is docs/architecture.md's, the remedies are rows of know/remedies.py; scripts depend on the spelling, so a
rename here is a breaking change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .know.remedies import Remedy as Remedy
from .word import Word

if TYPE_CHECKING:
    from .judge.context import Context
    from .know.expected import Expected

Facts = Dict[str, Any]
"""What a parser returns. N/A is None, a value not printed is absent, an error keeps its text."""

Device = Dict[str, Any]
"""Any of index, uuid, serial, pci, name, port, mount: what identifies the part at fault."""


class ParseError(ValueError):
    """The output of a tool is not what its format allows: the check becomes UNKNOWN."""


class SettingsError(ValueError):
    """What the user gave (threshold, check id, waiver, instance type) is unusable; mistakes: one sentence each."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


class Status(Word):
    """The answers a check can give; PASS needs evidence, SKIP needs a reason."""

    PASS = "PASS"  # noqa: S105  # a status, not a password
    INFO = "INFO"
    WARN = "WARN"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    UNREACHABLE = "UNREACHABLE"
    SKIP = "SKIP"


class Verdict(Word):
    """The answer for a node or a fleet."""

    GO = "go"
    NO_GO = "no-go"


RANK: Mapping[Status, int] = {
    Status.SKIP: 0,
    Status.PASS: 1,
    Status.INFO: 2,
    Status.WARN: 3,
    Status.UNKNOWN: 4,
    Status.UNREACHABLE: 5,
    Status.FAIL: 6,
}
BLOCKING = frozenset({Status.FAIL, Status.UNKNOWN, Status.UNREACHABLE})
EVIDENCE = frozenset({Status.PASS, Status.INFO, Status.WARN, Status.FAIL})

RECORD_SCHEMA = "flightline-node/1"

LEVELS: Tuple[str, ...] = ("quick", "standard", "deep")

MAX_EVIDENCE_LINES = 8
MAX_EVIDENCE_CHARS = 300


@dataclass(frozen=True)
class Finding:
    """One answer of one check about one device (or the whole node when device is empty).

    reason: the id of its Reason, of a SKIP that of its SkipReason; a PASS has none. waiver: which set it aside, or no
    longer does.
    """

    check: str
    status: Status
    message: str
    remedy: Remedy = Remedy.NONE
    device: Device = field(default_factory=dict)
    measured: Any = None
    expected: Any = None
    unit: str = ""
    evidence: Tuple[str, ...] = ()
    reason: str = ""
    waiver: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> Dict[str, Any]:
        """The JSON shape of the run store, the report and `judge --json`; few findings have a waiver."""
        return {
            "check": self.check,
            "status": str(self.status),
            "device": dict(self.device),
            "measured": self.measured,
            "expected": self.expected,
            "unit": self.unit,
            "message": self.message,
            "remedy": str(self.remedy),
            "evidence": list(self.evidence),
            "reason": self.reason,
            **({"waiver": dict(self.waiver)} if self.waiver else {}),
        }

    @classmethod
    def from_record(cls, said: Mapping[str, Any]) -> Finding:
        """The finding in a record's words."""
        words = {
            key: said[key] for key in ("device", "measured", "expected", "unit", "reason", "waiver") if key in said
        }
        remedy, evidence = Remedy(said.get("remedy", Remedy.NONE)), tuple(said.get("evidence", ()))
        return cls(said["check"], as_status(said["status"]), said["message"], remedy, evidence=evidence, **words)

    def to_record(self) -> Dict[str, Any]:
        """The short shape of a node's record: without the keys that say nothing, as UNSAID names them.

        A PASS says little, and most findings are one: this halves what each node sends and each store keeps.
        """
        return {key: value for key, value in self.to_dict().items() if key not in UNSAID or UNSAID[key] != value}


UNSAID: Mapping[str, Any] = {
    "device": {},
    "measured": None,
    "expected": None,
    "unit": "",
    "remedy": str(Remedy.NONE),
    "evidence": [],
    "reason": "",
}
"""What a finding's key is when its record leaves it out."""


@dataclass(frozen=True)
class Threshold:
    """A number a site may change. `source` says where the default comes from. aliases: its earlier names."""

    name: str
    default: float
    unit: str
    what: str
    source: str
    minimum: float = 0.0
    maximum: float = float("inf")
    aliases: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Reason:
    """Why a finding is no PASS, as programs know it: its message is for people, and may say it in any words.

    id: unique among a check's; lower case. says: what it means, for the docs. remedy: what it asks for, where the
    finding does not know better. device: what part such a finding names ("GPU", "EFA device"); "" for the whole node.
    aliases: its earlier ids (docs/stability.md). counts: it says that something is missing in a list, which a list that
    somebody cut does not show.
    """

    id: str
    says: str
    remedy: Remedy = Remedy.INVESTIGATE
    device: str = ""
    aliases: Tuple[str, ...] = ()
    counts: bool = False

    def of(self, part: object) -> Reason:
        """The reason of one of a family: `xid.79`, `unreadable.kernel`. Declared is the family."""
        return replace(self, id=f"{self.id}.{_NOT_A_NAME.sub('_', str(part).lower())}")


_NOT_A_NAME = re.compile(r"[^a-z0-9_]+")


@dataclass(frozen=True)
class Site:
    """What the control side knows of a node before it asks; nothing of it comes from the node."""

    expected: Expected
    options: Mapping[str, Any] = field(default_factory=dict)
    level: str = "quick"


@dataclass(frozen=True)
class SkipReason:
    """A legitimate reason to skip a check, of the closed list in judge/skips.py.

    when: what the control side must see for a preflight to take the reason. worse: checks of the same node of which one
    must have found something (WARN or more) in its stead. measured: checks of which one must have been measured too.
    of_type: the check is not for such a node at all.
    """

    id: str
    says: str
    when: Callable[[Site], bool]
    worse: Tuple[str, ...] = ()
    measured: Tuple[str, ...] = ()
    of_type: bool = False

    def because(self, text: str = "") -> Skip:
        """The reason with what is said to people in this case."""
        return Skip(self, text or self.says)


class Skip(NamedTuple):
    """Why a check is skipped on a node: the reason and its text."""

    reason: SkipReason
    text: str


class Repeated(NamedTuple):
    """A class of events: its status alone, and the check's threshold from which on its number is FAIL; "" for none.

    per: what is counted by itself (device, server, node). why: why number says nothing, where there is no threshold.
    refused: the number from which on a preflight refuses it; a running node stays in service; 0 for none.
    """

    what: str
    alone: Status
    threshold: str = ""
    per: str = "device"
    why: str = ""
    refused: int = 0


Evaluate = Callable[["Context"], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """One check: what it looks at, why it matters, and the pure function that judges.

    needs: parsers whose facts it cannot do without. needs_any: parsers of which one must be
    readable. wants: parsers it uses when present.
    expects: names of Expected fields that must be known, else the check is SKIP.
    applies: returns why the check is skipped before anything is looked at, or None.
    skips: every reason for which it may be skipped, but for a missing expectation; a SKIP for another is UNKNOWN.
    informs: an INFO alone is a measurement of this check.
    repeated: what the repetition of its classes comes to, for the docs (judge/repetition.py judges by the same).
    remedy: what to do, for the docs. do: the same in a report, where a finding's remedy leaves it open; None: `remedy`
    says it, '': the remedy's own advice does.
    level: the lowest level that runs it.
    order: its place among the checks, which findings and reports follow; any number between two others.
    out_of_service: would one take a paid node out of service for it? Yes or no, and why.
    first: the first command for a person to run, where the probe's own is not the best.
    source: where the judgement (not the numbers) comes from.
    aliases: its earlier ids, which work as docs/stability.md says.
    """

    id: str
    order: int
    title: str
    what: str
    why: str
    remedy: str
    out_of_service: str
    source: str
    evaluate: Evaluate
    needs: Tuple[str, ...] = ()
    needs_any: Tuple[str, ...] = ()
    wants: Tuple[str, ...] = ()
    expects: Tuple[str, ...] = ()
    tags: Tuple[str, ...] = ()
    level: str = "quick"
    first: str = ""
    thresholds: Tuple[Threshold, ...] = ()
    applies: Optional[Callable[[Context], Optional[Skip]]] = None
    skips: Tuple[SkipReason, ...] = ()
    informs: bool = False
    repeated: Tuple[Repeated, ...] = ()
    do: Optional[str] = None
    aliases: Tuple[str, ...] = ()


STATUSES: Mapping[str, Status] = {str(status): status for status in Status}
"""A status by its word; as_status asks it, and what looks up half a million of them asks it directly."""


def as_status(word: object) -> Status:
    """The status of a word; one that no version or only a newer one knows is UNKNOWN: only evidence passes."""
    return word if isinstance(word, Status) else STATUSES.get(str(word), Status.UNKNOWN)


def as_remedy(word: object) -> Remedy:
    """The remedy of a word; INVESTIGATE for one that no version knows."""
    return Remedy.__members__.get(str(word), Remedy.INVESTIGATE)


def device_label(device: Mapping[str, Any]) -> str:
    """'GPU 3', 'rdmap79s0 port 1', '/fsx': the shortest name that tells the part; '' for the whole node."""
    port = device.get("port")
    if device.get("index") is not None:
        base = f"GPU {device['index']}"
    else:
        keys = ("name", "mount", "pci", "serial", "uuid")
        base = next((str(device[key]) for key in keys if device.get(key) not in (None, "")), "")
    return base if port in (None, "") else f"{base} port {port}".strip()


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of the statuses; SKIP when there is none."""
    return max(statuses, key=lambda status: RANK[status], default=Status.SKIP)


def clip_evidence(lines: Iterable[str]) -> Tuple[str, ...]:
    """Evidence is short by contract: a few lines, each cut, control characters made visible."""
    kept: List[str] = []
    for line in lines:
        if len(kept) == MAX_EVIDENCE_LINES:
            kept.append("... more lines in the bundle")
            break
        clean = "".join(
            ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in line.rstrip("\r\n").replace("\t", " ")
        )
        kept.append(clean if len(clean) <= MAX_EVIDENCE_CHARS else clean[:MAX_EVIDENCE_CHARS] + " ...")
    return tuple(kept)
