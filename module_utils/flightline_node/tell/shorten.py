"""Cut what a node says to what the control side takes (bounds.py), and say so: a record that is too long is refused."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping

from .. import bounds
from ..model import RANK, Status, as_status

LEFT_OUT = "more findings than a record takes"


def shorten(record: Dict[str, Any]) -> Dict[str, Any]:
    """The record within all bounds. No check loses its worst finding, so no verdict changes."""
    findings = [_finding(finding) for finding in _chosen(record["findings"], bounds.MAX_FINDINGS)]
    fitted = {**record, "findings": findings, "measures": _measures(record["measures"])}
    fitted["versions"] = {name: _cut(value, bounds.MAX_TEXT_CHARS) for name, value in record["versions"].items()}
    fitted["gpus"] = [_part(gpu) for gpu in record["gpus"][: bounds.MAX_PARTS]]
    fitted["probes"] = [
        {**probe, "note": _cut(probe.get("note") or "", bounds.MAX_TEXT_CHARS)}
        for probe in record["probes"][: bounds.MAX_PROBES]
    ]
    if _size(fitted) > bounds.MAX_RECORD_BYTES:
        fitted["findings"] = [_shortened(finding) for finding in findings]
    return fitted


def _size(record: Mapping[str, Any]) -> int:
    return len(json.dumps(record, default=str))


def _chosen(findings: List[Dict[str, Any]], most: int) -> List[Dict[str, Any]]:
    """All, or in their order the worst of every check first and then the worst of the rest."""
    if len(findings) <= most:
        return findings
    ranked = sorted(range(len(findings)), key=lambda place: -_weight(findings[place]["status"]))
    firsts: Dict[str, int] = {}
    for place in ranked:
        firsts.setdefault(findings[place]["check"], place)
    rest = [place for place in ranked if place not in set(firsts.values())]
    kept = sorted([*firsts.values(), *rest][:most])
    said = f"{len(findings) - len(kept)} {LEFT_OUT}"
    last = findings[kept[-1]]
    return [*(findings[place] for place in kept[:-1]), {**last, "message": f"{last['message']} ({said})"}]


def _weight(word: str) -> int:
    """Of a check's answers a PASS goes before an INFO: an INFO alone is no measurement."""
    status = as_status(word)
    return RANK[Status.INFO] if status is Status.PASS else RANK[Status.PASS] if status is Status.INFO else RANK[status]


def _finding(finding: Dict[str, Any]) -> Dict[str, Any]:
    fitted = {**finding, "message": _cut(finding["message"], bounds.MAX_MESSAGE_CHARS)}
    for name in ("measured", "expected"):
        if name in fitted:
            fitted[name] = _value(fitted[name])
    if "unit" in fitted:
        fitted["unit"] = _cut(fitted["unit"], bounds.MAX_WORD_CHARS)
    if "device" in fitted:
        fitted["device"] = _part(fitted["device"])
    if "evidence" in fitted:
        fitted["evidence"] = [_cut(line, bounds.MAX_EVIDENCE_CHARS) for line in fitted["evidence"]][
            : bounds.MAX_EVIDENCE
        ]
    return fitted


def _shortened(finding: Dict[str, Any]) -> Dict[str, Any]:
    """512 of these fit, whatever they say."""
    short = {**finding, "message": _cut(finding["message"], bounds.MAX_EVIDENCE_CHARS)}
    if "evidence" in short:
        short["evidence"] = ["left out, the record is too long: the bundle has it"]
    return short


def _value(value: Any) -> Any:
    """A measured or expected value: finite, and of a length that a person reads."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if abs(value) <= bounds.MAX_NUMBER else _cut(str(value), bounds.MAX_VALUE_CHARS)  # NaN is not
    if isinstance(value, str):
        return _cut(value, bounds.MAX_VALUE_CHARS)
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return _cut(str(value), bounds.MAX_VALUE_CHARS)
    return json.loads(text) if len(text) <= bounds.MAX_VALUE_CHARS else _cut(text, bounds.MAX_VALUE_CHARS)


def _part(device: Mapping[str, Any]) -> Dict[str, Any]:
    named = list(device.items())[: bounds.MAX_DEVICE_KEYS]
    return {
        name: value
        if value is None or isinstance(value, (bool, int, float))
        else _cut(str(value), bounds.MAX_NAME_CHARS)
        for name, value in named
    }


def _measures(measures: Mapping[str, Mapping[str, Any]]) -> Dict[str, Any]:
    chosen = list(measures.items())[: bounds.MAX_MEASURES]
    return {
        name: {"unit": measure["unit"], "values": dict(_numbers(measure["values"].items()))} for name, measure in chosen
    }


def _numbers(values: Iterable[Any]) -> List[Any]:
    finite = [
        (_cut(device, bounds.MAX_NAME_CHARS), value) for device, value in values if abs(value) <= bounds.MAX_NUMBER
    ]
    return finite[: bounds.MAX_VALUES]


def _cut(text: Any, most: int) -> str:
    said = str(text)
    if len(said) <= most:
        return said
    more = f" ... ({len(said)} characters)"
    return said[: most - len(more)] + more
