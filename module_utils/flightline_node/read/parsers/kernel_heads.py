"""Whose words are these? Judges what stands before a kernel message in a line whose head kernel_lines.py does not know.

Logs come through collectors, launchers and terminals that each put something before a line. What consists of stamps,
levels, brackets, labels and at the end the kernel's name is a head; a syslog tag of another program is that program's
line; the rest cannot be told, and what it says must be looked at by a person.
"""

from __future__ import annotations

from typing import Match, Optional

from .lazy import Lazy

KERNEL, OTHER, UNCLEAR = "kernel", "other", "unclear"

KERNEL_PROGRAMS = frozenset({"kernel", "klogd", "kmsg", "dmesg", "klog", "imklog", "vmunix"})
"""The syslog tags of the kernel's own lines: rsyslog and journald, BusyBox, exporters of the ring buffer."""

KERNEL_TAGS = Lazy(
    r"(?:NVRM|nvidia[\w-]*|pci\w*|nvme\w*|EXT4-fs|XFS|mce|EDAC|BERT|Lustre|LustreError|LNet|LNetError|watchdog|BUG|INFO"
    r"|rcu|Oops|WARNING|md\w*|blk_update_request|print_req_error|ext4_end_bio|mlx5_core|NETDEV|efa|ena|infiniband|AER"
    r"|VFS|Buffer|DPC|GHES|systemd-networkd)\b"
)
"""How kernel messages begin that look like a program's tag ("NVRM: ..."); and who tells of ports for the kernel."""

SENTENCES = Lazy(
    r"(?:Memory failure|Kernel panic|critical (?:medium|target)|Aborting journal|Buffer I/O|I/O error|Out of memory"
    r"|Internal error|(?:\{\d+\})?\[Hardware Error)\b"
)
"""Beginnings of two words or more, of which the second looks like a program's tag."""

_HEAD_CHARS = 1024
_MAX_WORDS = 3
"""A host, a container and a stream may stand before the kernel's name; more words are a sentence."""

_LEVEL = r"(?:emerg(?:ency)?|alert|crit(?:ical)?|err(?:or)?|warn(?:ing)?|notice|info|debug)"
_MONTH_OR_DAY = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_NEUTRAL = Lazy(
    r"[\s|>:;,~*#\-]+"
    r"|[\[(<][^\[\](){}<>\"']{0,120}[\])>]:?"  # [stamp], (rank=0, pid=7), <stdout>:
    r"|\[(?:\.\.\.|\u2026)\]|\.\.\.|\u2026|\[ ?"
    r"|\{[^{}\n]{0,400}\}"  # {job="k"}
    r"|\d[\w:.,/+\-]{0,40}\]?"  # a number, a date, a clock; the end of a stamp that was cut
    r"|[^\W\d_](?<![A-Za-z])[^\s:\[\]]{0,16}"  # a word in letters other than a-z: a month, a day, an hour's half
    r"|[^\s:\[\]\"'A-Za-z]{0,4}[^\x00-\x7f\s][^\s:\[\]\"']{0,16}"
    rf"|(?:{_MONTH_OR_DAY}\.?,?|[AaPp]\.?[Mm]\.?|Z|[A-Z]{{3,4}})(?=[\s\]])(?<!NVRM)"
    rf"|(?:kern|syslog)\.{_LEVEL}\b:?|kern *: *{_LEVEL} *:|{_LEVEL}\b *:?(?=\s)"
    r"|level=\w{1,8}|[a-z_]{1,16}=[\w.:/+\-]{1,64}(?=\s)"
)
_NAME_IN_BRACKETS = Lazy(rf"[\[(](?!{_LEVEL}[\])])[^\d\[\]()]*[A-Za-z]{{3}}[^\d\[\]()]*[\])]")
"""[gpu-monitor]: a program or a thread. Stamps, ranks and pods have digits."""

_MARK = Lazy(r"[\[(<]?(?P<name>[a-z]{4,7})(?:\.\d{1,3})?(?:\[\d{1,9}\])?[\])>]?(?::|(?=[\s\]]))")
_TAG_WITH_PID = Lazy(r"[^\s:\[\]\"'(){}]{1,100}(?:\[\d{1,9}\]|\(\d{1,9}\))(?::|\s)")
_TAG = Lazy(r"(?P<name>[^\s:\[\]\"'(){}=]{1,253}):(?=\s|$)")
_WORD = Lazy(r"[^\s:\[\]\"'{}]{1,253}")
_PRIORITY = Lazy(r"\W{0,4}(?:<(?P<pri>\d{1,4})>|(?P<record>\d{1,4}),\d+,\d+,[^;\s]{0,40};)")
_FACILITY = Lazy(rf"\W{{0,4}}(?:user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *: *{_LEVEL} *:")
APPLICATION_LEVEL = Lazy(r"\b(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL|FATAL|TRACE)\b")
_QUOTED_ALONE = Lazy(r"(?:[\[(][^\[\](){}\"'=]{1,80}[\])] ?){0,4}\"\Z")
"""A tool that scanned the log for such lines quotes the whole of one, behind nothing but brackets of its own."""
_STAMP = Lazy(r"\d\d:\d\d|\d{4}-\d\d|\[ *\d")
_UPTIME = Lazy(r"\[ *(\d{1,12}\.\d{1,9})\]")
_ENDS_IN_UPTIME = Lazy(r"\[ *\d{1,12}\.\d{3,9}\] *(?:\[ *[TC]\d[^\]\s]{0,40}\] *)?\Z")
"""printk's own stamp straight before the message: whatever brought the line, the kernel wrote it."""
FIRST_USER_PRIORITY = 8
"""Priorities below are of facility 0, the kernel's (RFC 5424)."""


