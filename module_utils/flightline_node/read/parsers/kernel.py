"""kernel.log: the kernel's ring buffer or journal, in any of the usual stamp forms.

Lists of events, each `{time, text, boot, ...}` with `uptime_s` where the line has it; see LISTS and
the rules in kernel_events.py. `boot` counts the boot markers before the event; `last_boot` is the
log's last one. A storm is thinned out: of each sort of event (for an Xid, code and GPU) and boot the first
and last KEPT stand in the list and `storms` says how many there were; `counts` has every list's true total.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import chain, islice
from typing import Any, Deque, Dict, Iterator, List, Mapping, Match, NamedTuple, Optional, Sequence, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import (
    kernel_heads,
    kernel_journal,
    kernel_lines,
    kernel_lost,
    kernel_order,
    kernel_scan,
    kernel_shape,
    kernel_trace,
)
from . import text as t
from .kernel_events import BY_NEEDLE, CORES, LISTS, NEEDLES, EventPattern
from .kernel_fields import pci_in
from .kernel_lines import KernelLine
from .lazy import Lazy

FILES = ("kernel.log",)

KEPT = 200
"""Events kept at each end of a storm: enough for evidence and for telling incidents apart."""

MAX_SORTS = 2000
"""Sorts of events kept apart; a log has a handful, a damaged one could invent millions."""

TEXT_CHARS = 600
HEAD_BYTES = 64 << 10
SAMPLE_BYTES = 1 << 20
UNSTAMPED_LINES = 2000
"""So many lines without a stamp, and no more, are read to find the first or last one."""

UPTIME_BACK_S = 60.0
"""Uptime that falls back by more is another boot; printk on several CPUs jitters by far less."""

NAMED_WITHIN_BYTES = 1000
"""The forms of several lines ("fallen off the bus", "not supported") name the GPU within this distance."""

BERT_WITHIN_BYTES = 4000
"""The records of the boot before are printed in one go; what comes later is this boot's."""

_META = re.compile(rb"\s*-- (?:Logs begin|Journal begins|No entries|Boot|Reboot).*")
_REFUSED = re.compile(
    rb"^(?:[\w./-]{1,60}: )?[^\[\n]{0,120}?(?:not permitted|[Pp]ermission denied|insufficient permissions|"
    rb"command not found|No such file or directory|No journal files were (?:found|opened)|must be (?:root|superuser)|"
    rb"not seeing messages from other users)[^\n]{0,120}$",
    re.MULTILINE,
)
_KERNEL_WORDS = Lazy(
    r"(?:NVRM|nvidia[\w-]*|Linux version|Command line|pci[\w ]*|nvme[\w ]*|e[nf]a|EFA|audit|ACPI|x86|BIOS-[\w]+|kernel"
    r"|usb|smp|SMP|CPU|Memory|random|NET|EXT4-fs|XFS|mce|EDAC|IPv6|TCP|veth\w*|docker\d|br-\w+|eth\d|ens\d+|cgroup|device"
    r"|Lustre\w*|LNet\w*|mlx5_core|watchdog|rcu|BUG|INFO|clocksource|scsi|sd|loop\d*|DMAR|iommu|hrtimer|perf|workqueue"
    r"|printk|systemd-journald|Key type|Freeing|raid6|md\d*|Btrfs|FS-Cache|NFS|RPC|Out of memory|oom-kill|traps"
    r"|[\w-]{2,24} [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"  # dev_printk
    r"|\w[\w.-]{0,30}\[\d+\]: segfault)\b[^\n]{0,60}(?::|\(| )"
)
"""How messages of the kernel begin, for a log whose stamps could be anybody's."""
_FIELDS = re.compile(rb"\x1e?(?:__CURSOR=|__REALTIME_TIMESTAMP=|[^\n]{1,100}\[s=[0-9a-f]{1,64};i=)")
"""How journalctl -o export and verbose begin."""

_KERNELS_HEAD = re.compile(
    rb"(?m)^(?:\x1b\[[0-9;]{0,12}m)*(?:[\w.-]{1,253}: )?(?:<[0-7]>|kern *:"
    rb"|\[ *\+?\d{1,9}\.\d{1,9}\](?! \([A-Z*=!+?-]{2}\))"
    rb"|[0-7],\d+,\d+,[^;\n]{0,40};|-- Boot [0-9a-f]{32}|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] (?!\[))"
    rb"|\[ *\d{1,9}\.\d{6}\] (?!\([A-Z*=!+?-]{2}\))|\b(?:kernel|klogd|kmsg)(?:\[\d+\])?: "
)
"""Heads that only the kernel's lines have; the X server's log has its stamps, and (II) or (EE) behind them."""

