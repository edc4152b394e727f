"""Repeat offenders: a GPU or a node that was blamed in several runs.

Instances are replaced and host names are given anew, but a GPU keeps its serial: a replacement that comes
with the same bad GPU shows here. What no GPU is blamed for is the node's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flightline_node.model import BLOCKING

from ..store.sqlite import Past, Record, Store, status_of
from .judgement import NO_SERIAL

MOST_GPUS = 32


@dataclass(frozen=True)
class Offender:
    """What was blamed more than once: name is "GPU <serial>" or "node <instance id or host>".

    places: (instance id, host) in order of time; runs: how many it was seen in.
    """

    name: str
    blamed: int
    runs: int
    checks: tuple[str, ...]
    places: tuple[tuple[str, str], ...]

    @property
    def moved(self) -> bool:
        """Was it blamed on more than one instance or host?"""
        return len(self.places) > 1


def offenders(store: Store, name: str, past: Sequence[Past], limit: int = 50) -> list[Offender]:
    """Repeat offenders in a name's history: the GPU itself when it is one, else the node and its GPUs.

    The most blamed first.
    """
    gpus = [gpu for item in past for gpu in item.record.get("gpus") or ()]
    named = [gpu for gpu in gpus if name in (gpu.get("serial"), gpu.get("uuid"))]
    serials = dict.fromkeys(str(gpu.get("serial") or "") for gpu in named or gpus)
    for nothing in NO_SERIAL:
        serials.pop(nothing, None)
    found = [judge(serial, store.history(serial, limit)) for serial in list(serials)[:MOST_GPUS]]
    found += [] if named else [judge_node(name, past)]
    return sorted((item for item in found if item), key=lambda item: (-item.blamed, item.name))


def judge(serial: str, past: Sequence[Past]) -> Offender | None:
    """What a GPU's history says; None when it was blamed in fewer than two runs."""
    return _repeated(f"GPU {serial}", past, [(item, _blamed(item.record, serial)) for item in past])


def judge_node(name: str, past: Sequence[Past]) -> Offender | None:
    """What the history of a host or instance says beside its GPUs; None when it was blamed in fewer than two runs."""
    return _repeated(f"node {name}", past, [(item, _blamed_beside_gpus(item.record)) for item in past])


def _repeated(name: str, past: Sequence[Past], found: Sequence[tuple[Past, list[str]]]) -> Offender | None:
    blamed = [(item, checks) for item, checks in reversed(found) if checks]
    if len({item.run_id for item, _ in blamed}) < 2:
        return None
    named = dict.fromkeys(check for _, names in blamed for check in names)
    places = dict.fromkeys((item.instance_id, item.host) for item, _ in blamed)
    runs = {item.run_id for item in past}
    return Offender(name, len({item.run_id for item, _ in blamed}), len(runs), tuple(named), tuple(places))


def _blamed(record: Record, serial: str) -> list[str]:
    """Checks of a record that block because of this GPU, or of these: two of a GB200 board share its serial."""
    gpus = [gpu for gpu in record.get("gpus") or () if str(gpu.get("serial")) == serial]
    found = _blocking(record)
    return [str(item["check"]) for item in found if any(_is(item.get("device") or {}, gpu) for gpu in gpus)]


def _blamed_beside_gpus(record: Record) -> list[str]:
    """Checks of a record that block and name none of its GPUs."""
    gpus = record.get("gpus") or ()
    found = _blocking(record)
    return [str(item["check"]) for item in found if not any(_is(item.get("device") or {}, gpu) for gpu in gpus)]


def _blocking(record: Record) -> list[Mapping[str, Any]]:
    findings: Iterable[Mapping[str, Any]] = record.get("findings") or ()
    return [finding for finding in findings if status_of(finding) in BLOCKING]


def _is(device: Mapping[str, Any], gpu: Mapping[str, Any]) -> bool:
    """Does a finding's device mean this GPU? By the surest name that both have."""
    for key, other in (("serial", "serial"), ("uuid", "uuid"), ("pci", "pci_bus_id"), ("index", "index")):
        if device.get(key) not in (None, "") and gpu.get(other) not in (None, ""):
            return _same(key, str(device[key]), str(gpu[other]))
    return False


def _same(key: str, one: str, other: str) -> bool:
    # nvidia-smi prints eight digits of the PCI domain, the kernel four.
    return one.lower()[-12:] == other.lower()[-12:] if key == "pci" else one == other
