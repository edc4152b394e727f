"""The kernel lines that mean something: what to look for, how the line starts, what it says.

Every pattern is anchored at the start of the kernel's message, so that a line that only quotes
such words is not taken for one. Shapes after: NVIDIA Xid and fabric manager guides, the open GPU
kernel modules (nvswitch print macros, NVLink5 line of Xid 144-150), Linux 5.10 to 6.12 sources
(mm/oom_kill.c, kernel/watchdog.c, kernel/hung_task.c, block/blk-core.c, drivers/nvme/host, fs/ext4, fs/xfs,
drivers/edac, drivers/pci/pcie/aer.c, drivers/firmware/efi/cper.c), the ena and efa drivers, Lustre 2.15.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Dict, List, Match, NamedTuple, Optional, Tuple

Fields = Dict[str, Any]

PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_ANY_PCI = re.compile(r"(?:PCI:|GPU |at )?\b([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)\b")
_PID = re.compile(r"\bpid='?(\d{1,9}|<unknown>)'?")
_PROCESS = re.compile(r"\bname='?([^,]{1,200}?)'?(?=,|$)")
_NVLINK5 = re.compile(
    # From the start of a word only, and bounded: a long run of letters must not be tried from each of them.
    r"(?<![A-Za-z0-9_/])(?P<unit>[A-Z][A-Za-z0-9_/]{1,60}(?: [A-Z][a-z]+)?)"
    r" +(?P<word>Nonfatal|Non-fatal|Fatal) +XC ?(?P<xc>\d+)"
    r" +i ?(?P<injected>\d+) +Link +(?P<link>-?\d+)(?: *[(\[](?P<words>[0-9a-fA-Fx ,]+)[)\]])?"
)
_WORDS = re.compile(r"0x[0-9a-fA-F]{1,8}")
_LINK = re.compile(r"\b[Ll]ink (\d+)")
_RESET_FLAGS = re.compile(r"(?<![-\w])RST: *(\w+), *D-RST: *(\w+)")
_RECOVERY = re.compile(r"from (0x[0-9a-fA-F]+) \(([^)]*)\) to (0x[0-9a-fA-F]+) \(([^)]*)\)")
_SXID_WORD = re.compile(r", *(Fatal|Non-?fatal)\b", re.IGNORECASE)
_MCE_STATUS = re.compile(r"Machine Check(?: Exception)?: *[0-9a-f]* Bank \d+: ([0-9a-f]{16})", re.IGNORECASE)
_MCE_BAD = re.compile(r"uncorrected|severity: (?:fatal|recoverable)|Machine Check Exception|context corrupt", re.I)
_MCE_GOOD = re.compile(r"\bcorrected|Machine check events logged|severity: info", re.IGNORECASE)
UNCORRECTED_BIT = 61
"""MCi_STATUS.UC, Intel SDM volume 3, machine-check architecture; the same bit on AMD."""


@lru_cache(maxsize=None)
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


class Shape(NamedTuple):
    """A pattern compiled when first needed: a healthy log needs few of them, and each costs the node CPU time."""

    pattern: str
    flags: int

    def match(self, text: str) -> Optional[Match[str]]:
        """Match at the start of a message."""
        return _compiled(self.pattern, self.flags).match(text)


@dataclass(frozen=True)
class Rule:
    """One event: the list it goes to, its needles, its shape, and which groups tell events apart.

    `hints`: one of them is in every such message; asked first, because a storm of other lines with the same
    needle must not cost a match each. `fields` turns the match into facts; an empty list name means that the
    line only names something for the lines after it (see kernel.py).
    """

    name: str
    needles: Tuple[bytes, ...]
    pattern: Shape
    key: Tuple[str, ...] = ()
    fields: Optional[Callable[[Match[str]], Fields]] = None
    extra: Tuple[Tuple[str, str], ...] = ()
    hints: Tuple[str, ...] = ("",)

    def facts(self, match: Match[str]) -> Fields:
        """What the line says, beside its time and text."""
        found: Fields = dict(self.extra)
        found.update((name, value) for name, value in match.groupdict().items() if value is not None)
        if self.fields:
            found.update(self.fields(match))
        return found


def _rx(pattern: str, flags: int = 0) -> Shape:
    return Shape(pattern.replace("{PCI}", PCI), flags)


def _xid(match: Match[str]) -> Fields:
    rest = match.group("rest")
    found: Fields = {"code": int(match.group("code")), "pci": match.group("pci").lower(), "detail": rest.strip(" ,")}
    pid = _PID.search(rest)
    if pid:
        found["pid"] = int(pid.group(1)) if pid.group(1).isdecimal() else None
    process = _PROCESS.search(rest)
    if process:
        found["process"] = None if process.group(1) == "<unknown>" else process.group(1)
    for name in ("gpu_instance", "compute_instance"):
        if match.group(name):
            found[name] = match.group(name)
    found.update(_xid_detail(found["code"], rest))
    found.pop("rest", None)
    return found


def _xid_detail(code: int, rest: str) -> Fields:
    if 144 <= code <= 150:
        return _nvlink5(rest)
    if code == 74:
        link = _LINK.search(rest)
        return {"registers": _WORDS.findall(rest), **({"link": int(link.group(1))} if link else {})}
    if code in (94, 95):
        flags = _RESET_FLAGS.search(rest)
        return {"reset_flag": flags.group(1), "drain_reset_flag": flags.group(2)} if flags else {}
    if code == 154:
        action = _RECOVERY.search(rest)
        return {"recovery_action": action.group(4), "recovery_value": int(action.group(3), 16)} if action else {}
    return {}


def _nvlink5(rest: str) -> Fields:
    match = _NVLINK5.search(rest)
    if not match:
        return {}
    words = [int(word, 16) for word in _WORDS.findall(match.group("words") or "")]
    found: Fields = {
        "unit": match.group("unit"),
        "fatal": match.group("word") == "Fatal",
        "xc": int(match.group("xc")),
        "injected": match.group("injected") != "0",
        "link": int(match.group("link")),
    }
    if words:
        found["intr_info"] = words[0]
    if len(words) > 1:
        found["error_status"] = words[1]
    return found


def _sxid(match: Match[str]) -> Fields:
    rest = match.group("rest")
    word, link = _SXID_WORD.match(rest), _LINK.search(rest)
    return {
        "code": int(match.group("code")),
        "pci": match.group("pci").lower(),
        "switch": int(match.group("switch")),
        "fatal": None if not word else word.group(1).lower() == "fatal",
        "link": int(link.group(1)) if link else None,
        "detail": rest.strip(" ,"),
    }


def pci_in(text: str) -> Optional[str]:
    """The PCI address a message names, in lower case, or None."""
    match = _ANY_PCI.search(text)
    return match.group(1).lower() if match else None


def _fallen(match: Match[str]) -> Fields:
    return {"pci": pci_in(match.group(0))}


def _mce(match: Match[str]) -> Fields:
    """uncorrected: True, False, or None for a line that only adds detail."""
    text = match.group(0)
    status = _MCE_STATUS.search(text)
    if status:
        return {"uncorrected": bool(int(status.group(1), 16) >> UNCORRECTED_BIT & 1)}
    return {"uncorrected": True if _MCE_BAD.search(text) else False if _MCE_GOOD.search(text) else None}


def _edac(match: Match[str]) -> Fields:
    return {"kind": match.group("kind"), "number": int(match.group("number"))}


def _aer(match: Match[str]) -> Fields:
    """severity: corrected, nonfatal or fatal. Drivers and kernels spell it in several ways."""
    word = match.group("severity").lower()
    kind = "corrected" if word.startswith("correct") else "nonfatal" if "non" in word else "fatal"
    return {"severity": kind, "pci": match.group("pci").lower()}


def _lower_pci(match: Match[str]) -> Fields:
    return {"pci": match.group("pci").lower()}


_NVRM = (b"NVRM: ",)
_SXID = (b": SXid (",)

_SEVERITY = r"(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able)(?: \((?:Non-)?Fatal\))?|(?:Non-)?Fatal)"


def _driver(kind: str, pattern: str, *hints: str) -> Rule:
    shape = _rx("NVRM:.*?(?:" + pattern + ")")
    return Rule("nvidia_driver", _NVRM, shape, (), _fallen, (("kind", kind),), hints or (pattern,))


RULES: Tuple[Rule, ...] = (
    Rule(
        "xids",
        _NVRM,
        _rx(
            r"NVRM: Xid \((?:PCI:)?(?P<pci>{PCI})(?:[ ,]+GPU-I:(?P<gpu_instance>\w{1,8}))?"
            r"(?:[ ,]+GPU-CI:(?P<compute_instance>\w{1,8}))?[^()]{0,60}\) ?: *(?P<code>\d{1,5})\b(?P<rest>.*)",
            re.IGNORECASE,
        ),
        ("code", "pci"),
        _xid,
    ),
    Rule("unread_xids", _NVRM, _rx(r"NVRM: Xid \(")),
    Rule(
        "sxids",
        _SXID,
        _rx(
            r"nvidia-nvswitch(?P<switch>\d{1,4}): SXid \((?:PCI:)?(?P<pci>{PCI})\): *(?P<code>\d{1,6})\b(?P<rest>.*)",
            re.I,
        ),
        ("code", "pci"),
        _sxid,
    ),
    Rule("unread_sxids", _SXID, _rx(r"nvidia-nvswitch\d*: SXid \(")),
    Rule("fallen_off_bus", _NVRM, _rx(r"NVRM:.*(?:fallen off|GPU lost from) the bus"), (), _fallen, (), ("the bus",)),
    Rule("fallen_off_bus", (b"GPU has fallen off the bus",), _rx(r"nvidia.*GPU has fallen off the bus"), (), _fallen),
    Rule(
        "gpu_uuids",
        _NVRM,
        _rx(r"NVRM: GPU at PCI:(?P<pci>{PCI}): (?P<uuid>GPU-[0-9a-fA-F-]{36})"),
        ("pci",),
        _lower_pci,
    ),
    Rule("", _NVRM, _rx(r"NVRM: The NVIDIA GPU (?P<pci>{PCI})"), ()),
    Rule(
        "driver_loads",
        _NVRM,
        _rx(r"NVRM: loading NVIDIA UNIX .*Kernel Module(?: for \S+)?  ?(?P<version>\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"),
    ),
    _driver(
        "init_failed", "RmInitAdapter failed|rm_init_adapter failed", "RmInitAdapter failed", "rm_init_adapter failed"
    ),
    _driver("api_mismatch", "API mismatch"),
    _driver(
        "probe_failed",
        "routine failed|were initialized|No NVIDIA (?:GPU|devices|graphics adapters?) (?:found|probed)",
        "routine failed",
        "were initialized",
        "No NVIDIA ",
    ),
    _driver("driver_conflict", "probe routine was not called"),
    _driver("bar_invalid", "assigned to your NVIDIA device is invalid"),
    _driver("uvm_fatal", "uvm encountered global fatal error"),
    _driver("gpu_is_lost", "NV_ERR_GPU_IS_LOST"),
    Rule(
        "nvidia_driver",
        (b"device inaccessible",),
        _rx(r"nvidia {PCI}: Unable to change power state .{1,40}device inaccessible"),
        (),
        _fallen,
        (("kind", "gpu_is_lost"),),
    ),
    _driver("gsp", r"(?i:GSP).{0,80}?(?:[Tt]imeout|TIMEOUT|[Ff]ail|heartbeat|crash)", "GSP", "gsp", "Gsp"),
    Rule(
        "oom",
        (b"Killed process ",),
        _rx(
            r"(?:(?P<cgroup>Memory cgroup )?[Oo]ut of memory(?: \([^)]*\))?: )?"
            r"Killed process (?P<pid>\d{1,9}),? \((?P<process>[^)]{0,64})\)"
        ),
        ("process",),
        lambda match: {"pid": int(match.group("pid")), "cgroup": match.group("cgroup") is not None},
    ),
    Rule(
        "soft_lockup",
        (b"BUG: ",),
        _rx(r"(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#(?P<cpu>\d{1,5}) stuck for (?P<seconds>\d{1,9})s!"),
        (),
        lambda match: {"cpu": int(match.group("cpu")), "seconds": int(match.group("seconds"))},
    ),
    Rule("hard_lockup", (b" LOCKUP on cpu",), _rx(r"(?:NMI )?(?:watchdog: )?Watchdog detected hard LOCKUP on cpu")),
    Rule(
        "kernel_bug",
        (b"BUG: ",),
        _rx(r"BUG: (?P<kind>unable to handle|kernel NULL pointer|Bad page|Bad rss|workqueue lockup)"),
    ),
    Rule(
        "hung_task",
        (b"INFO: ",),
        _rx(
            r"INFO: task (?P<process>.{1,64}?):(?P<pid>\d{1,9}) (?:<[^>]*> )?"
            r"blocked for more than (?P<seconds>\d{1,9}) seconds"
        ),
        ("process",),
        lambda match: {"pid": int(match.group("pid")), "seconds": int(match.group("seconds"))},
    ),
    Rule("rcu_stall", (b"INFO: ",), _rx(r"(?:rcu: )?INFO: rcu\w* (?:self-)?detected .*stall")),
    Rule(
        "nvme_timeout",
        (b" QID ",),
        _rx(r"nvme (?P<device>nvme\d+): I/O .{0,80}?QID \d+ timeout(?:, (?P<outcome>.{0,60}))?"),
        ("device",),
    ),
    Rule(
        "nvme_down",
        (b": controller is down; will reset", b"Removing after probe failure"),
        _rx(r"nvme (?P<device>nvme\d+): (?:controller is down; will reset|Removing after probe failure)"),
        ("device",),
    ),
    Rule(
        "io_error",
        (b"I/O error", b"critical medium error"),
        _rx(
            r"(?:blk_update_request: |print_req_error: )?(?:Buffer )?(?:I/O|critical medium) error,? "
            r"(?:on )?dev(?:ice)? (?P<device>[\w!-]{1,32}),(?P<what>.{0,100})"
        ),
        ("device",),
    ),
    Rule(
        "fs_error",
        (b"I/O error", b"EXT4-fs error", b"Shutting down filesystem", b"Filesystem has been shut down"),
        _rx(
            r"(?:EXT4-fs error \(device (?P<device>[\w-]{1,32})\)|XFS \((?P<volume>[\w-]{1,32})\): .*?"
            r"(?:I/O error|[Ss]hutting down filesystem|Filesystem has been shut down))",
            re.IGNORECASE,
        ),
        ("device", "volume"),
    ),
    Rule(
        "readonly_remount",
        (b"Remounting filesystem read-only",),
        _rx(
            r"(?:[\w-]{1,16} )?\((?:device )?(?P<device>[\w-]{1,32})[^)]{0,40}\).{0,80}?Remounting filesystem read-only"
        ),
        ("device",),
    ),
    Rule("", (b"Error records from previous boot",), _rx(r"BERT: Error records from previous boot")),
    Rule("mce", (b"[Hardware Error]",), _rx(r"(?:mce: |BERT: )?(?P<sequence>\{\d+\})?\[Hardware Error\].*"), (), _mce),
    Rule(
        "edac",
        (b"EDAC MC",),
        _rx(r"EDAC (?P<controller>MC\d+): (?P<number>\d{1,9}) (?P<kind>CE|UE)\b"),
        ("controller", "kind"),
        _edac,
    ),
    Rule(
        "aer",
        (b"PCIe Bus Error: ",),
        _rx(r"(?P<driver>\S{1,40}) (?P<pci>{PCI}): (?:AER: )?PCIe Bus Error: severity=" + _SEVERITY),
        ("severity", "pci"),
        _aer,
        (("shape", "detail"),),
    ),
    Rule(
        "aer",
        (b" error received", b" error message received", b" errors received"),
        _rx(
            r"(?P<driver>\S{1,40}) {PCI}: AER: (?:Multiple )?" + _SEVERITY + r" error(?:s)? (?:message )?received"
            r"(?:: | from )(?P<pci>{PCI})"
        ),
        ("severity", "pci"),
        _aer,
        (("shape", "report"),),
    ),
    Rule(
        "lustre",
        (b"LustreError", b"Lustre: "),
        _rx(r"Lustre(?:Error)?: .*This client was evicted"),
        (),
        None,
        (("kind", "evicted"),),
    ),
    Rule(
        "lustre",
        (b"LustreError", b"Lustre: "),
        _rx(r"Lustre(?:Error)?: .*Connection to .* was lost"),
        (),
        None,
        (("kind", "lost"),),
    ),
    Rule("lustre", (b"Lustre: ",), _rx(r"Lustre: .*Connection restored to"), (), None, (("kind", "restored"),)),
    Rule(
        "network_reset",
        (b"Keep alive watchdog timeout", b"NETDEV WATCHDOG: "),
        _rx(
            r"(?:(?P<driver>ena|efa) (?P<pci>{PCI})\S*(?: \S+)?: .*watchdog timeout"
            r"|NETDEV WATCHDOG: (?P<device>\S{1,32}))"
        ),
        ("driver", "pci", "device"),
    ),
    Rule("boots", (b"Linux version ",), _rx(r"Linux version (?P<kernel>\S{1,100})")),
    Rule("boots", (b"-- Boot ",), _rx(r"-- Boot [0-9a-f]{32}\b")),
)

CORES: Tuple[bytes, ...] = (b"rror",)
"""What many needles have in common: see kernel_scan."""

NEEDLES: Tuple[bytes, ...] = tuple(dict.fromkeys(needle for rule in RULES for needle in rule.needles))
BY_NEEDLE: Tuple[Tuple[Rule, ...], ...] = tuple(
    tuple(rule for rule in RULES if needle in rule.needles) for needle in NEEDLES
)
LISTS: List[str] = list(dict.fromkeys(rule.name for rule in RULES if rule.name and rule.name != "gpu_uuids"))