_COLOUR = re.compile(rb"(?:\x1b|\^\[)\[[0-9;]{0,20}[A-Za-z]")
_DISK = re.compile(rb"^\r?\n[^\n]{0,200}?([\w!-]{1,32}): rw=\d")
_CONTINUED = Lazy(r", *(?:Severity|Data|Raw data|Engine instance|Sub-engine)\b", re.IGNORECASE)


class _SeenEvent(NamedTuple):
    rule: EventPattern
    match: Match[str]
    line: KernelLine
    at: int
    boot: int
    host_boot: int = 0
    more: Tuple[Tuple[str, Any], ...] = ()
    trace: Optional[kernel_trace.Trace] = None


class _Sort:
    """One sort of event in one boot: its ends and its number."""

    def __init__(self, most: int) -> None:
        self.first: List[_SeenEvent] = []
        self.last: Deque[_SeenEvent] = deque(maxlen=most)
        self.most = most
        self.count = 0

    def add(self, seen: _SeenEvent) -> None:
        self.count += 1
        if len(self.first) < self.most:
            self.first.append(seen)
        else:
            self.last.append(seen)

    @property
    def kept(self) -> int:
        return len(self.first) + len(self.last)


SortKey = Tuple[str, int, Tuple[Optional[str], ...]]


def _leans(rule: EventPattern) -> bool:
    """Do its messages name their GPU on the line before?"""
    return rule.name == "fallen_off_bus" or ("kind", "unsupported") in rule.extra


class _KernelReader:
    """Walks the interesting lines in order, keeping what later lines lean on."""

    def __init__(self, kept: int = KEPT, most_sorts: int = MAX_SORTS) -> None:
        self._limits = (kept, most_sorts)
        self.base = 0
        """Where the piece that is read now begins in the whole log, in bytes."""
        self.sorts: Dict[SortKey, _Sort] = {}
        self.read = False
        """Was there a line that is the kernel's without doubt?"""
        self.counts: Dict[str, int] = {}
        self.boot = 0
        self.boots = kernel_order.Boots()
        self.uuids: Dict[str, str] = {}
        self._uptime: Optional[float] = None
        self._marked = False
        self._named: Tuple[int, Optional[str]] = (-NAMED_WITHIN_BYTES, None)
        self._hung: Optional[str] = None
        self._sxids: Dict[Tuple[str, str], int] = {}
        self._bert = -BERT_WITHIN_BYTES
        self.ledger = kernel_shape.Ledger()
        self.trace: Optional[kernel_trace.Trace] = None
        """That of the last line that has one under it."""

    def add(
        self, at: int, line: KernelLine, rule: EventPattern, match: Match[str], more: Tuple[Tuple[str, Any], ...] = ()
    ) -> None:
        """Take one matched line; more: what lines beside it say of the event."""
        at += self.base
        self.read = self.read or rule.name not in (kernel_lost.UNSPLIT, "carrier")
        self._note_boot(line, rule)
        if not rule.name:
            self._name(at, match)
        elif rule.name == "gpu_uuids":
            if len(self.uuids) < MAX_SORTS:
                self.uuids[match.group("pci").lower()] = match.group("uuid")
        elif (rule.name == "sxids" and self._continues(match)) or (rule.name == "hung_task" and self._shows(match)):
            return
        else:
            if _leans(rule) and not pci_in(match.group(0)) and at - self._named[0] < NAMED_WITHIN_BYTES:
                more = (("pci", self._named[1]),)
            if rule.name == "mce":
                more = (("previous_boot", True),) if self._reports_last_boot(at, match) else ()
            own = self.boots.of_host.get(line.host, 0)
            trace = kernel_trace.Trace(line) if rule.name in kernel_trace.STALLS else None
            self.trace = trace or self.trace
            self._keep(_SeenEvent(rule, match, line, at, self.boot, own, more, trace))

    def _note_boot(self, line: KernelLine, rule: EventPattern) -> None:
        if rule.name == "boots":
            # journalctl prints its own marker, then the new kernel's first line: one boot, not two.
            self._begin(line, not self._marked)
            self.boots.named(line.host)
            self._marked, self._uptime = "version" not in match_head(line), line.uptime
            return
        self._marked = False
        if line.uptime is not None:
            if self._uptime is not None and line.uptime < self._uptime - UPTIME_BACK_S:
                self._begin(line, True)
            self._uptime = line.uptime

    def _begin(self, line: KernelLine, fresh: bool) -> None:
        if fresh:
            self.boot += 1
            self.boots.begun(line)

    def _name(self, at: int, match: Match[str]) -> None:
        if "pci" in match.re.groupindex:
            self._named = (at, match.group("pci").lower())
        else:
            self._bert = at

    def _reports_last_boot(self, at: int, match: Match[str]) -> bool:
        """Is it the firmware's report of how the last boot ended? It has neither {n} nor "mce:"."""
        if match.group("sequence") or match.group(0).startswith("mce: ") or at - self._bert >= BERT_WITHIN_BYTES:
            self._bert = -BERT_WITHIN_BYTES
            return False
        self._bert = at
        return True

    def _shows(self, match: Match[str]) -> bool:
        """Is it the state of a task that the kernel has just called hung?"""
        before, self._hung = self._hung, match.group("pid")
        return "seconds" not in match.re.groupindex and before == self._hung

    def _continues(self, match: Match[str]) -> bool:
        """Is it a detail line of an SXid already read (NVSwitch prints two more lines for each)?"""
        key = (match.group("code"), match.group("pci").lower())
        if _CONTINUED.match(match.group("rest")) and self._sxids.get(key) == self.boot:
            return True
        if len(self._sxids) < MAX_SORTS:
            self._sxids[key] = self.boot
        return False

    def _keep(self, seen: _SeenEvent) -> None:
        rule = seen.rule
        match = seen.match
        key = tuple([match.group(name) for name in rule.key])
        if rule.extra or seen.more:
            key += tuple(str(value) for _, value in (*rule.extra, *seen.more))
        if rule.name == "mce":
            # Detail lines by the thousand must not push out the one line that says "uncorrected".
            key += (str(seen.rule.facts(seen.match)["uncorrected"]),)
        sort: SortKey = (rule.name, seen.boot, key)
        kept, most_sorts = self._limits
        if sort not in self.sorts and len(self.sorts) >= most_sorts:
            sort = (rule.name, seen.boot, ("others",))
        if sort not in self.sorts:
            self.sorts[sort] = _Sort(kept)
        self.sorts[sort].add(seen)
        self.counts[rule.name] = self.counts.get(rule.name, 0) + 1


