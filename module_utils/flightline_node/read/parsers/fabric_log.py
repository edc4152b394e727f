"""The logs of the Fabric Manager and of NVLSM, the subnet manager of NVLink 5: what went wrong since each last started.

Formats after the Fabric Manager user guide and published logs: "[date] [LEVEL] [tid n] text", the same in a journal or
without a level, and OpenSM's "date time [thread] 0x01 -> function: ERR 1234: text", where 0x01 is the level of errors.
"""

from __future__ import annotations

import re
from typing import Dict, Mapping, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from .lazy import Lazy
from .log_shape import Unread

FILES = ("fabric-log.txt", "fabricmanager.log", "nvlsm.log")

FABRIC_MANAGER, NVLSM = "fabricmanager.log", "nvlsm.log"
MAX_BYTES, MAX_ERRORS, MAX_CHARS = 2 << 20, 40, 300
_FILE = re.compile(r"# (fabricmanager\.log|nvlsm\.log|end)\s*$")
_LEVEL = Lazy(r"\[(ERROR|CRITICAL|FATAL)\]\s*(?:\[tid \d{1,9}\]\s*)?(.*)", re.IGNORECASE)
_LEVELLED = Lazy(r"\[(?:INFO|DEBUG|NOTICE)\]|\] 0x(?!01|8)[0-9a-fA-F]{2} -> ", re.IGNORECASE)
_OPENSM = Lazy(r"0x[08]1 -> \w{1,60}: (.*)|-> \w{1,60}: (ERR [0-9A-Fa-f]{1,6}: .*)")
"""0x80 is for the system's log as well: it tells of states and of what ends them alike."""
_PORT = Lazy(
    r"[Ss]witch (0x[0-9a-f]{1,16})\b.{0,160}?\bport (\d{1,4})\b.{0,60}? changed state from \w{1,12} to (\w{1,12})"
)
_NVLSM_REFUSED = Lazy(
    r"SM port is down|[Nn]o bound ports|SM port .{0,40}unknown|[Ff]ailed to (?:discover|find) (?:the )?SM"
    r"|[Cc]an't acquire SM's port"
    r"|[Dd]uplicated? .{0,16}GUID|RAN OUT OF LIDS|ERRORS DURING INITIALIZATION|[Cc]annot build (?:fwd|lid)|bind failed"
    r"|unable to (?:open|register|bind)|Exiting SM|[Dd]ead end path|[Cc]an(?:'t|not) find routing"
    r"|[Ii]nvalid topology|[Uu]nhealthy"
)
"""OpenSM, of which NVLSM is made: what leaves the fabric without routes, or without its manager."""
_REFUSED = Lazy(
    r"request to query NVSwitch device information .{0,60}failed|interface version .{1,60}(?:n't|not) match"
    r"|fail(?:ed|ure) (?:to|in) (?:configur|initiali[sz]|detect|open|train|discover|find (?!the GPU handle))"
    r".{0,99}(?:NVSwitch|NVLink|fabric|GPUs?\b)"
    r"|NVSwitches don't match with any supported"
    r"|(?:not all|some|no) (?:of the )?(?:NVSwitch|GPU)\w* .{0,60}(?:detected|found|initiali[sz]ed|configured)"
    r"|nvidia-fabricmanager\.service: (?:Control process ex|Main process exited, code=(?!exited, status=0)|Failed with)"
    r"|Failed to start .{0,40}fabric ?manager|nv-fabricmanager .{0,120}failed!"
    r"|fabric manager .{0,80}(?:exiting|aborting|terminat)"
    r"|config(?:uration)? file.{0,80}(?:invalid|not (?:found|valid)|missing|fail)"
    r"|(?:fail\w*|unable|can ?not|can't|could ?n[o']t) .{0,20}(?:open|read|parse|load|access).{0,40}config",
    re.IGNORECASE,
)
"""The switches were not set up, or the daemon ended: whoever prints it, at whatever level."""
_FATAL = Lazy(
    r"NVSwitch fatal error \d+.*|(?:access|trunk) link training failed.*|(?:access|trunk) port failure detected.*"
    r"|detected GPU NVL (?:non )?fatal error.*",
    re.IGNORECASE,
)
_OWN = Lazy(
    r"(?m)^\[[^\]]{8,40}\] \[[A-Z]+\] \[tid \d|\] 0x[0-9a-f]{2} -> \w"
    r"|[Ff]abric ?-?[Mm]anager|nvlsm|NVLSM|OpenSM|NVSwitch|NVLink"
)
_STARTED = Lazy(
    r"Fabric Manager version ([\d.]{3,20}) is running|Started .{0,40}fabric manager service"
    r"|OpenSM [\w.\-]{1,40}\s*$|NVLSM.{0,40}\bstart",
    re.IGNORECASE,
)
_CONFIGURED = Lazy(
    r"[Ss]uccessfully configured all the available (?:GPUs and )?NVSwitches|SUBNET UP|Entering MASTER state"
)
_BRIDGE = Lazy(r"CX Bridge device .{0,120} is (usable|not usable|unusable)", re.IGNORECASE)


