"""lscpu -J (flat and nested), lscpu's plain text, or an object that already has the names of the facts."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .jsonhead import holds_json

FILES = ("cpuinfo.json",)

_NUMBERS = {
    "CPU(s)": "cpus",
    "Socket(s)": "sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "threads_per_core",
    "NUMA node(s)": "numa_nodes",
}
_WORDS = {"Model name": "model", "Architecture": "architecture", "Hypervisor vendor": "hypervisor"}
_LISTS = {"On-line CPU(s) list": "online_list", "Off-line CPU(s) list": "offline_list"}
_NAMES = frozenset(_NUMBERS.values())


def parse(files: Mapping[str, Data]) -> Facts:
    """{cpus, online, offline[], sockets, cores_per_socket, threads_per_core, model, architecture, numa_nodes}.

    cpus counts those present, online those in use; offline lists the numbers of the rest.
    """
    data = t.only(files)
    facts = _facts(_json_fields(v.json_object(data)) if holds_json(data) else _text_fields(data))
    if not {"cpus", "numa_nodes"} & set(facts):
        raise ParseError("no CPU(s) field: not lscpu's output")
    return facts


def _json_fields(document: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    rows = v.mappings(document.get("lscpu"))
    if not rows:
        yield from document.items()
    pending: List[Dict[str, Any]] = list(reversed(rows))
    while pending:
        row = pending.pop()
        yield str(row.get("field", "")).strip().rstrip(":"), row.get("data")
        pending += reversed(v.mappings(row.get("children")))


def _text_fields(data: Data) -> Iterator[Tuple[str, Any]]:
    for line in v.lines(data):
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _facts(fields: Iterator[Tuple[str, Any]]) -> Facts:
    facts: Facts = {}
    for name, value in fields:
        key = _NUMBERS.get(name) or (name if name in _NAMES else "")
        if key:
            number = v.integer(value)
            if number is not None:
                facts.setdefault(key, number)
        elif name in _WORDS or name in _WORDS.values():
            facts.setdefault(_WORDS.get(name, name), v.word(value))
        elif name in _LISTS:
            facts[_LISTS[name]] = v.cpu_list(str(value))
        elif name == "online" and v.integer(value) is not None:
            facts["online"] = v.integer(value)
        elif name == "offline" and isinstance(value, list):
            facts["offline"] = [number for number in map(v.integer, value[:8192]) if number is not None]
    return _count(facts)


def _count(facts: Facts) -> Facts:
    online, offline = facts.pop("online_list", None), facts.pop("offline_list", None)
    if online is not None:
        facts["online"] = len(online)
    if online is not None or offline is not None:
        facts["offline"] = offline or []
    return facts