def match_head(line: KernelLine) -> str:
    """The first words of a message."""
    return line.message[:20]


def parse(files: Mapping[str, Data]) -> Facts:
    """{xids[], sxids[], fallen_off_bus[], ... (LISTS), counts{}, storms[], last_boot, first_time, ...}.

    Also last_time, stamp_format, gpu_uuids{pci: uuid} and driver_version. Raises ParseError for a log that
    is empty, refused or not text: nothing was looked at.
    """
    data = _uncoloured(_one_line_end(kernel_journal.plain(_in_utf8(t.only(files)))))
    _must_be_a_log(data)
    reader = _KernelReader()
    ordered = _in_order(reader, data)
    data = data if ordered is None else ordered
    near = data.rfind(b"\n", 0, max(0, len(data) - kernel_shape.WHOLE_BYTES)) + 1
    if near:
        _read(reader, data, kernel_shape.CHIEF, 0, near)
    _read(reader, data, kernel_shape.words_for(bytes(data[:HEAD_BYTES])), near)
    if not reader.read and not _holds_a_kernel_line(data):
        raise ParseError("no line of it is a kernel message: neither a stamp nor a kernel's words")
    facts, cut = _facts(reader), kernel_trace.cut_off(data)
    if cut:
        facts["kernel_warning"].append({"text": cut, "boot": reader.boot, "time": None, "cut_off": True})
    told = {"unread": _unread(reader), "ledger": _ledger(reader, data), "disorder": ordered is None}
    return {**facts, **_span(data), **told}


def _in_utf8(data: Data) -> Data:
    """The log as UTF-8; Windows' tools write UTF-16, with a mark in front or without."""
    first = bytes(data[:64])
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return t.decode(data).encode("utf-8", "replace")
    if len(first) == 64 and not any(first[1::2]) and all(first[::2]):
        return bytes(data).decode("utf-16-le", "replace").encode("utf-8", "replace")
    return data


