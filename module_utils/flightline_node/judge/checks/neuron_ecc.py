"""Has a Neuron device had memory errors that ECC could not correct?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Set

from ...model import Finding, Reason, Remedy
from .. import reasons
from ..context import Context
from .neuron_common import neuron_check, of_device

UNCORRECTED = Reason("uncorrected", "uncorrectable memory errors", device="Neuron device")
COUNTER_UNREAD = Reason("counter_unread", "a counter could not be read", device="Neuron device")
NO_COUNT = Reason("no_count", "a device has no such count", device="Neuron device")
LOGGED = Reason("logged", "the log tells of memory errors of an unnamed device", device="Neuron device")

# AWS Neuron troubleshooting page, "Hardware Errors": what each asks for.
COUNTERS = {
    "mem_ecc_uncorrected": ("uncorrectable errors in its HBM", Remedy.REPLACE),
    "sram_ecc_uncorrected": ("uncorrectable errors in its SRAM", Remedy.REPLACE),
    "mem_ecc_repairable_uncorrected": ("repairable uncorrectable errors in its HBM", Remedy.REBOOT),
}
NEEDED = ("mem_ecc_uncorrected", "sram_ecc_uncorrected")


def _counts(context: Context) -> Dict[int, Dict[str, List[Any]]]:
    """Device -> counter -> what each source says of it: the driver's files count from power-on, the monitor beside."""
    found: Dict[int, Dict[str, List[Any]]] = {index: {} for index in _indexes(context)}
    for row in (context.optional("neuron_sysfs") or {}).get("devices", []):
        for name, value in row.get("ecc", {}).items():
            found[row["index"]].setdefault(name, []).append(value)
    for row in (context.optional("neuron_monitor") or {}).get("devices", []):
        for name in COUNTERS:
            if row.get(name) is not None:
                found[row["index"]].setdefault(name, []).append(row[name])
    return found


def _indexes(context: Context) -> Set[int]:
    parts = (context.optional(name) or {} for name in ("neuron_ls", "neuron_sysfs", "neuron_monitor"))
    return {row["index"] for facts in parts for row in facts.get("devices", []) if isinstance(row.get("index"), int)}


def evaluate(context: Context) -> Iterator[Finding]:
    """Every device needs both counts; a count that the driver could not read shows as 0 and is no evidence."""
    counts = _counts(context)
    findings = [finding for index in sorted(counts) for finding in _judge(of_device(context, index), counts[index])]
    findings += _unread(context)
    yield from findings
    if not counts:
        yield context.unknown(reasons.NO_VALUE, "no Neuron device shows its ECC counts")
    elif not findings:
        yield context.ok(f"no uncorrectable memory error on {len(counts)} devices")


def _judge(context: Context, counts: Dict[str, List[Any]]) -> Iterator[Finding]:
    for counter, (what, remedy) in COUNTERS.items():
        said = counts.get(counter, [])
        numbers = [value for value in said if isinstance(value, int)]
        if numbers:
            most = max(numbers)
            context.measure(f"neuron_{counter}", most, "errors")
            if most > 0:
                evidence = [f"{counter}: {value}" for value in said]
                yield context.fail(UNCORRECTED, f"{most} {what}", most, 0, "errors", remedy=remedy, evidence=evidence)
        elif said:
            yield context.unknown(COUNTER_UNREAD, f"{counter} could not be read: {said[0]}", unit="errors")
        elif counter in NEEDED:
            yield context.unknown(NO_COUNT, f"no {counter} count", unit="errors")


def _unread(context: Context) -> Iterator[Finding]:
    for event in (context.optional("neuron_log") or {}).get("events", []):
        if event["rule"] == "ecc_unread" and not event["before_boot"]:
            message = f"the driver could not read an ECC count {event['count']} times; it then shows 0"
            yield context.unknown(LOGGED, message, evidence=event["texts"])
            return


CHECK = neuron_check(
    id="neuron_ecc",
    order=950,
    title="Neuron uncorrectable ECC errors",
    what="Uncorrectable errors in the HBM and the SRAM of each Neuron device, by the driver's counters and "
    "neuron-monitor; and whether the kernel log says that the driver could not read them (its files then show 0).",
    why="After one, results are wrong or the program is ended; AWS retires the instance.",
    remedy="HBM (not repairable) or SRAM: replace the instance. Repairable: reload the driver or reboot.",
    out_of_service="Yes: results are wrong, and AWS retires the instance; a repairable one wants a reboot.",
    source="AWS Neuron troubleshooting page, Hardware Errors; aws-neuron-driver neuron_sysfs_metrics.c",
    needs_any=("neuron_sysfs", "neuron_monitor"),
    wants=("neuron_ls", "neuron_log"),
    tags=("neuron", "memory"),
    evaluate=evaluate,
)
