"""sysfs.json: EFA ports, CPU frequency policies, memory controllers and network interfaces, read by the probe."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import lnetctl, mdstat
from . import text as t
from . import values as v

FILES = ("sysfs.json",)

_NUMBERED = re.compile(r"\d{1,3}: ?(\S[^\n]{0,60})", re.ASCII)
_POLICY_WORDS = ("driver", "governor", "epp")


def parse(files: Mapping[str, Data]) -> Facts:
    """{efa_ports{device: {ports{n: {state phys_state rate}} gdr p2p}}, cpufreq[], edac{mc: {}}, net{name: {}}, ...}.

    Also clocksource{current available}, md[] (see mdstat), lnet{nets} (see lnetctl), boots[] (seconds since 1970).

    cpufreq: {driver governor epp policies}; edac: {mc_name ue_count ce_count ...}; net: {mtu driver
    operstate}; nvidia_taint: the nvidia module's taint flags. A section that the file lacks is absent.
    State words lose their number ('4: ACTIVE' is 'ACTIVE'); a number that is none keeps its text.
    """
    document = v.json_object(t.only(files))
    read = {
        "efa_ports": _efa_ports,
        "cpufreq": _cpufreq,
        "edac": _edac,
        "net": _net,
        "clocksource": _clocksource,
        "lnet": _lnet,
    }
    facts: Facts = {name: parse_section(document[name]) for name, parse_section in read.items() if name in document}
    if not facts:
        raise ParseError(f"no section of the reader in it, keys {sorted(map(str, document))[:8]}")
    if isinstance(document.get("boots"), list):
        facts["boots"] = sorted(number for number in map(v.integer, document["boots"][-64:]) if number is not None)
    if isinstance(document.get("mdstat"), str):
        facts["md"] = mdstat.arrays(document["mdstat"])
    taint = document.get("nvidia_taint")
    if isinstance(taint, str):
        facts["nvidia_taint"] = taint
    return facts


def _clocksource(section: object) -> Dict[str, Optional[str]]:
    if not isinstance(section, dict):
        raise ParseError("clocksource: wanted an object")
    return {name: v.word(section.get(name)) for name in ("current", "available")}


def _lnet(section: object) -> Dict[str, Any]:
    """{nets}; nets is None where the kernel's table could not be read."""
    text = section.get("nis") if isinstance(section, dict) else None
    return {"nets": lnetctl.table(text) if isinstance(text, str) else None}


def _objects(section: object, what: str) -> Dict[str, Dict[str, Any]]:
    """A mapping of names to objects. Raises ParseError for anything else."""
    if not isinstance(section, dict) or not all(isinstance(value, dict) for value in section.values()):
        raise ParseError(f"{what}: wanted an object of objects")
    return section


def _number(value: object) -> Any:
    """An integer; the text of what is none; None for null."""
    number = v.integer(value)
    return number if number is not None else v.word(value)


def _state(value: object) -> Optional[str]:
    word = v.word(value)
    match = _NUMBERED.fullmatch(word) if word else None
    return match.group(1) if match else word


def _efa_ports(section: object) -> Dict[str, Any]:
    devices: Dict[str, Any] = {}
    for name, device in _objects(section, "efa_ports").items():
        ports = {
            port: {key: _state(value) for key, value in values.items()}
            for port, values in _objects(device.get("ports"), f"ports of {name[:40]}").items()
        }
        devices[name] = {"ports": ports, **{key: v.word(device[key]) for key in ("gdr", "p2p") if key in device}}
    return devices


def _cpufreq(section: object) -> List[Dict[str, Any]]:
    if not isinstance(section, list):
        raise ParseError("cpufreq: wanted a list")
    return [
        {**{key: v.word(row.get(key)) for key in _POLICY_WORDS}, "policies": _number(row.get("policies"))}
        for row in v.mappings(section)
    ]


def _edac(section: object) -> Dict[str, Any]:
    return {
        name: {key: v.word(value) if key == "mc_name" else _number(value) for key, value in controller.items()}
        for name, controller in _objects(section, "edac").items()
    }


def _net(section: object) -> Dict[str, Any]:
    return {
        name: {key: _number(value) if key == "mtu" else v.word(value) for key, value in interface.items()}
        for name, interface in _objects(section, "net").items()
    }