def _in_order(reader: _KernelReader, data: Data) -> Optional[Data]:
    """The lines as the kernel wrote them, by their stamps; None where those do not tell."""
    head, tail = _ends(data)
    if kernel_order.runs_backwards(head, tail):
        return kernel_order.turned(data)
    if kernel_order.shuffled(head, tail):
        return kernel_order.sorted_by_stamps(data)
    if head and head[0].wall and tail[-1].wall:
        reader.boots.out_of_order = head[0].wall[:19] > tail[-1].wall[:19]
    return data


class Stream:
    """The same reading for a log that comes in pieces of whole lines, in bounded memory: what a watcher follows."""

    def __init__(self, kept: int, most_sorts: int) -> None:
        self._reader = _KernelReader(kept, most_sorts)
        self._last: Dict[str, Any] = {}

    def feed(self, data: bytes) -> int:
        """Read a piece; returns how many events it held, or says more of. Its last line has a line end."""
        before = sum(self._reader.counts.values())
        named = self._reader.trace is not None and self._reader.trace.read(data, 0)
        _read(self._reader, data)
        self._reader.base += len(data)
        span = _span(data)
        self._last = {**span, "first_time": self._last.get("first_time", span["first_time"])}
        return sum(self._reader.counts.values()) - before + named

    def facts(self) -> Facts:
        """As parse() of everything that was fed."""
        return {**_facts(self._reader), **self._last}


class _Open:
    """The line that is being read. doubt: a word of failure is in it; taken, known: a rule took it, or part of it."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.tried = raw, 0
        self.caveat = self.taken = self.known = False
        self._read: Optional[Tuple[str, Optional[KernelLine]]] = None

    def read(self) -> Tuple[str, Optional[KernelLine]]:
        """Its text, and its parts where the kernel may have written it."""
        if self._read is None:
            text = kernel_lines.text_of(self.raw)
            self._read = (text, kernel_lines.read(text))
        return self._read

    def close(self, reader: _KernelReader) -> None:
        """The line was read to its end."""
        if self.caveat and not (self.taken or self.known):
            reader.ledger.note(self.raw, reader.boot, reader.boots.of_host)


def _read(
    reader: _KernelReader, data: Data, words: Sequence[bytes] = (), begin: int = 0, end: Optional[int] = None
) -> None:
    """Read the lines from begin to end. words: those of failure, where a ledger is kept."""
    needles, cores = (*NEEDLES, *words), (*CORES, *kernel_shape.CORES) if words else CORES
    hits = kernel_scan.occurrences(data, needles, cores, begin, end)
    if not begin and words[-2:] == kernel_shape.URGENT[-2:] and bytes(data[:2]) in (b"3,", b"2,"):
        hits = chain([(-1, len(needles) - 1)], hits)  # before its first line stands no line end
    start, end, known, now = -1, -1, len(NEEDLES), _Open(b"")
    for at, needle in hits:
        at += needles[needle][:1] == b"\n"
        if at >= end:
            now.close(reader)
            start, raw = kernel_scan.line_at(data, at)
            now, end = _Open(raw), start + len(raw)
            if start < 0:  # too far into its line: only this is looked at, and not for sure
                now.taken, end = True, data.find(b"\n", at)
                end = end if end >= 0 else len(data)
                _take(reader, at, kernel_lost.in_a_long_line(data, at, needle) if needle < known else None)
        if now.taken or now.tried >> needle & 1:
            continue
        now.tried |= 1 << needle
        if needle >= known:
            now.caveat = True
        else:
            _try(reader, data, (start, end), needle, now)
    now.close(reader)


def _try(reader: _KernelReader, data: Data, place: Tuple[int, int], needle: int, now: _Open) -> None:
    """See whether one of a needle's rules takes the open line, or a part of it."""
    text, line = now.read()
    if line is None:
        now.taken = True
        return
    lost = kernel_lost.find(line, text, needle) if line.message.find(kernel_lost.XID, 1) > 0 else None
    trace = reader.trace
    if lost or _matched(reader, data, *place, needle, line):
        _take(reader, place[0], lost)
        now.taken = True
    elif not line.sure or needle in kernel_lost.STRONG:
        found = kernel_lost.find(line, text, needle)
        _take(reader, place[0], found)
        now.known = now.known or found is not None
    if reader.trace is not None and reader.trace is not trace:
        reader.trace.read(data, place[1] + 1)


