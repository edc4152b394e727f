"""The ledger of kernel lines: which have an error's shape though no rule knows them, and which of those mean nothing.

Rules (kernel_events.py) know what they were written for. A line that none of them takes counts when it speaks of
failure, or was printed at priority err or worse. Two grades of words: what is a failure of anything (STRONG), and what
is one only where a part is named that training stands on (WEAK, PARTS). What healthy machines print is in
know/catalog/harmless.py.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from ...know.catalog.harmless import is_harmless
from . import kernel_lines
from .kernel_heads import APPLICATION_LEVEL, after_head
from .kernel_lines import KernelLine
from .lazy import Lazy

WORDS: Tuple[bytes, ...] = (
    b"fail", b"Fail", b"FAIL", b"rror", b"ERR", b"atal", b"FATAL", b" fault", b"Fault", b"FAULT", b"imeout",
    b"imed out", b"TIMEOUT", b" hung", b" hang", b"bort", b"orrupt", b" lost", b"Lost", b" dead", b"Dead",
    b"ecoverable", b"ncorrect", b"egrad", b"panic", b"Oops", b"BUG", b"halted", b"respon", b"iving up", b" stall",
    b"stuck", b"ockup", b"LOCKUP", b"rash", b"CRASH", b" died", b"llegal", b"nreachable", b"nable to", b"annot",
    b"an't ", b"ould not", b"nvalid", b"nexpected", b"efus", b"enied", b"eject", b"ismatch", b"xceed", b"verflow",
    b"xpired", b"issing", b"ancel", b"ouldn't ",
)  # fmt: skip
"""One of them is in every line of an error's shape: the fast search looks for nothing else."""

WHOLE_BYTES = 16 << 20
CHIEF: Tuple[bytes, ...] = (
    b"fail", b"Fail", b"FAIL", b"rror", b"ERR", b"atal", b"FATAL", b" fault", b"imeout", b"imed out", b"bort",
    b"orrupt", b" lost",
)  # fmt: skip
"""What is looked for in a log's beginning, where it is larger than WHOLE_BYTES: each word more costs it seconds."""

URGENT: Tuple[bytes, ...] = (
    b"<3>", b"<2>", b"<1>", b"<0>", b":err", b":crit", b":alert", b":emerg", b" err:", b".err ", b".crit ",
    b"\n3,", b"\n2,",
)  # fmt: skip
"""Heads of the kernel's priorities err and worse."""

CORES: Tuple[bytes, ...] = (b"ail",)
_PRIORITIES = re.compile(
    rb"(?m)^(?:[\w.-]{1,253}: )?(?:<\d>|\d,\d+,\d|kern *: *[a-z]{3,8} *:)"
    rb"| (?:kern|user)\.(?:err|crit|warn|notice|info) "
)


def words_for(head: bytes) -> Tuple[bytes, ...]:
    """What to search a log for that begins so: priorities cost time where no line has one."""
    return (*WORDS, *URGENT) if _PRIORITIES.search(head) else WORDS


