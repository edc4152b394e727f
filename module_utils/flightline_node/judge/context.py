"""What a check sees: facts, expectations, thresholds, and the way to answer."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Optional

from ..know.expected import Expected
from ..model import Check, Device, Facts, Finding, Reason, Remedy, Skip, Status, clip_evidence

if TYPE_CHECKING:
    from ..read.facts import Parsed

MAX_NAME_CHARS = 64
_NOT_PLAIN = re.compile(r"[^a-z0-9_]+")

Measures = Dict[str, Dict[str, Any]]
"""name -> {"unit": str, "values": {device key: number}}: the numbers a fleet compares."""


class Context:
    """One check's view of one node. Holds no state but the measures it was given to fill."""

    def __init__(
        self,
        check: Check,
        lookup: Callable[[str], Optional[Facts]],
        expected: Expected,
        thresholds: Mapping[str, float],
        level: str,
        now: datetime,
        measures: Measures,
        options: Mapping[str, Any],
        broken: Callable[[str], Optional[Parsed]] = lambda parser: None,
        required: bool = False,
    ) -> None:
        self.check = check
        self.expected = expected
        self.level = level
        self.now = now
        self.options = options
        self.broken = broken
        """A parser's output that is there and could not be read; None where it could, or was not collected."""
        self.required = required
        """Was it asked for now, by us? What people bring may be a part; of our own run that means a broken end."""
        self._lookup = lookup
        self._thresholds = thresholds
        self._measures = measures
        self._device: Device = {}
        self._label = ""

    def of(self, device: Device, label: str) -> Context:
        """The same view for one device: every message begins with its label, findings and measures carry it."""
        bound = object.__new__(Context)  # ten times as fast as copy.copy, and made for each GPU of each check
        bound.__dict__.update(self.__dict__, _device=device, _label=label)
        return bound

    def facts(self, parser: str) -> Facts:
        """Facts of a parser in `needs`; the judge has made sure that they are there."""
        found = self._lookup(parser)
        if found is None:
            raise KeyError(f"check {self.check.id} reads {parser} without naming it in needs")
        return found

    def optional(self, parser: str) -> Optional[Facts]:
        """Facts of a parser in `wants`, or None when not collected or not readable."""
        return self._lookup(parser)

    def threshold(self, name: str) -> float:
        """The site's value of one of this check's thresholds, else the default."""
        for threshold in self.check.thresholds:
            if threshold.name == name:
                return self._thresholds.get(f"{self.check.id}.{name}", threshold.default)
        raise KeyError(f"check {self.check.id} declares no threshold {name}")

    def measure(self, name: str, value: object, unit: str, device: str = "") -> None:
        """Keep a number for fleet comparison; anything that is not a number is ignored."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            # Part of a name may come from a tool's output; a record takes plain words only.
            plain = _NOT_PLAIN.sub("_", name.lower())[:MAX_NAME_CHARS]
            entry = self._measures.setdefault(plain, {"unit": unit, "values": {}})
            entry["values"][device or self._label] = value

    def finding(
        self,
        status: Status,
        message: str,
        measured: Any = None,
        expected: Any = None,
        unit: str = "",
        *,
        remedy: Remedy = Remedy.NONE,
        device: Optional[Device] = None,
        evidence: Iterable[str] = (),
        reason: str = "",
    ) -> Finding:
        """Build a finding of this check. reason: the id of its Reason, or SkipReason; a PASS alone has none."""
        said, about = f"{self._label}: {message}" if self._label else message, device or self._device
        shown = clip_evidence(evidence)
        return Finding(self.check.id, status, said, remedy, about, measured, expected, unit, shown, reason)

    def because(
        self, status: Status, reason: Reason, message: str, *seen: Any, remedy: Optional[Remedy] = None, **rest: Any
    ) -> Finding:
        """A finding for a reason, which says the remedy where the caller does not. seen: measured, expected, unit."""
        asked = reason.remedy if remedy is None else remedy
        return self.finding(status, message, *seen, remedy=asked, reason=reason.id, **rest)

    def ok(self, message: str, *seen: Any, **rest: Any) -> Finding:
        """PASS: say what was seen."""
        return self.finding(Status.PASS, message, *seen, **rest)

    def info(self, reason: Reason, message: str, *seen: Any, **rest: Any) -> Finding:
        """INFO: worth knowing, never blocks, and asks for nothing."""
        return self.because(Status.INFO, reason, message, *seen, **{"remedy": Remedy.NONE, **rest})

    def warn(self, reason: Reason, message: str, *seen: Any, **rest: Any) -> Finding:
        """WARN: does not block the node."""
        return self.because(Status.WARN, reason, message, *seen, **rest)

    def fail(self, reason: Reason, message: str, *seen: Any, **rest: Any) -> Finding:
        """FAIL: blocks the node."""
        return self.because(Status.FAIL, reason, message, *seen, **rest)

    def unknown(self, reason: Reason, message: str, *seen: Any, **rest: Any) -> Finding:
        """UNKNOWN: could not be measured; blocks like FAIL."""
        return self.because(Status.UNKNOWN, reason, message, *seen, **rest)

    def skip(self, skip: Skip, **rest: Any) -> Finding:
        """SKIP: does not apply, with the reason."""
        return self.finding(Status.SKIP, skip.text, reason=skip.reason.id, **rest)