def _matched(reader: _KernelReader, data: Data, start: int, end: int, needle: int, line: KernelLine) -> bool:
    """Has one of a needle's rules taken the message of a line?"""
    for rule, match in _matches(BY_NEEDLE[needle], line.message):
        if rule.name == "xids" and not match.group("rest") and end >= len(data):
            continue  # "Xid (...): 7" at the very end of a log that was cut off may have been a 79
        reader.add(start, line, rule, match, _below(rule.name, data, end))
        return True
    return False


def _below(name: str, data: Data, end: int) -> Tuple[Tuple[str, Any], ...]:
    """What the lines below it say of an event: the disk (block/blk-core.c)."""
    if name == "beyond_end":
        disk = _DISK.search(bytes(data[end : end + NAMED_WITHIN_BYTES]))
        return (("device", disk.group(1).decode()),) if disk else ()
    return ()


def _take(reader: _KernelReader, at: int, lost: Optional[kernel_lost.Lost]) -> None:
    if lost:
        reader.add(at, lost.line, lost.rule, lost.match)


def _one_line_end(data: Data) -> Data:
    """A log whose lines end in a carriage return alone, with line feeds."""
    head = bytes(data[:HEAD_BYTES])
    return bytes(data).replace(b"\r", b"\n") if b"\r" in head and b"\n" not in head else data


def _uncoloured(data: Data) -> Data:
    """A log without colours, which stand in the middle of words that are searched for."""
    head = bytes(data[:HEAD_BYTES])
    return _COLOUR.sub(b"", bytes(data)) if b"\x1b[" in head or b"^[[" in head else data


def _holds_a_kernel_line(data: Data) -> bool:
    """Does the kernel speak in it at all? A log of other programs says nothing about the kernel."""
    head, tail = bytes(data[:HEAD_BYTES]), bytes(data[max(0, len(data) - HEAD_BYTES) :])
    if any(_KERNELS_HEAD.search(part) for part in (head, tail)) or data.find(b" kernel: ") >= 0:
        return True
    for raw in islice(chain(head.splitlines(), tail.splitlines()), UNSTAMPED_LINES):
        line = kernel_lines.read(kernel_lines.text_of(raw[: kernel_scan.LINE_BYTES]))
        if line and _KERNEL_WORDS.match(kernel_heads.after_head(line.message)):
            return True
    return False


def _matches(rules: Sequence[EventPattern], message: str) -> Iterator[Tuple[EventPattern, Match[str]]]:
    """The rules that take a message, in their order."""
    for rule in rules:
        # A loop and not any(): a storm's lines are read by the hundred thousand, and this is their time.
        for hint in rule.hints:
            if hint in message:
                match = rule.pattern.match(message)
                if match:
                    yield rule, match
                break


def _must_be_a_log(data: Data) -> None:
    head, tail = bytes(data[:HEAD_BYTES]), bytes(data[max(0, len(data) - HEAD_BYTES) :])
    # A host that lost power leaves blocks of zero bytes in its log files: they are no reason to give up.
    sample = (head + tail).replace(b"\x00", b"")
    lines = [line for line in sample.splitlines() if line.strip() and not _META.match(line)]
    if not lines:
        raise ParseError("no entries: the kernel log is empty or could not be read")
    refusal = _REFUSED.search(head)
    if refusal and not _holds_a_kernel_line(data):
        raise ParseError(f"the log could not be read: {refusal.group(0).decode('utf-8', 'replace').strip()}")
    if _FIELDS.match(lines[0]):
        raise ParseError("a log in fields (verbose, export): wanted one line a message (journalctl -k -o short-iso)")
    odd = len(sample.translate(None, bytes(range(32, 127)) + b"\t\r\n\x1b"))
    if odd * 10 > len(sample) * 3 and not _is_text(sample):
        raise ParseError("binary data where a kernel log was expected")


def _is_text(sample: bytes) -> bool:
    text = sample.decode("utf-8", "replace")
    return text.count("\N{REPLACEMENT CHARACTER}") * 20 < len(text)


