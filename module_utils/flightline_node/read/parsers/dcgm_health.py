"""dcgmi health -c: what DCGM's background watches saw. JSON (-j) and the text table.

Shapes after NVIDIA/DCGM 4.6, dcgmi/Health.cpp and DcgmiOutput.cpp: groups of entities, of systems, of messages.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .jsonhead import holds_json
from .lazy import Lazy

FILES = ("dcgm-health.json", "dcgm-health.txt")

OVERALL = "Overall Health"
_STATES = ("Healthy", "Warning", "Failure", "Internal error")
_TEXT_ROW = Lazy(r"\|([^|]{0,60})\|(.{0,400}?)\|?\s*$")
_WATCHES_OFF = Lazy(r"watches not enabled", re.IGNORECASE)
_SAID = Lazy(r"\s*(?:Error|dcgmi: ).{0,300}|.{0,60}(?:[Uu]nable to |not installed).{0,300}")
MAX_INCIDENTS, MAX_CHARS = 512, 600


def parse(files: Mapping[str, Data]) -> Facts:
    """{overall, incidents[]{entity, gpu, system, health, message}, watches, error}.

    overall: Healthy, Warning, Failure or Internal error, as printed. gpu: the index, when the entity is a GPU; entity:
    its kind and number otherwise. watches: False when none is set: nothing was seen. error: why DCGM gave no answer.
    Raises ParseError for another tool's output.
    """
    data = t.only(files)
    text = t.decode(data)
    facts = _json(data) if holds_json(data) and '"body"' in text else _table(text)
    if "overall" not in facts:
        said = next((line.strip() for line in text.splitlines()[:50] if _SAID.match(line)), "")
        if not said:
            raise ParseError("no health report of dcgmi in it")
        facts = {"incidents": [], "error": said[:MAX_CHARS]}
        if _WATCHES_OFF.search(said):
            facts["watches"] = False
    return facts


def _children(node: object) -> Iterator[Tuple[str, Dict[str, Any]]]:
    inner = node.get("children") if isinstance(node, dict) else None
    for name, child in inner.items() if isinstance(inner, dict) else ():
        if isinstance(child, dict):
            yield str(name)[:80], child


def _json(data: Data) -> Facts:
    body = v.json_object(data).get("body")
    if not isinstance(body, dict):
        raise ParseError("JSON without the body of a health report")
    overall = v.word((body.get(OVERALL) or {}).get("value")) if isinstance(body.get(OVERALL), dict) else None
    incidents: List[Facts] = []
    for group, section in body.items():
        for number, entity in _children(section):
            for errors_name, errors in _children(entity):
                if errors_name == "Errors":
                    incidents += [_incident(group, number, name, each) for name, each in _children(errors)]
    facts: Facts = {"incidents": incidents[:MAX_INCIDENTS]}
    return {**facts, "overall": overall} if overall else facts


def _incident(group: str, number: str, system: str, node: Dict[str, Any]) -> Facts:
    overflow = node.get("overflow")
    lines = [str(v.word(item) or "") for item in overflow] if isinstance(overflow, list) else []
    return _made(group, number, system, v.word(node.get("value")) or "", " ".join(lines))


def _made(group: str, number: str, system: str, health: str, message: str) -> Facts:
    where: Facts = {"entity": f"{group} {number}"[:60]}
    if group.upper() == "GPU" and number.isdecimal() and len(number) < 5:
        where = {"gpu": int(number)}
    return {**where, "system": system, "health": health, "message": " ".join(message.split())[:MAX_CHARS]}


def _table(text: str) -> Facts:
    """Rows nest by "->": a group, an entity, Errors, a system; rows without a name go on with the message."""
    facts: Facts = {"incidents": []}
    group, number = "", ""
    for line in text.splitlines():
        row = _TEXT_ROW.match(line.strip())
        if not row or line.lstrip().startswith(("+", "|=")):
            continue
        name, value = row.group(1).strip(" ->"), row.group(2).strip()
        if name == OVERALL:
            facts["overall"] = value
        elif name.isdecimal() and len(name) < 5:
            number = name
        elif name and value in _STATES and number and len(facts["incidents"]) < MAX_INCIDENTS:
            facts["incidents"].append(_made(group, number, name, value, ""))
        elif name and not value and name != "Errors":
            group, number = name, ""
        elif not name and value and facts["incidents"]:
            last = facts["incidents"][-1]
            last["message"] = f"{last['message']} {value}".strip()[:MAX_CHARS]
    return facts