def parse(files: Mapping[str, Data]) -> Facts:
    """{logs{file: {version, configured, errors[], refused[], fatal[]}}}: each since its last start.

    configured: the NVSwitches are set up; refused: the last line that says they are not, with no later one that they
    are; fatal: the last such error of a switch. A file that is not there has no entry. Raises ParseError for text that
    is no such log.
    """
    logs: Dict[str, Facts] = {}
    file, data = next(iter(files.items()))
    name, text, unread = NVLSM if file == NVLSM else FABRIC_MANAGER, t.decode(data[-MAX_BYTES:]), Unread(own=True)
    seen = bool(_OWN.search(text))
    for line in text.splitlines():
        heading = _FILE.match(line[:80])
        if heading:
            name, seen = heading.group(1), True
        elif line.strip():
            _line(line[:2000], logs.setdefault(name, {"configured": None, "errors": []}), unread)
    logs.pop("end", None)
    for log in logs.values():
        down = log.pop("down", {})
        if down:
            log.setdefault("fatal", list(down.values())[-1:])
    if not (seen or any(log["errors"] or log.get("fatal") or log["configured"] is not None for log in logs.values())):
        raise ParseError("no line of the Fabric Manager or of NVLSM in it")
    return {"logs": logs, **unread.facts()}


def _line(line: str, log: Facts, unread: Unread) -> None:
    port = _PORT.search(line)
    if port:
        down, key = log.setdefault("down", {}), port.group(1) + port.group(2)
        down.update({key: port.group(0)[:MAX_CHARS]} if port.group(3) == "DOWN" else {})
        down.pop(key if port.group(3) == "ACTIVE" else "", None)
        return
    started = _STARTED.search(line)
    if started:
        log.update(configured=False, errors=[])
        log.pop("refused", None)
        log.pop("fatal", None)
        log.pop("down", None)
        if started.group(1):
            log["version"] = started.group(1)
        return
    if _CONFIGURED.search(line):
        log["configured"] = True
        log.pop("refused", None)
        return
    kind, text = _trouble(line)
    if kind in ("refused", "fatal"):
        log[kind] = [text]
    elif not kind and not _LEVELLED.search(line):
        unread.note(line)
    elif kind and len(log["errors"]) < MAX_ERRORS and text not in log["errors"]:
        log["errors"].append(text)


def _trouble(line: str) -> Tuple[str, str]:
    for kind, pattern in (("fatal", _FATAL), ("refused", _REFUSED), ("refused", _NVLSM_REFUSED)):
        if pattern.search(line):
            level = _LEVEL.search(line)
            return kind, (level.group(2) if level else line).strip()[:MAX_CHARS]
    level, opensm, bridge = _LEVEL.search(line), _OPENSM.search(line), _BRIDGE.search(line)
    if level:
        return level.group(1), level.group(2).strip()[:MAX_CHARS]
    if opensm:
        return "ERR", (opensm.group(1) or opensm.group(2)).strip()[:MAX_CHARS]
    if bridge and bridge.group(1).lower() != "usable":
        return "ERR", bridge.group(0)[:MAX_CHARS]
    return "", ""