def _facts(reader: _KernelReader) -> Facts:
    facts: Facts = {name: [] for name in LISTS}
    reader.boots.settle(reader.boot)
    storms: List[Dict[str, Any]] = []
    kept: List[_SeenEvent] = []
    for (name, _, _), sort in reader.sorts.items():
        kept += sort.first
        kept += sort.last
        if sort.count > sort.kept:
            event = _event(sort.first[0], reader)
            storm = {"list": name, "boot": event["boot"], "count": sort.count, "kept": sort.kept}
            storms.append(
                {
                    **storm,
                    **{
                        part: event[part]
                        for part in ("code", "pci", "kind", "severity", "uncorrected")
                        if part in event
                    },
                }
            )
    for seen in sorted(kept, key=lambda one: one.at):
        event = _event(seen, reader)
        facts[seen.rule.name].append(event)
        if event.get("code") == 79 and seen.rule.name == "xids":
            facts["fallen_off_bus"].append({**{k: event[k] for k in ("time", "text", "boot", "pci")}, "xid": 79})
    facts["gpu_resets"] = [x for x in facts["xids"] if x["code"] == 154 and x.get("recovery_value") == 0]
    facts["counts"] = {name: reader.counts.get(name, 0) for name in LISTS}
    facts["counts"]["fallen_off_bus"] += sum(
        s.count for k, s in reader.sorts.items() if k[0] == "xids" and k[2][0] == "79"
    )
    facts.update(storms=storms, last_boot=reader.boot, gpu_uuids=reader.uuids, machines=reader.boots.machines)
    versions = [load["version"] for load in facts["driver_loads"] if "version" in load]
    if versions:
        facts["driver_version"] = versions[-1]
    return facts


def _unread(reader: _KernelReader) -> List[Dict[str, Any]]:
    """The lines of an error's shape that no rule knows: {text, shape, count, time, last_time, boot}, one a shape."""
    return [
        {**told, "boot": reader.boots.place(shape.line, shape.boot, shape.host_boot)}
        for shape, told in reader.ledger.facts()
    ]


def _ledger(reader: _KernelReader, data: Data) -> Dict[str, int]:
    """How many lines ended where."""
    ledger = reader.ledger
    return {
        "lines": _lines_in(data),
        "classed": sum(reader.counts.values()),
        "harmless": ledger.harmless,
        "unread": sum(shape.count for shape, _ in ledger.facts()),
    }


def _lines_in(data: Data) -> int:
    """How many lines a log has; of a very large one, by the lines at its end."""
    size = len(data) if len(data) <= kernel_shape.WHOLE_BYTES else SAMPLE_BYTES
    part = bytes(data[len(data) - size :])
    return (part.count(b"\n") + (part[-1:] != b"\n")) * len(data) // max(len(part), 1)


def _event(seen: _SeenEvent, reader: _KernelReader) -> Dict[str, Any]:
    boot = reader.boots.place(seen.line, seen.boot, seen.host_boot)
    event: Dict[str, Any] = {"time": seen.line.time, "text": seen.line.message[:TEXT_CHARS], "boot": boot}
    if seen.line.uptime is not None:
        event["uptime_s"] = seen.line.uptime
    if seen.line.assumed_year:
        event["year_assumed"] = True
    event.update(seen.rule.facts(seen.match))
    for name in ("rest", "sequence"):
        event.pop(name, None)
    event.update(seen.more)
    if seen.trace and seen.trace.driver:
        event["driver"] = seen.trace.driver
    return event


def _ends(data: Data) -> Tuple[List[KernelLine], List[KernelLine]]:
    """Stamped lines at the beginning and at the end of a log, in its own order."""
    head, tail = bytes(data[:HEAD_BYTES]), bytes(data[max(0, len(data) - HEAD_BYTES) :])
    last = kernel_order.sample(_stamped(reversed(tail.splitlines())))
    return kernel_order.sample(_stamped(head.splitlines())), last[::-1]


def _span(data: Data) -> Dict[str, Any]:
    """First and last stamp, and the form of the stamps."""
    head, tail = bytes(data[:HEAD_BYTES]), bytes(data[max(0, len(data) - HEAD_BYTES) :])
    first = next(_stamped(head.splitlines()), None)
    last = next(_stamped(reversed(tail.splitlines())), None)
    span: Dict[str, Any] = {
        "first_time": first.time if first else None,
        "last_time": last.time if last else None,
        "stamp_format": first.form if first else "none",
    }
    if first and first.assumed_year:
        span["year_assumed"] = True
    return span


def _stamped(lines: Any) -> Any:
    for raw in islice(filter(bytes.strip, lines), UNSTAMPED_LINES):
        line = kernel_lines.read(kernel_lines.text_of(raw[: kernel_scan.LINE_BYTES]))
        if line and line.time is not None:
            yield line
