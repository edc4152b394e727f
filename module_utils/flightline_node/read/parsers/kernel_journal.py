"""Kernel logs in JSON, as lines: journalctl -o json, dmesg -J, and collectors that wrap each line in an object.

Read: the journal's fields (json, json-seq, json-sse, json-pretty), util-linux' dmesg -J, Docker's json-file, Loki's and
CloudWatch's answers, and any object with a text under one of MESSAGES.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ...model import ParseError
from ..bundle import Data
from .kernel_heads import FIRST_USER_PRIORITY, KERNEL_PROGRAMS
from .lazy import Lazy

MESSAGES = ("message", "msg", "log", "line", "text", "short_message", "_raw", "stringvalue")
_PROGRAMS = ("syslog_identifier", "ident", "identifier", "program", "appname", "app_name", "_comm", "syslog.identifier")
_BEGINS = re.compile(rb"\s*(?:\x1e\s*|data: ?)?(?:\{\s*\"|\[\s*\{)")
_TAGGED = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}(?: [+-]\d{4})?[ \t]\S{1,100}[ \t]\{\"")
_HEAD_OF_TAGGED = re.compile(rb"(?m)^[^{\n]{10,160}(?=\{\")")
"""fluentd's own output: time, tag, object."""
_BETWEEN = Lazy(r"[\s,\x1e\]\[]*(?:data: ?)?")
MOST_BYTES = 256 << 20
"""Larger ones would need many times that in memory."""


def plain(data: Data) -> Data:
    """The log as plain lines, where it is JSON; else as it is. Raises ParseError for a very large one."""
    if _TAGGED.match(bytes(data[:300])):
        data = _HEAD_OF_TAGGED.sub(b"", bytes(data))
    if not _BEGINS.match(bytes(data[:200])):
        return data
    if len(data) > MOST_BYTES:
        raise ParseError(
            f"a log in JSON of {len(data) >> 20} MiB, wanted at most {MOST_BYTES >> 20}: give it one line a message "
            "(journalctl -k -o short-iso)"
        )
    made = _JournalLines()
    for value in _values(bytes(data).decode("utf-8", "replace")):
        made.take(value)
    return "\n".join(made.lines).encode("utf-8", "replace") + b"\n"


def _values(text: str) -> Iterator[Any]:
    """Each JSON value of the text; a line that is none, as it is."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        if at >= len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            yield text[at:end]
            at = end


class _JournalLines:
    """The lines made so far. A record of another program than the kernel leaves none."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self._boot: Optional[str] = None

    def take(self, value: Any, depth: int = 0) -> None:
        """Take one value, and what it holds."""
        if isinstance(value, str):
            self.lines.append(value)
        elif isinstance(value, dict) and not self._record(value) and depth < 8:
            for part in value.values():
                if isinstance(part, (dict, list)):
                    self.take(part, depth + 1)
        elif isinstance(value, list) and depth < 8:
            if len(value) == 2 and all(isinstance(part, str) for part in value):  # Loki: time in ns, line
                self.lines.append(value[1])
                return
            for part in value:
                if isinstance(part, (dict, list)):
                    self.take(part, depth + 1)

    def _record(self, value: Mapping[str, Any]) -> bool:
        fields = {str(key).lower(): part for key, part in value.items()}
        message = next((_text(fields[name]) for name in MESSAGES if _text(fields.get(name)) is not None), None)
        if message is None:
            return False
        head = _head(fields)
        if head is not None:
            self._note_boot(fields)
            self.lines += [head + line for line in message.rstrip("\n").split("\n")]
        return True

    def _note_boot(self, fields: Mapping[str, Any]) -> None:
        boot = fields.get("_boot_id")
        if isinstance(boot, str) and re.fullmatch("[0-9a-f]{32}", boot) and boot != self._boot:
            if self._boot is not None:
                self.lines.append(f"-- Boot {boot} --")
            self._boot = boot


def _text(value: Any) -> Optional[str]:
    """A text; journald gives one that is not UTF-8 as a list of bytes."""
    if isinstance(value, list) and value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _head(fields: Dict[str, Any]) -> Optional[str]:
    """What to put before the message: stamp and "kernel:"; nothing where it has a head; None: not the kernel's."""
    program = fields.get("_transport") or next((fields[name] for name in _PROGRAMS if fields.get(name)), None)
    priority = fields.get("pri")
    if program is not None and str(program) not in KERNEL_PROGRAMS:
        return None
    if (isinstance(priority, int) and priority >= FIRST_USER_PRIORITY) or fields.get("fac", "kern") != "kern":
        return None
    seconds = fields.get("time")
    if isinstance(seconds, (int, float)) and "pri" in fields:  # dmesg -J
        return f"[{seconds:12.6f}] "
    stamp = _wall(fields.get("__realtime_timestamp"))
    if program is None:
        return ""
    if str(fields.get("priority")) in ("0", "1", "2", "3"):
        stamp = f"<{fields['priority']}>{stamp}"
    uptime = fields.get("_source_monotonic_timestamp")
    since = f"[{int(str(uptime)) / 1e6:12.6f}] " if str(uptime).isdecimal() else ""
    return f"{stamp} node kernel: {since}" if stamp[-1:].isdigit() else f"kernel: {since}"


def _wall(microseconds: Any) -> str:
    """The time of a journal entry (microseconds since 1970), as ISO 8601."""
    if not str(microseconds).isdecimal() or len(str(microseconds)) > 17:
        return ""
    return datetime.fromtimestamp(int(microseconds) / 1e6, timezone.utc).isoformat(timespec="microseconds")
