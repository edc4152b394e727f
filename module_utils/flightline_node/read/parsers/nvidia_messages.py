"""What every output of nvidia-smi shares: its size, and its error and warning lines.

The tool prints these lines on stdout or stderr, at any point, in every sub-command. The
texts are those of NVML's error strings and of nvidia-smi itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional

from ...model import ParseError
from ..bundle import Data
from . import text as t
from .lazy import Lazy

Message = Dict[str, Any]
"""{pci_bus_id: as printed or None, text: the line}."""

# Eight GPUs print under 1 MB and 30,000 lines; anything far above is another file.
MAX_BYTES = 16 << 20
MAX_LINES = 200_000
MAX_MESSAGES = 256
MAX_TEXT = 500

_ERROR = re.compile(
    r"(?:nvidia-smi (?:has failed|couldn't )|failed to |unable to |no (?:nvlink )?devices (?:were )?found|nvml: "
    r"|nvml error|error[ :]|driver not loaded|driver/library version mismatch|unknown error|insufficient permissions"
    r"|function not found|gpu access blocked|gpu.{0,60}(?:is lost|requires re(?:set|start)|has fallen off the bus))",
    re.IGNORECASE,
)
_WARNING = re.compile(r"warning[: ]", re.IGNORECASE)
_CONTINUED = Lazy(
    r"(?:nvml library version|make sure that|reboot the system|please |this can also|this may be|also )", re.IGNORECASE
)
_PCI = Lazy(r"(?<![0-9a-fA-F])([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])")
# nvmlErrorString of every nvmlReturn_t that can stand for a value; "Not Supported", "Not Found" and
# "Requested functionality has been deprecated" say that there is no value.
_VALUE_ERRORS = frozenset(
    {
        "err!",
        "error",
        "unknown error",
        "insufficient permissions",
        "function not found",
        "nvml shared library not found",
        "driver not loaded",
        "uninitialized",
        "timeout",
        "corrupted inforom",
        "insufficient power",
        "insufficient external power",
        "interrupt request issue",
        "system is not in ready state",
        "invalid state",
        "invalid argument",
        "in use by another client",
        "insufficient memory",
        "insufficient resources",
        "insufficient size",
        "no data",
        "argument version mismatch",
        "the operating system has blocked the request.",
        "rm has detected an nvml/rm version mismatch.",
    }
)
_DEVICE_GONE = ("gpu is lost", "requires reset", "requires restart", "fallen off the bus")


@dataclass
class Messages:
    """The error and warning lines of an output, in order, each text once."""

    errors: List[Message] = field(default_factory=list)
    warnings: List[Message] = field(default_factory=list)
    _open: Optional[Message] = None

    def read(self, line: str) -> bool:
        """Keep the line if it is a message of the tool. True if it was."""
        line = line.strip()[:MAX_TEXT]
        if not line:
            return False
        if self._open is not None and _CONTINUED.match(line):
            self._open["text"] = (self._open["text"] + " " + line)[:MAX_TEXT]
            return True
        self._open = None
        if _WARNING.match(line):
            _add(self.warnings, line)
        elif _ERROR.match(line):
            self._open = _add(self.errors, line)
        else:
            return False
        return True

    def told(self, text: str) -> None:
        """Keep every line: it stands where the tool prints nothing but errors."""
        for line in text.splitlines():
            if line.strip() and not self.read(line):
                self._open = _add(self.errors, line.strip()[:MAX_TEXT])

    def read_all(self, lines: Iterable[str]) -> Messages:
        """Keep the messages among the lines."""
        for line in lines:
            self.read(line)
        return self


def decode(data: Data) -> str:
    """Text of an output of nvidia-smi. Raises ParseError when empty, binary or too large to be one."""
    if len(data) > MAX_BYTES:
        raise ParseError(f"larger than {MAX_BYTES >> 20} MiB: not the output of nvidia-smi")
    text = t.decode(data)
    if len(text.splitlines()) > MAX_LINES:
        raise ParseError(f"more than {MAX_LINES} lines: not the output of nvidia-smi")
    return text


def _add(messages: List[Message], text: str) -> Optional[Message]:
    if len(messages) >= MAX_MESSAGES or any(message["text"] == text for message in messages):
        return None
    match = _PCI.search(text)
    message: Message = {"pci_bus_id": match.group(1) if match else None, "text": text}
    messages.append(message)
    return message


def is_error_value(value: str) -> bool:
    """True for a field value that is an error text (ERR!, [Unknown Error], GPU is lost)."""
    word = value.strip().strip("[]").lower()
    return word in _VALUE_ERRORS or device_gone(word)


def device_gone(value: str) -> bool:
    """True for a text about the device itself, not about one field of it."""
    word = value.lower()
    return any(text in word for text in _DEVICE_GONE)
