"""fi_info -p efa: the EFA devices libfabric offers. Reads the short and the verbose (-v) form."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import ranks
from . import text as t
from .lazy import Lazy
from .log_shape import Unread

FILES = ("fi-info.txt",)

MAX_BYTES = 4 << 20
"""The verbose form has some kilobytes for each of 64 endpoints."""

_ERROR = Lazy(r"fi_getinfo: ?(-?\d+.*)|(provider efa output empty list|error while loading shared.*)")
"""The second is libfabric's own warning (src/fabric.c), which other providers give on healthy nodes."""
_WARNING = Lazy(r"<warn> ?(.{1,200})")
MOST_WARNINGS = 8
_EFA = frozenset({"efa", "efa;ofi_rxr"})
"""libfabric 1.8 and 1.9 named the layer that makes EFA's reliable endpoints."""
_ENDPOINT = re.compile(r"-(?:rdm|dgrm)$")
_VERBOSE = {
    "fi_ep_attr": {"type": "type", "protocol": "protocol"},
    "fi_domain_attr": {"name": "domain"},
    "fi_link_attr": {"state": "link"},
    "fi_fabric_attr": {"name": "fabric", "prov_name": "provider", "prov_version": "version"},
}
LINK_DOWN = "FI_LINK_DOWN"
_SHORT = ("provider", "fabric", "domain", "version", "type", "protocol")


def _blocks(text: List[str]) -> List[Dict[str, str]]:
    """One dict per entry of the output. Unknown lines are left out."""
    blocks: List[Dict[str, str]] = []
    section: Optional[str] = None
    verbose = False
    for line in text:
        name, colon, value = line.strip().partition(":")
        if not colon:
            continue
        value = value.strip()
        if name == "fi_info" and not value:
            verbose, section = True, None
            blocks.append({})
        elif verbose:
            if not value and (name.startswith("fi_") or name == "nic"):
                section = name
            key = _VERBOSE.get(section or "", {}).get(name)
            if key and value:
                blocks[-1].setdefault(key, value)
        elif name == "provider":
            blocks.append({name: value})
        elif blocks and name in _SHORT:
            blocks[-1].setdefault(name, value)
    return blocks


def parse(files: Mapping[str, Data]) -> Facts:
    """{devices[], rdm_endpoints, error, fabrics[], provider_versions[], other_providers[], links_down[], warnings[]}.

    devices: EFA devices by name, '-rdm' and '-dgrm' taken off, each once although libfabric 2
    lists it under fabric efa and efa-direct. rdm_endpoints: domains with an FI_EP_RDM endpoint.
    error: what fi_getinfo said ('-61 (No data available)' in its own words), None when it
    succeeded. links_down[]: devices whose link the verbose form calls down.
    Layered providers (efa;ofi_rxd) and others (tcp) are not EFA endpoints. warnings: of libfabric, which say
    why there is no endpoint, when any were printed.
    Of several ranks' outputs in one file the worst counts: together they would hide what one of them lacks.
    Raises ParseError when neither entries nor an error were printed, or when cut short.
    """
    found = [_one(part) for part in ranks.apart(t.only(files))]
    return min(found, key=lambda one: (one["error"] is None, one["rdm_endpoints"], len(one["devices"])))


def _one(data: Data) -> Facts:
    if len(data) > MAX_BYTES:
        raise ParseError(f"{len(data)} bytes, fi_info prints no more than {MAX_BYTES}")
    text = list(ranks.lines(data))
    blocks = _blocks(text)
    errors = (_ERROR.search(line) for line in text if "fi_getinfo" in line or not blocks)
    said = (match.group(1) or (not blocks and match.group(2)) for match in errors if match)
    error = next((f"fi_getinfo: {why.strip()}" for why in said if why), None)
    unread = Unread()
    for line in text:
        if "fi_getinfo" not in line and "<warn>" not in line:
            unread.note(line, known_form=True)
    if not blocks and error is None:
        if any("fi_info" in line and "not found" in line for line in text[:20]):
            raise ParseError("fi_info is not installed (the EFA installer's full set has it)")
        raise ParseError(f"no fi_info entry: {next((line.strip() for line in text if line.strip()), '')[:120]!r}")
    if blocks and not ("provider" in blocks[-1] and "domain" in blocks[-1] and "type" in blocks[-1]):
        raise ParseError("cut short: the last entry has no endpoint type")
    efa = [block for block in blocks if block.get("provider") in _EFA and block.get("domain")]
    rdm = {block["domain"] for block in efa if block.get("type") == "FI_EP_RDM"}
    warned = (_WARNING.search(line) for line in text if "<warn>" in line)
    warnings = _distinct([match.group(1).strip() for match in warned if match])[:MOST_WARNINGS]
    facts: Facts = {
        "devices": _distinct([_ENDPOINT.sub("", block["domain"]) for block in efa]),
        "rdm_endpoints": len(rdm),
        "error": error,
        "fabrics": _distinct([block.get("fabric", "") for block in efa]),
        "provider_versions": _distinct([block.get("version", "") for block in efa]),
        "other_providers": _distinct([b["provider"] for b in blocks if b.get("provider", "efa") not in _EFA]),
    }
    down = _distinct([_ENDPOINT.sub("", block["domain"]) for block in efa if block.get("link") == LINK_DOWN])
    facts.update({"links_down": down} if down else {})
    facts.update({"warnings": warnings} if warnings else {})
    return {**facts, **unread.facts()}


def _distinct(texts: List[str]) -> List[str]:
    return list(dict.fromkeys(text for text in texts if text))
