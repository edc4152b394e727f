"""What grew since an earlier run on the same hardware: counters that say little by their total.

Counters of memory and network errors outlive resets and reboots, so one reading cannot date an error. The oldest run
of the last WINDOW in which the host answered with the same instance and the same GPUs is what a run is compared with:
the newest would forget a growth as soon as somebody looked twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from flightline_node.judge.checks.common import gpu_device, gpu_label
from flightline_node.judge.checks.efa_counters import ERRORS
from flightline_node.model import Reason, Status

from ..record.reasons import CORRECTED_GROWN, EFA_GROWN, UNCORRECTED_GROWN
from ..store.sqlite import Record, Run, Store, StoreError

WINDOW = timedelta(hours=24)
MOST_RUNS = 8
"""Runs looked into; when whoever looks every minute has more within the window, the oldest count."""

RUNS_LISTED = 2000

UNCORRECTED = "ecc_uncorrected_aggregate"
REMAPPED = "remapped_rows_uncorrected"
CORRECTED = "ecc_corrected_volatile"
EFA = tuple(f"efa_{counter}" for counter in ERRORS)
COUNTERS = frozenset({UNCORRECTED, REMAPPED, CORRECTED, *EFA})

MOST_CORRECTED = 100
"""A day. AWS SageMaker HyperPod notes: over 100 correctable errors a day, replace."""

ECC_CHECK, EFA_CHECK = "growth_ecc", "growth_efa"

Counts = Mapping[str, Mapping[str, float]]
"""Counter -> device -> count."""


@dataclass(frozen=True)
class Sample:
    """A node's counters in one run.

    hardware: instance id and GPUs, which must be the same for two samples to be comparable. gpus: the label that
    measures use ("GPU 3") -> the device of a finding.
    """

    hardware: tuple[str, frozenset[str]]
    counts: Counts = field(repr=False)
    gpus: Mapping[str, Mapping[str, Any]] = field(repr=False)


@dataclass(frozen=True)
class Growth:
    """What grew on a node or on one GPU of it, with the words of a finding. Unit: errors."""

    check: str
    status: Status
    reason: Reason
    message: str
    measured: float
    expected: float
    device: Mapping[str, Any]
    evidence: tuple[str, ...] = ()


def is_counting(record: Record) -> bool:
    """Can anything have grown? Where nothing was ever counted no earlier run is read."""
    measures = record.get("measures") or {}
    return any(any(_numbers(measures[name].get("values")).values()) for name in COUNTERS & measures.keys())


def sample(record: Record) -> Sample:
    """The counters of a node's record."""
    measures = record.get("measures") or {}
    counts = {name: _numbers(measures[name].get("values")) for name in COUNTERS & set(measures)}
    gpus = {gpu_label(gpu): gpu_device(gpu) for gpu in record.get("gpus") or ()}
    names = frozenset(str(gpu.get("uuid") or gpu.get("serial") or label) for label, gpu in gpus.items())
    return Sample((str(record.get("instance_id") or ""), names), counts, gpus)


def _numbers(values: Any) -> dict[str, float]:
    given = values.items() if isinstance(values, Mapping) else ()
    return {str(device): value for device, value in given if isinstance(value, (int, float)) and value >= 0}


def earlier(store: Store, run: Run, now: Mapping[str, Sample]) -> dict[str, tuple[str, Sample]]:
    """Host -> (start of the run, sample) of the oldest comparable sample; hosts without one are left out.

    A store that cannot be read any further costs the comparison, never the verdict.
    """
    found: dict[str, tuple[str, Sample]] = {}
    with suppress(StoreError, ValueError):
        for past in _within(store.runs(RUNS_LISTED), run)[:MOST_RUNS]:
            missing = now.keys() - found.keys()
            if not missing:
                break
            if not missing & store.answered(past.run_id):
                continue
            for record in store.records(past.run_id):
                host = str(record["host"])
                then = sample(record) if host in missing else None
                if then and then.hardware == now[host].hardware:
                    found[host] = (past.started_at, then)
    return found


def _within(runs: Iterable[Run], run: Run) -> list[Run]:
    """Runs of the window before a run, the oldest first. Raises ValueError for a stamp that is none."""
    started = datetime.fromisoformat(run.started_at)
    stamped = [(datetime.fromisoformat(past.started_at), past) for past in runs if past.run_id != run.run_id]
    chosen = [pair for pair in stamped if started - WINDOW <= pair[0] < started]
    return [past for _, past in sorted(chosen, key=lambda pair: (pair[0], pair[1].run_id))]


def compare(then: Sample, now: Sample, since: str) -> Iterator[Growth]:
    """What grew between two samples of the same hardware."""
    remapped = _grown(then, now, REMAPPED)
    for label, step in _grown(then, now, UNCORRECTED).items():
        said, device = f"{label}: {step:g} uncorrectable memory errors since {since}", now.gpus.get(label, {})
        if remapped.get(label, 0) >= step:
            said += ", and as many rows remapped"
            yield Growth(ECC_CHECK, Status.WARN, UNCORRECTED_GROWN, said, step, 0, device)
        else:
            said += f", and {remapped.get(label, 0):g} rows remapped"
            yield Growth(ECC_CHECK, Status.FAIL, UNCORRECTED_GROWN, said, step, 0, device)
    for label, step in _grown(then, now, CORRECTED).items():
        if step > MOST_CORRECTED:
            said = f"{label}: {step:g} corrected memory errors since {since}, wanted at most {MOST_CORRECTED} a day"
            device = now.gpus.get(label, {})
            yield Growth(ECC_CHECK, Status.WARN, CORRECTED_GROWN, said, step, MOST_CORRECTED, device)
    grown = {name[len("efa_") :]: sum(steps.values()) for name in EFA if (steps := _grown(then, now, name))}
    if grown:
        said = f"EFA errors since {since}: " + ", ".join(f"{name} {step:g}" for name, step in grown.items())
        lines = tuple(f"{name}: {step:g} more" for name, step in grown.items())
        yield Growth(EFA_CHECK, Status.WARN, EFA_GROWN, said, sum(grown.values()), 0, {}, lines)


def _grown(then: Sample, now: Sample, name: str) -> dict[str, float]:
    """Device -> growth of a counter. One that fell was reset in between: what it has now came since."""
    before, after = then.counts.get(name), now.counts.get(name)
    if before is None or after is None:
        return {}
    pairs = {device: (before[device], count) for device, count in after.items() if device in before}
    steps = {device: now_ - then_ if now_ >= then_ else now_ for device, (then_, now_) in pairs.items()}
    return {device: step for device, step in steps.items() if step > 0}


def compared(then: Sample, now: Sample) -> list[str]:
    """The checks that two samples can answer."""
    common = then.counts.keys() & now.counts.keys()
    answers = ((ECC_CHECK, {UNCORRECTED, CORRECTED}), (EFA_CHECK, set(EFA)))
    return [check for check, names in answers if common & names]
