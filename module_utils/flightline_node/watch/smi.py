"""One long-lived `nvidia-smi --query-gpu ... --loop`: its rows become nvidia_smi's facts, judged by the same checks.

Field names after `nvidia-smi --help-query-gpu`; a driver that does not know one says so and is asked without it.
"""

from __future__ import annotations

import csv
import os
import re
from typing import Dict, List, Optional, Tuple

from ..judge.checks import gpu_count, gpu_lost
from ..judge.reasons import SMI_SILENT
from ..model import Facts, Finding, Status, clip_evidence
from ..read.parsers.nvidia_messages import Messages
from ..read.parsers.nvidia_smi_fields import XML, Raw, RawGpu, assemble
from .child import Child
from .confirm import Confirmed
from .verdicts import SMI, Rules

COLUMNS: Tuple[Tuple[str, str], ...] = (
    ("index", ""),
    ("pci.bus_id", "pci/pci_bus_id"),
    ("uuid", "uuid"),
    ("serial", "serial"),
    ("name", "product_name"),
    ("ecc.mode.current", "ecc_mode/current_ecc"),
    ("mig.mode.current", "mig_mode/current_mig"),
    ("ecc.errors.uncorrected.volatile.total", "ecc_errors/volatile/double_bit/total"),
    ("remapped_rows.uncorrectable", "remapped_rows/remapped_row_unc"),
    ("remapped_rows.pending", "remapped_rows/remapped_row_pending"),
    ("remapped_rows.failure", "remapped_rows/remapped_row_failure"),
    ("gpu_recovery_action", "gpu_recovery_action"),
)
"""What is asked, and the leaf of `nvidia-smi -q -x` that holds the same."""
FLAGS = {"0": "No", "1": "Yes"}
SILENT_TIMES, LEAST_SILENT_S = 6.0, 30.0
SAMPLE_ENDS_S = 0.5
"""The rows of a sample come together; this long after the last one it is whole."""
RETRY_S = 15.0
MOST_LINES = 512
_REFUSED = re.compile(r'Field "([\w.]{1,80})" is not a valid field')


class SmiFeed:
    """The tool kept running, and what its samples mean."""

    def __init__(self, rules: Rules, path: str, every_s: float) -> None:
        self._rules, self._every_s = rules, every_s
        self._silent_s = max(LEAST_SILENT_S, every_s * SILENT_TIMES)
        self._columns = list(COLUMNS)
        env = {**os.environ, "PATH": path, "LC_ALL": "C"}
        self._child = Child(self._argv, env, self._silent_s, RETRY_S)
        self._path = path
        self._lines: List[str] = []
        self._whole_at: Optional[float] = None
        self._last: Tuple[str, List[Optional[str]], List[Finding]] = ("", [], [])
        self._listed: List[Optional[str]] = []
        self._confirmed = Confirmed()

    def _argv(self) -> List[str]:
        import shutil

        tool = shutil.which("nvidia-smi", path=self._path)
        if tool is None:
            raise FileNotFoundError("nvidia-smi")
        names = ",".join(name for name, _ in self._columns)
        form = "--format=csv,noheader,nounits"
        return [tool, f"--query-gpu={names}", form, f"--loop={max(1, round(self._every_s))}"]

    @property
    def fd(self) -> Optional[int]:
        """What to wait for."""
        return self._child.fd

    @property
    def due(self) -> float:
        """When to step at the latest."""
        return self._child.due if self._whole_at is None else min(self._child.due, self._whole_at)

    def step(self, ready: bool, now: float) -> List[Finding]:
        """Take what came; the findings of a sample that is whole, or of a silence."""
        running, silences = self._child.fd is not None, self._child.silences
        lines = self._child.step(ready, now)
        if lines:
            self._lines += lines[: MOST_LINES - len(self._lines)]
            self._whole_at = now + SAMPLE_ENDS_S
        if self._child.silences > silences:
            self._lines, self._whole_at = [], None
            return self._silence()
        ended = running and self._child.fd is None
        if self._whole_at is None or (now < self._whole_at and not ended):
            return []
        sample, self._lines, self._whole_at = self._lines, [], None
        return [] if self._asked_too_much(sample) else self._judged(sample)

    def _asked_too_much(self, sample: List[str]) -> bool:
        refused = {match.group(1) for line in sample for match in [_REFUSED.search(line)] if match}
        if not refused:
            return False
        self._columns = [column for column in self._columns if column[0] not in refused]
        return True

    def _judged(self, sample: List[str]) -> List[Finding]:
        text = "\n".join(sample)
        if text != self._last[0]:
            facts = facts_of(sample, self._columns)
            if facts["gpus"]:
                self._rules.gpus = facts["gpus"]
            listed = [gpu.get("uuid") for gpu in facts["gpus"]]
            self._last = (text, listed, self._rules.judge(SMI, {"nvidia_smi": facts}))
        before, self._listed = self._listed, self._last[1]
        return self._confirmed.take(_counted(self._last[2], self._listed == before))

    def _silence(self) -> List[Finding]:
        """The second silence in a row, or one that did not die since it was killed: the driver does not answer."""
        if self._child.silences < 2:
            return []
        how = "it does not die when killed (uninterruptible)" if self._child.hung else "twice in a row"
        message = f"nvidia-smi said nothing for {self._silent_s:g} s, {how}: the driver may hang"
        asked = clip_evidence([f"nvidia-smi --query-gpu ... --loop={max(1, round(self._every_s))}: no line"])
        words = gpu_lost.CHECK.id, Status.UNKNOWN, message, SMI_SILENT.remedy
        return [Finding(*words, evidence=asked, reason=SMI_SILENT.id)]

    def counts(self) -> Dict[str, int]:
        """For the heartbeat."""
        return {"nvidia_smi_silences": self._child.silences}

    def forget(self) -> None:
        """A release: what is still wrong is found again."""
        self._last = ("", [], [])
        self._confirmed.forget()

    def close(self) -> None:
        """End the tool."""
        self._child.close()


def _counted(found: List[Finding], settled: bool) -> List[Finding]:
    """Without the count of GPUs where it says nothing of its own.

    settled: the sample lists the GPUs that the one before listed. Rows that come late make two samples of one: each
    lists too few, and others than the one before. Of a lost GPU gpu_lost says more.
    """
    if settled and not any(one.check == gpu_lost.CHECK.id for one in found):
        return found
    return [one for one in found if one.check != gpu_count.CHECK.id]


def facts_of(sample: List[str], columns: List[Tuple[str, str]]) -> Facts:
    """nvidia_smi's facts of one sample; a line that is no row of all columns is a message of the tool."""
    messages, gpus, indices = Messages(), [], []  # type: Messages, List[RawGpu], List[Optional[int]]
    for line in sample:
        values = next(csv.reader([line], skipinitialspace=True), [])
        if len(values) != len(columns) or messages.read(line):
            messages.read(line)
            continue
        leaves: Dict[str, str] = {}
        for (name, leaf), value in zip(columns, values):
            flag = name in ("remapped_rows.pending", "remapped_rows.failure")
            leaves[leaf] = FLAGS.get(value, value) if flag else value
        index = leaves.pop("", "")
        indices.append(int(index) if index.isdecimal() and len(index) < 5 else None)
        gpus.append(RawGpu(id=leaves.get("pci/pci_bus_id", ""), leaves=leaves))
    facts = assemble(Raw(XML, gpus=gpus, messages=messages))
    for gpu, number in zip(facts["gpus"], indices):
        gpu["index"] = gpu["index"] if number is None else number
    return facts
