"""neuron-monitor: one or more of the reports that it streams, a JSON object a line.

Format: AWS Neuron documentation, "Neuron Monitor User Guide". Whether its ECC counts are totals or those of the
period is not said there: the largest of several reports is kept.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("neuron-monitor.json",)
LATER = True

MAX_REPORTS, MAX_DEVICES, MAX_RUNTIMES, MAX_ERRORS, MAX_WORD_CHARS = 10_000, 256, 512, 20, 200
ECC = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected")
_SUMMARIES = ("error_summary", "execution_summary")


def parse(files: Mapping[str, Data]) -> Facts:
    """{reports, devices[]{index, ECC counts}, hardware{}, instance_type, runtimes[]{pid tag errors{} executions{}}}.

    errors[]{where text}: every error that the tool itself reports, in the words it has. hardware: {type count
    memory_bytes cores_per_device lnc}. A count that is not a number stays as it is. Raises ParseError when no report
    of it can be read.
    """
    reports = _reports(t.only(files))
    facts: Facts = {"reports": len(reports), "devices": [], "runtimes": [], "errors": [], "hardware": {}}
    devices: Dict[int, Facts] = {}
    runtimes: Dict[str, Facts] = {}
    for report in reports:
        system = _object(report.get("system_data"))
        counters = _object(system.get("neuron_hw_counters"))
        _note(facts, "neuron_hw_counters", counters)
        for row in v.mappings(counters.get("neuron_devices"))[:MAX_DEVICES]:
            _count(devices, row)
        for row in v.mappings(report.get("neuron_runtime_data"))[:MAX_RUNTIMES]:
            _runtime(facts, runtimes, row)
        _hardware(facts, _object(report.get("neuron_hardware_info")))
        facts["instance_type"] = v.word(_object(report.get("instance_info")).get("instance_type"))
    facts["devices"] = [devices[index] for index in sorted(devices)]
    facts["runtimes"] = list(runtimes.values())
    return facts


def _reports(data: Data) -> List[Dict[str, Any]]:
    """The reports of a stream; a last line that was cut off is passed over when one before it is whole."""
    found: List[Dict[str, Any]] = []
    if len(data) > v.MAX_JSON_BYTES:
        raise ParseError(f"{len(data)} bytes, wanted a few reports of at most {v.MAX_JSON_BYTES} bytes in all")
    for line in t.decode(data).splitlines()[:MAX_REPORTS]:
        try:
            row = json.loads(line) if line.lstrip().startswith("{") and line.rstrip().endswith("}") else None
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict) and _is_report(row):
            found.append(row)
    if not found:
        whole = v.json_object(data)
        if not _is_report(whole):
            raise ParseError("neither system_data nor neuron_hardware_info in it: not a report of neuron-monitor")
        found.append(whole)
    return found


def _is_report(row: Dict[str, Any]) -> bool:
    return "system_data" in row or "neuron_hardware_info" in row or "neuron_runtime_data" in row


def _object(value: object) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _note(facts: Facts, where: str, part: Dict[str, Any]) -> None:
    text = v.word(part.get("error"))
    if text and len(facts["errors"]) < MAX_ERRORS:
        facts["errors"].append({"where": where, "text": text[:MAX_WORD_CHARS]})


def _number(value: object) -> Any:
    """A count, or the text that stands in its place."""
    number = v.integer(value)
    return number if number is not None else str(value)[:MAX_WORD_CHARS] if value is not None else None


def _count(devices: Dict[int, Facts], row: Dict[str, Any]) -> None:
    index = v.integer(row.get("neuron_device_index"))
    if index is None or not 0 <= index < MAX_DEVICES:
        return
    device = devices.setdefault(index, {"index": index})
    for name in (*ECC, "mem_ecc_repairable_uncorrected"):
        if name in row:
            new, old = _number(row[name]), device.get(name)
            # Text in the place of a count is kept: it says that the count could not be read.
            device[name] = max(new, old) if isinstance(new, int) and isinstance(old, int) else _worse(new, old)


def _worse(new: Any, old: Any) -> Any:
    return old if isinstance(old, str) or new is None else new


def _runtime(facts: Facts, runtimes: Dict[str, Facts], row: Dict[str, Any]) -> None:
    pid = v.integer(row.get("pid"))
    name = f"pid {pid}"
    stats = _object(_object(row.get("report")).get("execution_stats"))
    _note(facts, f"application {name}", row)
    _note(facts, f"execution_stats of {name}", stats)
    entry = runtimes.setdefault(name, {"pid": pid, "tag": _tag(row), "errors": {}, "executions": {}})
    for summary, into in zip(_SUMMARIES, ("errors", "executions")):
        for key, value in list(_object(stats.get(summary)).items())[:32]:
            number = v.integer(value)
            if number is not None:
                # Counts are those of the period of each report.
                entry[into][str(key)[:40]] = entry[into].get(str(key)[:40], 0) + number


def _tag(row: Dict[str, Any]) -> Optional[str]:
    tag = v.word(row.get("neuron_runtime_tag"))
    return tag[:MAX_WORD_CHARS] if tag else None


def _hardware(facts: Facts, info: Dict[str, Any]) -> None:
    _note(facts, "neuron_hardware_info", info)
    if info:
        kind = v.word(info.get("neuron_device_type"))
        facts["hardware"] = {
            "type": kind[:MAX_WORD_CHARS] if kind else None,
            "count": v.integer(info.get("neuron_device_count")),
            "memory_bytes": v.integer(info.get("neuron_device_memory_size")),
            "cores_per_device": v.integer(info.get("neuroncore_per_device_count")),
            "lnc": v.integer(info.get("logical_neuroncore_config")),
        }
