"""The head of a kernel log line: stamp, host, facility; and whose line it is.

Read: dmesg `[  123.456789]`, dmesg -T, -H and -d, dmesg --time-format iso, dmesg -x (`kern  :err   :`), raw
syslog priority `<3>`, printk caller tags `[ T1946]`, syslog `Nov 21 09:18:29 host kernel:`, RFC 3339 and
journal short-iso, short-full, short-unix and short-monotonic, /dev/kmsg records, lines without a stamp, and
all of these behind what grep, pdsh or clush put before a line.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Match, NamedTuple, Optional, Union

from .kernel_heads import APPLICATION_LEVEL, KERNEL_PROGRAMS, KERNEL_TAGS, SENTENCES

Time = Union[str, float, None]
"""ISO 8601 text of a wall clock, seconds since boot when that is all there is, or nothing."""

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?"

_KMSG = re.compile(r"(?P<pri>\d{1,4}),\d+,(?P<us>\d{1,18}),[^;\s]{0,40};")
_PRIORITY = re.compile(r"<(?P<pri>\d{1,4})>(?:1 )?")
_FACILITY = re.compile(
    r"(?P<facility>kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *: *"
    r"(?:(?P<urgent>emerg(?:ency)?|alert|crit(?:ical)?|err(?:or)?)|warn(?:ing)?|notice|info|debug) *: *"
)
_UPTIME = re.compile(r"\[ *(?P<uptime>\d{1,12}\.\d{1,9}) *(?:<[ .\d]+>)?\][ \t]*")
_CALLER = re.compile(r"\[ *[TC]\d+[^\]\s]{0,40}\] *")
_DELTA = r"(?: *<[ .\d]{1,20}>)?"
_CTIME = re.compile(
    r"\["
    + _DAY
    + " +"
    + _MONTH
    + r" +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?: (?P<year>\d{4}))?"
    + _DELTA
    + r"\] *"
)
_BRACKETED_ISO = re.compile(
    r"\[(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?P<zone>Z|[+-]\d\d:?\d\d)?\]:? *"
)
"""talosctl dmesg, and collectors that print the clock in dmesg's place."""

_RELATIVE = re.compile(r"\[(?:[^\W\d_]{3,5}\.? {0,2}\d{1,2} \d\d:\d\d| *\+\d{1,9}\.\d{1,9}| *<[ .\d]{1,20}>)\] *")
"""dmesg -H: the minute once, then the seconds since the line before; and dmesg -td. No line has a time of its own."""

_ISO = re.compile(
    r"(?:"
    + _DAY
    + r" )?(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:(?P<comma>[.,])(?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d| UTC"
    r"| (?:(?!ERROR|INFO|DEBUG|WARN|FATAL|TRACE)[A-Z]{2,5}|[+-]\d\d(?:\d\d)?)(?= [^\s:]+ [^\s:\[]+(?:\[\d+\])?:))?"
    r"[ \t]+"
)
"""A zone by name (short-full prints the node's own) stands before a host and a program; else it is the host."""

_CARRIER = re.compile(
    r"(?:stdout|stderr) [FP] (?=[\[<])|(?:[^\s:]+ )?(?="
    + _MONTH.replace("?P<month>", "?:")
    + r" [ \d]\d \d\d:\d\d:\d\d )"
)
"""After the time at which a container's log or CloudWatch took the line in, with its stream's name: the line itself."""

_SYSLOG = re.compile(
    r"(?:"
    + _DAY
    + r" +)?(?:(?P<first_year>\d{4}) +)?"
    + _MONTH
    + r" +(?P<day>\d{1,2}) (?:(?P<year>\d{4}) )?(?P<clock>\d\d:\d\d:\d\d)(?:\.\d{1,9})?[ \t]+"
    r"(?:(?P<half>[AaPp])\.?[Mm]\.? +)?"
)
# The same two in another language: dmesg -T and journalctl print the locale's names of days and months.
_LOCAL_CTIME = re.compile(r"\[[^\W\d][^\]\d]{1,12} *\d{1,2}[^\]\d]{0,12} *\d\d:\d\d:\d\d \d{4}\] *")
_LOCAL_SYSLOG = re.compile(r"[^\W\d]{3,5}\.? +\d{1,2} \d\d:\d\d:\d\d +")
_UNIX = re.compile(r"(?P<seconds>\d{9,11})\.\d{6} ")
_QUOTED = re.compile(
    r"(?:(?:\.{0,2}/|\w)[^\s:\[\]()]{0,200}:)?(?:\d{1,9}[:-])?(?:\[\.\.\.\] *)?"
    r"(?=\[|<\d|[A-Z][a-z]{2} +\d|\d{4}-\d\d-|NVRM|nvidia-nv)"
)
"""grep's file name and line number, and the [...] that reports put in a stamp's place."""
_NODE = re.compile(
    r"[\w.-]{1,253}: (?=(?:kern|user): +\w|\[ *(?:\+|<? *\d+\.\d)|\[[^\W\d_]{2,5}\.?,? ?[^\W\d_]{0,5}\.? {0,2}\d|<\d|"
    r"\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d \d\d:)"
)
"""The node's name that pdsh and clush put before each line."""