_STRONG = Lazy(
    r"fail(?!-?over\b|-?safe)|error|_ERR_|\bfatal\b|(?<![a-z])fault|(?<![.\w])tim(?:ed|e)[ -]?out(?!=| set| @)"
    r"|\b(?:hung|hangs?)\b|abort|corrupt|\b(?:lost|dead|died|halted|stuck|oops|(?-i:BUG))\b|unrecover|uncorrect|degraded|\bpanic\b(?!=)"
    r"|(?:not|n't|no) respon|unrespon|(?:giving|gave) up|\bstall(?:s|ed)?\b|lockup|\bcrash(?:ed|es)?\b|\billegal\b"
    r"|unreachable",
    re.IGNORECASE,
)
_WEAK = Lazy(
    r"unable to|can(?:not|'t)\b|could(?: not|n't)|invalid|unexpected|refus|denied|reject|mismatch|exceed|overflow"
    r"|expired|missing|cancel",
    re.IGNORECASE,
)
_ABSENT = Lazy(r"\w\s*: (?:no|none|off|disabled)\s*$")
"""A device lists what it can do: what it has not is no failure."""
PARTS = Lazy(
    r"NVRM|nvidia|nvswitch|nvme|bnxt_|irdma|\b(?:efa|ena|md\d+)\b|rdmap|mlx5|infiniband|Lustre|LNet|k(?:efa|sock)lnd"
    r"|nfs: |BTRFS|EXT4|XFS|pci(?:eport)? [0-9a-f]{4}:|nf_conntrack"
)
_PART_FAILED = Lazy(
    # Of a ZFS pool and of a disk too: ata's error handling, and the words of its SAS host.
    r"(?:(?:SPLError: .{1,80}?|WARNING: )Pool|ata\d+(?:\.\d+)?(?=: .*(?:failed command|media error|error: \{))"
    r"|sas(?=: .*(?:scsi_recover|aborting))"
    r"|NVRM|nvidia(?:-nvswitch\d*|-nvlink|-uvm|_uvm)?|mlx[45]_(?:core|ib)|bnxt_(?:en|re)|irdma|efa|ena\d*"
    r"|(?:block )?nvme|md(?:/raid\S*|\d+)?|BTRFS|EXT4-fs|XFS|JBD2|infiniband|rdmap\w+|Lustre(?:Error)?|LNet(?:Error)?"
    r"|DMAR|AMD-Vi|arm-smmu\S*|pcieport)(?=[ :(])"
    r"(?=.{0,400}(?:fail|fatal|(?<![a-z])fault|\btim(?:ed|e)[ -]?out|uncorrect|unrecover|corrupt"
    r"|\b(?:hung|dead|died|lost|halted|stuck)\b"
    r"|abort|\berrors?\b|not respond|giving up|degraded))",
    re.IGNORECASE,
)
"""A part that training needs speaks itself, and its words leave no doubt."""
BOOT_S = 30.0
_HEARD_AT_BOOT = Lazy(
    r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]|"
    r"\b(?:mce|EDAC|BUG|Oops|panic|I/O error|CPU ?#?\d|[Mm]emory|[Ff]ile ?system)",
)
"""While it boots, a kernel finds out which parts of a PC a machine lacks: of a part that is no device on the bus and
none that training stands on, its complaints of these seconds say nothing."""
_NAMED = Lazy(r"\b(?:kernel|klogd|kmsg)(?:\[\d{1,9}\])?: (?:\[ *\d+\.\d+\] )?")
_HEAD_CHARS = 200
_PROGRAM = Lazy(r"(?:[\w.-]{1,64} )?[\w.:/@+-]{1,64}\[\d{1,9}\]: |neuron|NEURON|\w+ *: *Neuron")
"""A program's own words in the ring buffer; and the Neuron driver's, which the parser neuron_log reads."""
_NUMBERS = Lazy(
    r"0x[0-9a-f]+|\b[0-9a-f]{2,8}(?:[:-][0-9a-f]{2,4})+(?:\.[0-9a-f])?\b|\b(?=[a-f]*\d)[0-9a-f]{4,}\b|\d+",
    re.IGNORECASE,
)
_DIGITS = b"0123456789"
_STATUS, _BAR = b"0x000000", b"BAR "
"""Where the number itself decides: a status of the driver, the place that a PCI device did not get."""

MOST_SHAPES = 1000
TEXT_CHARS = 600
_NO_LINE = KernelLine("")


class Shape:
    """Lines of one boot that differ in their numbers alone. name: HARMLESS, ORDINARY, or what they have in common."""

    def __init__(self, name: str, line: KernelLine, boot: int, host_boot: int) -> None:
        self.name, self.line, self.boot, self.host_boot = name, line, boot, host_boot
        self.count = 0
        self.last = b""


