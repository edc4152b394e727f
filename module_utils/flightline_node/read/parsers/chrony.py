"""Clock synchronisation: chronyc tracking (text and -c) and sources, timedatectl timesync-status and show."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, Match, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .lazy import Lazy

FILES = ("chrony.txt",)

_SPAN = Lazy(r"(\d{1,12}(?:\.\d{1,9})?)(us|ms|s|min|h|d|w)", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SOURCE = Lazy(
    r"[\^=#](?P<state>[*+?x~-]) +\S{1,253} +(?P<stratum>\d{1,2}) +\d{1,3} +\d{1,3} +\S{1,8} +"
    r"(?P<offset>[+-]\d{1,12}(?:\.\d{1,9})?)(?P<unit>ns|us|ms|s)\[",
    re.ASCII,
)
"""chronyc(1), sources: mode, state (* is the one followed), stratum; the offset is positive when this clock is fast."""
_CSV_FIELDS = 14
_ERRORS = ("506 ", "501 ", "Cannot talk to daemon", "Could not open", "Failed to ", "System has not been booted")

_NOT_SYNCHRONISED = "Not synchronised"


def parse(files: Mapping[str, Data]) -> Facts:
    """{tool, leap, stratum, offset_s, reference, last_offset_s, rms_offset_s, root_delay_s, root_dispersion_s}.

    offset_s is this clock minus NTP's: positive when the clock is fast, negative when slow. leap is
    chrony's wording ('Normal', 'Insert second', 'Not synchronised') whatever the tool.
    `timedatectl timesync-status` adds packet_count; `timedatectl show` has leap and ntp_enabled alone.
    A tool that could not reach its daemon gives {tool, error: its text}.
    """
    rows = [line.strip() for line in v.lines(t.only(files)) if line.strip()]
    fields = _fields(rows)
    readers: Dict[str, Callable[[Dict[str, str]], Facts]] = {
        "Leap status": _tracking,
        "Packet count": _timesync,
        "Poll interval": _timesync,
        "NTPSynchronized": _timedatectl,
        "System clock synchronized": _timedatectl,
        "NTP synchronized": _timedatectl,
    }
    for name, reader in readers.items():
        if name in fields:
            return reader(fields)
    for row in rows:
        if row.count(",") == _CSV_FIELDS - 1:
            return _csv(row.split(","))
        if any(mark in row for mark in _ERRORS):
            return {"tool": "chronyc" if row[:3].isdigit() else "timedatectl", "error": row[:300]}
    sources = [match for match in map(_SOURCE.match, rows) if match]
    if sources:
        return _sources(sources)
    raise ParseError(f"no leap status in it, first line {rows[0][:80]!r}" if rows else "no line of text")


def _fields(rows: List[str]) -> Dict[str, str]:
    fields: Dict[str, str] = {}
    for row in rows:
        # chronyc and timedatectl print "Name : value", timedatectl show "Name=value".
        mark = "=" if "=" in row.partition(":")[0] else ":"
        name, found, value = row.partition(mark)
        if found:
            fields.setdefault(name.strip(), value.strip())
    return fields


def _tracking(fields: Dict[str, str]) -> Facts:
    facts: Facts = {"tool": "chronyc", "leap": fields["Leap status"]}
    _put(facts, "stratum", v.integer(fields.get("Stratum", "")))
    _put(facts, "reference", fields.get("Reference ID"))
    system = fields.get("System time", "").split()
    if len(system) > 2 and system[1] == "seconds":
        _put(facts, "offset_s", _signed(v.real(system[0]), "slow" in system[2]))
    for name, key in (
        ("Last offset", "last_offset_s"),
        ("RMS offset", "rms_offset_s"),
        ("Root delay", "root_delay_s"),
        ("Root dispersion", "root_dispersion_s"),
    ):
        _put(facts, key, v.real((fields.get(name, "").split() or [""])[0]))
    return facts


def _sources(rows: List[Match[str]]) -> Facts:
    """Without tracking: synchronised when a source is followed, and by its stratum and offset."""
    followed = next((row for row in rows if row.group("state") == "*"), None)
    if followed is None:
        return {"tool": "chronyc", "leap": _NOT_SYNCHRONISED}
    offset_s = float(followed.group("offset")) * _SECONDS[followed.group("unit")]
    stratum = int(followed.group("stratum")) + 1
    return {"tool": "chronyc", "leap": "Normal", "stratum": stratum, "offset_s": offset_s + 0.0}


def _csv(words: List[str]) -> Facts:
    """Values of chronyc -c: the correction still to be made, so a positive one means that the clock is slow."""
    facts: Facts = {"tool": "chronyc", "leap": words[13].strip(), "reference": f"{words[0]} ({words[1]})"}
    _put(facts, "stratum", v.integer(words[2]))
    _put(facts, "offset_s", _signed(v.real(words[4]), True))
    for position, key in ((5, "last_offset_s"), (6, "rms_offset_s"), (10, "root_delay_s"), (11, "root_dispersion_s")):
        _put(facts, key, v.real(words[position]))
    if not facts["leap"] or "stratum" not in facts:
        raise ParseError("fourteen values that are not chronyc -c tracking")
    return facts


def _timesync(fields: Dict[str, str]) -> Facts:
    """systemd-timesyncd; without an answer from a server it prints no leap, stratum or offset at all."""
    facts: Facts = {"tool": "timesyncd"}
    _put(facts, "packet_count", v.integer(fields.get("Packet count", "")))
    _put(facts, "reference", fields.get("Server"))
    _put(facts, "stratum", v.integer(fields.get("Stratum", "")))
    leap = fields.get("Leap", "").lower()
    names = {"normal": "Normal", "not synchronized": _NOT_SYNCHRONISED, "": None}
    _put(facts, "leap", names.get(leap, fields.get("Leap")))
    # Its offset is the server's lead over this clock: the other sign.
    _put(facts, "offset_s", _signed(_span(fields.get("Offset", "")), True))
    _put(facts, "root_delay_s", _span(fields.get("Delay", "")))
    return facts


def _timedatectl(fields: Dict[str, str]) -> Facts:
    names = ("NTPSynchronized", "System clock synchronized", "NTP synchronized")  # show; status, newer and older
    synchronised = next((fields[name] for name in names if name in fields), None)
    facts: Facts = {"tool": "timedatectl", "leap": "Normal" if synchronised == "yes" else _NOT_SYNCHRONISED}
    enabled = fields.get("NTP", fields.get("NTP service"))
    if enabled is not None:
        facts["ntp_enabled"] = enabled in ("yes", "active")
    return facts


def _span(text: str) -> Optional[float]:
    """Seconds of systemd's time spans: '-27us', '+1.234ms', '1min 2.5s'; '0' has no unit."""
    text = text.partition("(")[0].strip()
    if text.strip("+-") == "0":
        return 0.0
    total, parts = 0.0, text.lstrip("+-").split()
    for part in parts:
        match = _SPAN.fullmatch(part)
        if not match:
            return None
        total += float(match.group(1)) * _SECONDS[match.group(2)]
    if not parts:
        return None
    return -total if text.startswith("-") else total


def _signed(value: Optional[float], negate: bool) -> Optional[float]:
    # "+ 0.0": minus zero reads oddly in a report.
    return None if value is None else (-value if negate else value) + 0.0


def _put(facts: Facts, key: str, value: Any) -> None:
    if value is not None:
        facts[key] = value