_SOURCE = re.compile(
    r"(?P<host>[^\s:]+) (?:[a-z]{3,8}\d?\.(?P<level>[a-z]{3,7}) )?(?P<program>[^\s:\[]+)(?:\[\d+\])?:[ \t]?"
)
"""Some syslog daemons print facility and level (kern.warn) before the program."""

_URGENT = frozenset({"emerg", "alert", "crit", "err", "error"})
_SOURCE_5424 = re.compile(r"(?P<host>[^\s:]+) (?P<program>[^\s:]+) \S+ \S+ (?:-|\[[^\]]*\]) ")
_KERNEL = re.compile(r"(?:[^\s:\[]+ )?kernel(?:\[\d+\])?: ?")
_PLAIN = re.compile(r"\[ *(\d{1,12}\.\d{1,9})\] (?![\[<]|[^\s:\[]{0,64} ?kernel)")
_JOURNAL = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)([+-]\d\d):?(\d\d) ([^\s:]+) kernel: "
    r"(?:\[ *(\d{1,12}\.\d{1,9})\] )?(?!\[|message repeated )"
)
"""The commonest heads in one step: a storm of a million lines is read through here."""

_REPEATED = re.compile(r"message repeated \d{1,9} times: \[ ?(?=.*\]$)")
"""rsyslog, where it folds equal messages (Ubuntu's default): the line itself stands in the brackets."""

_BLANKS = {0xA0: " ", 0x200B: None, 0xFEFF: None}
"""What editors and chats make of a blank: one that does not break, and one of no width."""
_ANSI = re.compile(r"(?:\x1b|\^\[)\[[0-9;]{0,20}[A-Za-z]")
"""Colours; cat -v and some collectors write the escape character as two printable ones."""


class KernelLine(NamedTuple):
    """A kernel line. `form` names its stamp; `assumed_year` is set for stamps without one.

    sure: its head was read to the end, so that the message begins where `message` does. host: the machine's name, where
    the line has one. urgent: printed at priority err or worse.
    """

    message: str
    wall: Optional[str] = None
    uptime: Optional[float] = None
    form: str = "none"
    assumed_year: bool = False
    sure: bool = True
    host: str = ""
    urgent: bool = False

    @property
    def time(self) -> Time:
        """The wall clock where there is one, else the uptime in seconds."""
        return self.wall if self.wall is not None else self.uptime


