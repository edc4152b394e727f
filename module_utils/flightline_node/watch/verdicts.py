"""The library's checks asked about what the watcher saw: which findings take a node out of service."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..judge.judgement import answers
from ..judge.kernel_history import pci_key
from ..judge.reasons import STANDS
from ..judge.waivers import apply as apply_waivers
from ..know.expected import Expected
from ..model import BLOCKING, Facts, Finding, Status, device_label
from ..names import check_id
from ..read.facts import KnownFacts
from ..settings import NodeSettings

KERNEL = ("xid", "sxid", "gpu_lost", "kernel_errors", "pcie_aer")
SMI = ("gpu_lost", "gpu_count", "ecc_uncorrected", "row_remap", "recovery_action")
SYSFS = ("efa_count", "efa_ports", "edac", "raid")
DCGM = ("dcgm_health",)
_IDENTITY = ("index", "uuid", "serial", "name")


class Rules:
    """The checks of a site's settings, ready to be asked about facts."""

    def __init__(self, expected: Expected, settings: NodeSettings, names: Sequence[str]) -> None:
        self._expected, self._settings, self._names = expected, settings, names
        self.gpus: List[Facts] = []
        """As nvidia-smi listed them last: a kernel line has a PCI address, a person and a job want index and serial."""

    def judge(self, checks: Sequence[str], facts: Mapping[str, Facts]) -> List[Finding]:
        """What blocks, by these checks and these facts alone.

        UNKNOWN counts where something was seen (it has evidence): a line that may be a fault, as before every job. A
        check that broke, or what was not collected, shows no fault and takes nobody's node.
        """
        asked = [check_id(name) for name in checks]
        due = sorted((one for one in self._settings.checks if one.id in asked), key=lambda one: asked.index(one.id))
        now = datetime.now(timezone.utc)
        measures: Dict[str, Any] = {}
        found = answers(due, KnownFacts(dict(facts)), self._expected, self._settings, now, measures, required=False)
        found = apply_waivers(found, self._settings.waivers, self._names, now.date())
        seen = [self._named(one) for one in found if one.status in BLOCKING and _seen(one) and not stands_alone(one)]
        return sorted(seen, key=lambda one: one.status is Status.UNKNOWN)

    def _named(self, finding: Finding) -> Finding:
        pci = finding.device.get("pci")
        if not pci or finding.device.get("index") is not None:
            return finding
        gpu = next((gpu for gpu in self.gpus if pci_key(gpu.get("pci_bus_id")) == pci_key(pci)), None)
        if gpu is None:
            return finding
        known = {key: gpu[key] for key in _IDENTITY if gpu.get(key) is not None}
        from dataclasses import replace

        return replace(finding, device={**known, **finding.device})


def stands_alone(finding: Finding) -> bool:
    """Is it a single trouble that no preflight starts a job on, but that ends no running one (docs/healing.md)?"""
    return finding.reason.partition(".")[0] == STANDS.id


def _seen(finding: Finding) -> bool:
    return finding.status is Status.FAIL or bool(finding.evidence)


Identity = Tuple[str, str, str]


def identity(finding: Finding) -> Identity:
    """What makes a finding the same trouble later: its check, its device and, without counts and times, what it is."""
    device = finding.device
    where = pci_key(str(device["pci"])) if device.get("pci") else device_label(device)
    head = "" if finding.status is Status.UNKNOWN else finding.message.split(", ")[0].split("; ")[0]
    if device.get("pci"):
        head = head.partition(": ")[2]
    return finding.check, where, re.sub(r"\d+ (?:lines|times)", "", head)


def label(finding: Finding) -> str:
    """check|device, the key of a latched trouble."""
    return f"{finding.check}|{device_label(finding.device) or 'node'}"
