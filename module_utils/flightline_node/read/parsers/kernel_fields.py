"""What a kernel line says: the facts in the match of its shape (shapes and sources: kernel_events.py)."""

from __future__ import annotations

import re
from typing import Any, Dict, Match, Optional

from .lazy import Lazy

Fields = Dict[str, Any]

PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_ANY_PCI = Lazy(r"(?:PCI:|GPU |at )?\b([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)\b")
_PID = Lazy(r"\bpid='?(\d{1,9}|<unknown>)'?")
_PROCESS = Lazy(r"\bname='?([^,]{1,200}?)'?(?=,|$)")
_NVLINK5 = Lazy(
    # From the start of a word only, and bounded: a long run of letters must not be tried from each of them.
    r"(?<![A-Za-z0-9_/])(?P<unit>[A-Z][A-Za-z0-9_/]{1,60}(?: [A-Z][a-z]+)?)"
    r" +(?P<word>(?i:Non-?fatal|Fatal)) +(?:XC ?)?(?P<xc>\d+)"
    r" +(?:i ?)?(?P<injected>\d+) +Link +(?P<link>-?\d+)(?: *[(\[](?P<words>[0-9a-fA-Fx ,]+))?"
)
_NVLINK5_WORD = Lazy(r"(?<![-\w])(?:(non-?)?fatal)\b", re.IGNORECASE)
_WORDS = Lazy(r"0x[0-9a-fA-F]{1,8}")
_BARE_WORDS = Lazy(r"\b(?:0x)?[0-9a-fA-F]{8}\b")
_LINK = Lazy(r"\b[Ll]ink (\d+)")
_RESET_FLAGS = Lazy(r"(?<![-\w])RST: *(\w+), *D-RST: *(\w+)")
_RECOVERY = Lazy(r"from (0x[0-9a-fA-F]+) \(([^)]*)\) to (0x[0-9a-fA-F]+) \(([^)]*)\)")
_SXID_WORD = Lazy(r", *(Fatal|Non-?fatal)\b", re.IGNORECASE)
_MCE_STATUS = Lazy(r"Machine Check(?: Exception)?: *[0-9a-f]* Bank \d+: ([0-9a-f]{16})", re.IGNORECASE)
_MCE_BAD = Lazy(
    # A deferred error is one that ECC could not correct and nobody has read yet: EDAC counts it as uncorrectable.
    r"uncorrected|severity: (?:fatal|recoverable)|Machine Check Exception|context corrupt|System Fatal error"
    r"|Deferred error|_STATUS\[[^|\]]{0,8}\|UE\b",
    re.I,
)
_MCE_GOOD = Lazy(r"\bcorrected|Machine check events logged|severity: info", re.IGNORECASE)
UNCORRECTED_BIT = 61
"""MCi_STATUS.UC, Intel SDM volume 3, machine-check architecture; the same bit on AMD."""


def xid(match: Match[str]) -> Fields:
    """Code, GPU, process and what the code's own words say."""
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
        word = _NVLINK5_WORD.search(rest)
        return {"fatal": not word.group(1)} if word else {}
    texts = match.group("words") or ""
    words = [int(word, 16) for word in _WORDS.findall(texts) or _BARE_WORDS.findall(texts)]
    found: Fields = {
        "unit": match.group("unit"),
        "fatal": match.group("word").lower() == "fatal",
        "xc": int(match.group("xc")),
        "injected": match.group("injected") != "0",
        "link": int(match.group("link")),
    }
    if words:
        found["intr_info"] = words[0]
    if len(words) > 1:
        found["error_status"] = words[1]
    return found


def sxid(match: Match[str]) -> Fields:
    """Code, switch, link, and the word Fatal or Non-fatal where the line has it."""
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


def fallen(match: Match[str]) -> Fields:
    """The GPU that the line names, if any."""
    return {"pci": pci_in(match.group(0))}


def mce(match: Match[str]) -> Fields:
    """uncorrected: True, False, or None for a line that only adds detail."""
    text, sequence = match.group(0), match.group("sequence")
    # drivers/firmware/efi/cper.c numbers the firmware's records since the boot.
    found = {"number": int(sequence[1:-1])} if sequence and len(sequence) < 12 else {}
    status = _MCE_STATUS.search(text)
    if status:
        return {**found, "uncorrected": bool(int(status.group(1), 16) >> UNCORRECTED_BIT & 1)}
    return {**found, "uncorrected": True if _MCE_BAD.search(text) else False if _MCE_GOOD.search(text) else None}


def edac(match: Match[str]) -> Fields:
    """The count is the hardware's own and may be 0 (Intel's decoders print it so): the line itself is one error."""
    return {"kind": match.group("kind"), "number": max(1, int(match.group("number")))}


def aer(match: Match[str]) -> Fields:
    """severity: corrected, nonfatal or fatal. Drivers and kernels spell it in several ways."""
    word = match.group("severity").lower()
    kind = "corrected" if word.startswith("correct") else "nonfatal" if "non" in word else "fatal"
    return {"severity": kind, "pci": match.group("pci").lower()}


def lower_pci(match: Match[str]) -> Fields:
    """The address in small letters."""
    return {"pci": match.group("pci").lower()}


def dpc(match: Match[str]) -> Fields:
    """The trigger reason (bits 1 and 2 of the status) says how bad; pci: the device that reported it, else the port."""
    port, source, reason = match.group("port").lower(), match.group("sender"), int(match.group("status"), 16) >> 1 & 3
    if not source and reason in (1, 2) and match.group("source"):
        number = int(match.group("source"), 16)
        source = f"{port.rsplit(':', 2)[0]}:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"
    return {"severity": "fatal" if reason == 2 else "nonfatal", "pci": (source or port).lower()}
