"""The logs of the Fabric Manager and of NVLSM, the subnet manager of NVLink 5: what went wrong since each last started.

Formats after the Fabric Manager user guide and published logs: "[date] [LEVEL] [tid n] text", and OpenSM's
"date time [thread] 0x01 -> function: ERR 1234: text".
"""

from __future__ import annotations

import re
from typing import Dict, Mapping, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from .lazy import Lazy

FILES = ("fabric-log.txt", "fabricmanager.log", "nvlsm.log")

FABRIC_MANAGER, NVLSM = "fabricmanager.log", "nvlsm.log"
MAX_BYTES, MAX_ERRORS, MAX_CHARS = 2 << 20, 40, 300
_FILE = re.compile(r"# (fabricmanager\.log|nvlsm\.log|end)\s*$")
_LEVEL = Lazy(r"\[(ERROR|CRITICAL|FATAL)\]\s*(?:\[tid \d{1,9}\]\s*)?(.*)", re.IGNORECASE)
_OPENSM = Lazy(r"-> \w{1,60}: (ERR [0-9A-Fa-f]{1,6}: .*)")
_STARTED = Lazy(
    r"Fabric Manager version ([\d.]{3,20}) is running|OpenSM [\w.\-]{1,40}\s*$|NVLSM.{0,40}\bstart", re.IGNORECASE
)
_CONFIGURED = Lazy(
    r"[Ss]uccessfully configured all the available (?:GPUs and )?NVSwitches|SUBNET UP|Entering MASTER state"
)
_BRIDGE = Lazy(r"CX Bridge device .{0,120} is (usable|not usable|unusable)", re.IGNORECASE)


def parse(files: Mapping[str, Data]) -> Facts:
    """{logs{file: {version, configured, errors[]}}}: each since its last start; configured: NVSwitches are set up.

    A file that is not there has no entry. Raises ParseError for text that is no such log.
    """
    data = t.only(files)
    text = t.decode(data[-MAX_BYTES:])
    logs: Dict[str, Facts] = {}
    name, seen = FABRIC_MANAGER, False
    for line in text.splitlines():
        heading = _FILE.match(line[:80])
        if heading:
            name, seen = heading.group(1), True
        elif line.strip():
            _line(line[:2000], logs.setdefault(name, {"configured": None, "errors": []}))
    logs.pop("end", None)
    if not seen and not any(
        log["errors"] or log["configured"] is not None or log.get("version") for log in logs.values()
    ):
        raise ParseError("no line of the Fabric Manager or of NVLSM in it")
    return {"logs": logs}


def _line(line: str, log: Facts) -> None:
    started = _STARTED.search(line)
    if started:
        log.update(configured=False, errors=[])
        if started.group(1):
            log["version"] = started.group(1)
        return
    if _CONFIGURED.search(line):
        log["configured"] = True
    kind, text = _trouble(line)
    if kind and len(log["errors"]) < MAX_ERRORS and text not in log["errors"]:
        log["errors"].append(text)


def _trouble(line: str) -> Tuple[str, str]:
    level, opensm, bridge = _LEVEL.search(line), _OPENSM.search(line), _BRIDGE.search(line)
    if level:
        return level.group(1), level.group(2).strip()[:MAX_CHARS]
    if opensm:
        return "ERR", opensm.group(1).strip()[:MAX_CHARS]
    if bridge and bridge.group(1).lower() != "usable":
        return "ERR", bridge.group(0)[:MAX_CHARS]
    return "", ""