class _Read:
    """What was seen of a head so far."""

    def __init__(self) -> None:
        self.words = 0
        self.after_mark = 0
        self.marked = False
        self.named: Optional[Match[str]] = None
        self.foreign = False
        self.odd = False


def voice(prefix: str) -> str:
    """KERNEL, OTHER or UNCLEAR: who said what stands after these words of a line?"""
    prefix = prefix[-_HEAD_CHARS:]
    if _QUOTED_ALONE.match(prefix):
        return KERNEL
    if _foreign_number(prefix):
        return OTHER
    read = _walk(prefix)
    if read.foreign:
        return OTHER
    if read.named:
        # A tag that is no kernel's: behind a stamp it is a program's, at the start of a line it may be a node's name.
        return OTHER if _STAMP.search(prefix, 0, read.named.start()) and not read.marked else UNCLEAR
    if read.marked or _ENDS_IN_UPTIME.search(prefix[-80:]):
        return UNCLEAR if read.after_mark or read.words > _MAX_WORDS or _quotes(prefix) else KERNEL
    if read.odd or APPLICATION_LEVEL.search(prefix):
        return UNCLEAR
    return KERNEL if not read.words else UNCLEAR


def _quotes(prefix: str) -> bool:
    """Is the message inside a text that somebody else wrote?"""
    return prefix.count('"') % 2 == 1 or prefix.rstrip()[-1:] in ("'", "=")


def _foreign_number(prefix: str) -> bool:
    match = _PRIORITY.match(prefix)
    number = match and (match.group("pri") or match.group("record"))
    return bool(number and int(number) >= FIRST_USER_PRIORITY) or bool(_FACILITY.match(prefix))


def _walk(prefix: str) -> _Read:
    read, at = _Read(), 0
    while at < len(prefix):
        at = _step(prefix, at, read)
    return read


def _step(prefix: str, at: int, read: _Read) -> int:
    """Take one piece of the head; every one is at least a character long and of bounded length."""
    mark = _MARK.match(prefix, at)
    if mark and mark.group("name") in KERNEL_PROGRAMS:
        read.marked, read.after_mark, read.named = True, 0, None
        return mark.end()
    tag = _TAG_WITH_PID.match(prefix, at)
    if tag and not tag.group(0)[0].isdigit():
        read.foreign = True
        return len(prefix)
    neutral = _NEUTRAL.match(prefix, at)
    if neutral and neutral.end() > at:
        if read.named and _STAMP.match(neutral.group(0)):
            read.named = None  # a node's name: a stamp follows
        read.odd = read.odd or bool(_NAME_IN_BRACKETS.match(neutral.group(0)))
        return neutral.end()
    name = _TAG.match(prefix, at)
    if name:
        read.named = read.named or name
        read.after_mark += read.marked
        return name.end()
    word = _WORD.match(prefix, at)
    if word:
        read.words += 1
        read.after_mark += read.marked
        return word.end()
    read.odd = True
    return at + 1


def run_together(before: str) -> str:
    """As voice(), for a message inside a line whose head is the kernel's: two messages ran together on a console."""
    if not before or before[-1].isalnum() or before.startswith(("NVRM", "nvidia")):
        return KERNEL
    quoted = before[-1] in "\"'=`(" or before.count('"') % 2 == 1
    return OTHER if quoted or before.startswith("audit") or _TAG_WITH_PID.match(before) else UNCLEAR


def begins_with_mark(text: str, at: int) -> bool:
    """Does the kernel's name as a syslog tag stand here?"""
    mark = _MARK.match(text, at)
    return mark is not None and mark.group("name") in KERNEL_PROGRAMS


def uptime_in(prefix: str) -> Optional[float]:
    """Seconds since boot, where a head not known has them in the usual brackets."""
    found = _UPTIME.findall(prefix)
    return float(found[-1]) if found else None


def after_head(text: str) -> str:
    """A line without the stamps and brackets before its first word."""
    at = 0
    while at < min(len(text), _HEAD_CHARS):
        neutral = _NEUTRAL.match(text, at)
        if not neutral or neutral.end() == at:
            break
        at = neutral.end()
    return text[at:]