class _Head:
    """What was read of a head so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.wall: Optional[str] = None
        self.uptime: Optional[float] = None
        self.form = "none"
        self.assumed_year = False
        self.foreign = False
        self.sure = False
        self.host = ""
        self.urgent = False

    def take(self, pattern: re.Pattern[str]) -> Optional[Match[str]]:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def line(self) -> Optional[KernelLine]:
        if self.foreign:
            return None
        sure = self.sure and not self.text.startswith("[", self.at)
        rest = self.text[self.at :]
        return KernelLine(rest, self.wall, self.uptime, self.form, self.assumed_year, sure, self.host, self.urgent)


def text_of(raw: bytes) -> str:
    """The text of a line; colours (dmesg --color=always) and the zero bytes of a power loss are dropped."""
    # journalctl indents the further lines of a message of several lines: they are the kernel's as well.
    text = raw.decode("utf-8", "replace").rstrip("\r\n").lstrip("\x00\ufeff \t")
    text = text if text.isascii() else text.translate(_BLANKS).lstrip()
    return _ANSI.sub("", text) if "\x1b" in text or "^[[" in text else text


def read(text: str) -> Optional[KernelLine]:
    """Split a line; None when another program than the kernel wrote it."""
    plain = _PLAIN.match(text)
    if plain:
        return KernelLine(text[plain.end() :], None, float(plain.group(1)), "dmesg")
    journal = _JOURNAL.match(text)
    if journal:
        stamp, hours, minutes, host, uptime = journal.groups()
        form = "rfc3339" if ":" in text[len(stamp) : len(stamp) + 6] else "short-iso"
        up = float(uptime) if uptime else None
        return KernelLine(text[journal.end() :], f"{stamp}{hours}:{minutes}", up, form, host=host)
    head = _Head(text)
    if not head.take(_NODE):
        head.take(_QUOTED)
    _priority(head)
    _bracketed(head)
    if head.wall is None and _wall(head) and head.form != "dmesg-iso":
        if head.take(_CARRIER):
            return read(text[head.at :])
        _source(head)
    elif head.take(_KERNEL):
        head.sure = True
    if head.take(_REPEATED):
        head.text = head.text[:-1]
    _bracketed(head)
    return head.line()


def _priority(head: _Head) -> None:
    kmsg = head.take(_KMSG)
    match = kmsg or head.take(_PRIORITY)
    if match:
        head.foreign = int(match.group("pri")) >= 8  # facility 0 is the kernel
        head.urgent = int(match.group("pri")) <= 3
    if kmsg:
        head.sure = True
        head.uptime, head.form = int(kmsg.group("us")) / 1e6, "kmsg"
    facility = head.take(_FACILITY)
    head.sure = head.sure or bool(facility)
    if facility:
        head.foreign = head.foreign or facility.group("facility") != "kern"
        head.urgent = head.urgent or bool(facility.group("urgent"))


def _bracketed(head: _Head) -> None:
    match = head.take(_CTIME)
    if match:
        year = match.group("year")
        head.assumed_year = not year
        head.wall, head.form = _dated(match, int(year) if year else _likely_year(match)), "dmesg-T"
    elif head.take(_LOCAL_CTIME):
        head.form = "dmesg-T"
    elif head.take(_RELATIVE):
        head.form = "dmesg-H"
    elif head.wall is None:
        match = head.take(_BRACKETED_ISO)
        if match:
            head.wall, head.form = (
                f"{match.group('date')}T{match.group('clock')}{_offset(match.group('zone') or '')}",
                "rfc3339",
            )
    match = head.take(_UPTIME)
    if match:
        head.uptime, head.sure = float(match.group("uptime")), True
        head.form = "dmesg" if head.form == "none" else head.form
    head.take(_CALLER)


def _wall(head: _Head) -> bool:
    match = head.take(_ISO)
    if match:
        zone, fraction = (match.group("zone") or "").strip(), match.group("fraction")
        head.form = "dmesg-iso" if match.group("comma") == "," else "short-iso" if _no_colon(zone) else "rfc3339"
        head.wall = f"{match.group('date')}T{match.group('clock')}{'.' + fraction if fraction else ''}{_offset(zone)}"
        return True
    match = head.take(_UNIX)
    if match:
        head.form = "short-unix"
        head.wall = datetime.fromtimestamp(int(match.group("seconds")), timezone.utc).isoformat()
        return True
    match = head.take(_SYSLOG)
    if match:
        year, head.form = match.group("year") or match.group("first_year"), "syslog"
        head.wall, head.assumed_year = _dated(match, int(year) if year else _likely_year(match)), not year
    elif head.take(_LOCAL_SYSLOG):
        head.form = "syslog"
        return True
    return match is not None


def _no_colon(zone: str) -> bool:
    return len(zone) == 5 and zone[0] in "+-"


def _offset(zone: str) -> str:
    """+02:00; nothing for a zone by name, which stands for several."""
    if zone in ("Z", "UTC"):
        return "+00:00"
    digits = zone[1:].replace(":", "")
    return f"{zone[0]}{digits[:2]}:{digits[2:] or '00'}" if digits.isdecimal() else ""


def _dated(match: Match[str], year: int) -> str:
    month, day = _MONTHS.index(match.group("month")) + 1, int(match.group("day"))
    return f"{year:04d}-{month:02d}-{day:02d}T{_of_24_hours(match)}"


def _of_24_hours(match: Match[str]) -> str:
    clock, half = match.group("clock"), (match.groupdict().get("half") or "").lower()
    hour = int(clock[:2])
    return f"{hour % 12 + 12 * (half == 'p'):02d}{clock[2:]}" if half and 1 <= hour <= 12 else clock


def _likely_year(match: Match[str]) -> int:
    """Classic syslog prints no year: the latest one that does not put the stamp into the future."""
    tomorrow = datetime.now() + timedelta(days=1)
    month, day = _MONTHS.index(match.group("month")) + 1, int(match.group("day"))
    return tomorrow.year - ((month, day) > (tomorrow.month, tomorrow.day))


def _source(head: _Head) -> None:
    begin = head.at
    match = None if SENTENCES.match(head.text, begin) else head.take(_SOURCE) or head.take(_SOURCE_5424)
    if match and _no_source(match):
        head.at = begin
    elif not match:
        head.sure = bool(head.take(_KERNEL))  # journalctl --no-hostname
    elif match.group("program") in KERNEL_PROGRAMS:
        head.sure, head.host = True, match.group("host")
        head.urgent = head.urgent or match.groupdict().get("level") in _URGENT
    elif KERNEL_TAGS.match(match.group("program")):
        head.at = match.start("program")  # "NVRM:" is no program's name: the kernel's is left out
    else:
        head.foreign = True


def _no_source(match: Match[str]) -> bool:
    """Is what looks like host and program the beginning of a message ("nvme nvme1: "), or an application's level?"""
    host, program = match.group("host"), match.group("program")
    if "[" in match.group(0):
        return False
    return bool(APPLICATION_LEVEL.fullmatch(host) or KERNEL_TAGS.fullmatch(host)) or program.isdigit()