class Ledger:
    """What became of the lines that no rule took."""

    def __init__(self) -> None:
        self._shapes: Dict[Tuple[int, bytes], Shape] = {}

    def note(self, raw: bytes, boot: int, of_host: Mapping[str, int]) -> None:
        """Take a line in which one of WORDS stands; of_host: how often each machine has booted."""
        key = (boot, raw if _STATUS in raw or _BAR in raw else raw.translate(None, _DIGITS))
        shape = self._shapes.get(key)
        if shape is None:
            line = kernel_lines.read(kernel_lines.text_of(raw))
            name = verdict(line) if line else ORDINARY
            line = line or _NO_LINE
            if len(self._shapes) >= MOST_SHAPES:
                key = (boot, name.encode() if name in (HARMLESS, ORDINARY) else b"others")
            shape = self._shapes.setdefault(key, Shape(name, line, boot, of_host.get(line.host, 0)))
        shape.count += 1
        shape.last = raw

    @property
    def harmless(self) -> int:
        """Lines that healthy machines print."""
        return sum(shape.count for shape in self._shapes.values() if shape.name == HARMLESS)

    def facts(self) -> List[Tuple[Shape, Dict[str, Any]]]:
        """Each shape that nothing explains, with what is told of it; its boot is the reader's to say."""
        found: Dict[Tuple[int, str], Tuple[Shape, Dict[str, Any]]] = {}
        for shape in self._shapes.values():
            if shape.name in (HARMLESS, ORDINARY):
                continue
            last = kernel_lines.read(kernel_lines.text_of(shape.last))
            old = found.get((shape.boot, shape.name), (shape, {"count": 0}))
            told: Dict[str, Any] = {
                "time": old[0].line.time,
                "text": old[0].line.message[:TEXT_CHARS],
                "shape": shape.name,
            }
            told.update({"part_failed": True} if _PART_FAILED.match(shape.line.message) else {})
            told.update(count=old[1]["count"] + shape.count, last_time=last.time if last else None)
            told.update({"year_assumed": True} if shape.line.assumed_year else {})
            found[(shape.boot, shape.name)] = (old[0], told)
        return list(found.values())


HARMLESS, ORDINARY = "harmless", "ordinary"


def verdict(line: KernelLine) -> str:
    """HARMLESS, ORDINARY, or the shape of a line that has an error's and that nothing explains."""
    message, urgent = line.message, line.urgent
    if not line.sure:  # its head may still stand before the message
        named = _NAMED.search(message, 0, _HEAD_CHARS)
        bare = message[named.end() :] if named else after_head(message)
        if _PROGRAM.match(bare) or is_harmless(bare):
            return ORDINARY
    if _PROGRAM.match(message) or not has_shape(message, urgent):
        return ORDINARY
    if APPLICATION_LEVEL.match(message) and not _PART_FAILED.match(message):
        return ORDINARY
    if is_harmless(message):
        return HARMLESS
    booting = not urgent and line.uptime is not None and line.uptime < BOOT_S
    return ORDINARY if booting and not _counts_at_boot(message) else shape_of(message)


def _counts_at_boot(message: str) -> bool:
    return PARTS.search(message) is not None or _HEARD_AT_BOOT.search(message) is not None


def has_shape(message: str, urgent: bool = False) -> bool:
    """Does the line look like an error? urgent: it was printed at priority err or worse."""
    if urgent:
        return True
    return (_STRONG.search(message) is not None or _is_weak(message)) and _ABSENT.search(message) is None


def speaks_of_failure(text: str) -> bool:
    """The same where a part is named already, so that the weak words are enough."""
    return _STRONG.search(text) is not None or _WEAK.search(text) is not None


def _is_weak(message: str) -> bool:
    return _WEAK.search(message) is not None and PARTS.search(message) is not None


def shape_of(message: str) -> str:
    """The line without its numbers and addresses."""
    return _NUMBERS.sub("#", message[:TEXT_CHARS])
