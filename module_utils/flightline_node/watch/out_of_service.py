"""The hands of the watcher: marker and scheduler at once, then the record, and none of them able to hold the others.

The marker is written by one thread and the scheduler is asked by another: a disk or a controller that hangs may be part
of the fault. A watcher that ends between the two finds the fault again in the kernel's buffer.
"""

from __future__ import annotations

import copy
import queue
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..judge.reasons import SUSPECT
from ..model import Finding, Status
from . import marker as marking
from . import report, slurm
from .latch import drain_reason

RETRY_S: Tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Pauses between attempts to drain; the last one repeats until it is done."""

SETTLES_S, SUSPECT_S = 5.0, 60.0
"""After the first the first suspect tells of all; each asks again now and then: a person may have let go on."""

Drain = Callable[[str, str, bool], slurm.DrainResult]
"""Of a claim, the run, and whether it was a suspect before."""


class Hands:
    """Carries out a quarantine. `drain`: None on a node without a scheduler."""

    def __init__(
        self,
        directory: Path,
        log: Path,
        drain: Optional[Drain],
        kind: str,
        lift: Callable[[], str] = lambda: "",
    ) -> None:
        self._directory, self._log, self._drain, self.kind, self._lift = directory, log, drain, kind, lift
        self._lifts = False
        self._last: Dict[str, Any] = {}
        self._about: Optional[Dict[str, Any]] = None
        """What came after it was decided that this node is a suspect: it may be this node's alone."""
        self._lock = threading.Lock()
        self._marker: Optional[marking.Marker] = None
        self._marker_jobs: queue.Queue[Tuple[Callable[[], None], threading.Event]] = queue.Queue()
        self._wake = threading.Event()
        self._records: List[Tuple[str, Dict[str, Any]]] = []
        self._tried, self._next = 0, 0.0
        self._settled = True
        self._ending = False
        self._on_disk = False
        threads = ((self._write_markers, "marker"), (self._serve_scheduler, "scheduler"))
        for target, name in threads:
            threading.Thread(target=target, name=name, daemon=True).start()

    def quarantine(self, marker: marking.Marker, run: str, found: Optional[Dict[str, Any]]) -> None:
        """Marker and drain, then the record (none: only the marker has changed)."""
        with self._lock:
            scheduler = dict(self._marker["scheduler"] if self._marker else marker["scheduler"], kind=self.kind)
            self._marker = {**copy.deepcopy(marker), "scheduler": scheduler}
            if found is not None:
                self._records.append((run, found))
                self._last = found
                if scheduler.get("state") == slurm.SUSPECT:
                    self._about = dict(found["findings"][0])
                scheduler["state"] = slurm.PENDING  # or a hook would take a resume before this for one against it
                # Asked again even where the node was drained: somebody may have put it back meanwhile.
                self._next, self._settled = 0.0, False
        self._wake.set()  # before the disk is asked: its sync may take longer than the drain
        self._write(self._save)

    def resume(self, marker: marking.Marker) -> None:
        """After a restart: what was not drained then is drained now."""
        with self._lock:
            self._marker = copy.deepcopy(marker)
            self._settled = marker.get("scheduler", {}).get("state") in (slurm.DRAINED, slurm.FOREIGN)
            self._next = 0.0
            self._marker.setdefault("scheduler", {"kind": self.kind, "state": slurm.PENDING, "reason": ""})
            self._on_disk = True
        self._wake.set()

    def released(self) -> None:
        """The marker is gone: there is nothing left to drain for."""
        with self._lock:
            self._marker, self._settled, self._on_disk, self._lifts = None, True, False, True
            self._about = None
        self._wake.set()

    def save_state(self, state: Dict[str, Any]) -> None:
        """Keep where reading stopped; not waited for."""
        self._write(lambda: marking.write_json(self._directory / marking.STATE, state, 0o600))

    def scheduler(self) -> Optional[Dict[str, Any]]:
        """What became of the drain so far."""
        with self._lock:
            return dict(self._marker["scheduler"]) if self._marker else None

    def finish(self, most_s: float) -> None:
        """Write what is still to be written, before the end."""
        self._write(lambda: None, most_s)
        self._ending = True
        self._wake.set()

    def _write(self, job: Callable[[], None], wait_s: float = 0.0) -> None:
        done = threading.Event()
        if self._marker_jobs.qsize() < 100:  # a disk that hangs must not fill the memory
            self._marker_jobs.put((job, done))
            done.wait(wait_s)

    def _write_markers(self) -> None:
        while True:
            job, done = self._marker_jobs.get()
            try:
                job()
            except OSError as error:
                complain(f"saw: {error}; wanted: {self._directory} writable; do: look at the disk")
            done.set()

    def _save(self) -> None:
        with marking.locked(self._directory):
            with self._lock:
                marker, on_disk = copy.deepcopy(self._marker), self._on_disk
            if marker is None or (on_disk and not self._is_there()):
                return  # released meanwhile
            marking.keep(self._directory, marking.beside(marker, self._there()))
            self._on_disk = True

    def _is_there(self) -> bool:
        return any((self._directory / name).exists() for name in (marking.MARKER, marking.SUSPECT))

    def _there(self) -> Optional[marking.Marker]:
        try:
            return marking.read(self._directory)
        except marking.MarkerError:
            return None  # nobody can read it: ours says at least what is known

    def _serve_scheduler(self) -> None:
        while not self._ending:
            self._wake.wait(self._pause())
            self._wake.clear()
            with self._lock:
                due = self._marker is not None and not self._settled and time.monotonic() >= self._next
                marker = copy.deepcopy(self._marker) if due else None
                lifts, self._lifts = self._lifts, False
            if lifts:
                self._lift_mark()
            if marker is not None:
                self._drain_once(marker)
            self._send_records()

    def _pause(self) -> Optional[float]:
        with self._lock:
            if self._settled or self._marker is None:
                return RETRY_S[-1] if self._lifts else None
            return max(0.0, self._next - time.monotonic())

    def _lift_mark(self) -> None:
        trouble = self._lift()
        if trouble:
            complain(f"its mark in the scheduler stays for now: {trouble}")
        with self._lock:
            self._lifts = bool(trouble) and self._marker is None

    def _drain_once(self, marker: marking.Marker) -> None:
        outcome = slurm.DrainResult(slurm.ABSENT, "no scheduler on this node")
        if why := marking.paused(self._directory):
            outcome = slurm.DrainResult(slurm.PENDING, why)
        elif self._drain is not None:
            outcome = self._drain(drain_reason(marker, self._about), str(marker["run"]), marking.is_suspect(marker))
        said = {"kind": self.kind, "state": outcome.state, "reason": outcome.reason, "at": marking.stamp()}
        with self._lock:
            if self._marker is None:
                return
            self._settled = outcome.state not in (slurm.PENDING, slurm.SUSPECT)
            pause_s = RETRY_S[min(self._tried, len(RETRY_S) - 1)]
            if outcome.state == slurm.SUSPECT:
                pause_s = random.uniform(0.5, 1.0) * SUSPECT_S if marking.is_suspect(marker) else SETTLES_S  # noqa: S311
                self._settled_suspect(outcome, marker)
            self._next = time.monotonic() + pause_s
            self._tried = self._tried + 1 if outcome.state == slurm.PENDING else 0
            changed = self._marker["scheduler"].get("state") != outcome.state
            changed = changed or self._marker["scheduler"].get("reason") != outcome.reason
            self._marker["scheduler"] = said
        if changed:
            complain(f"scheduler {self.kind}: {outcome.state}: {outcome.reason}")
            self._write(self._save)

    def _settled_suspect(self, outcome: slurm.DrainResult, marker: marking.Marker) -> None:
        if outcome.says:
            complain(f"suspects: {outcome.says}")
            all_ = Finding("quarantine", Status.UNKNOWN, outcome.says, SUSPECT.remedy, reason=SUSPECT.id)
            self._records.append((f"{marker['run']}-fleet", {**self._last, "findings": [all_.to_record()]}))

    def _send_records(self) -> None:
        with self._lock:
            waiting, self._records = self._records, []
        for number, (run, found) in enumerate(waiting):
            try:
                report.say(self._log, run, found)
            except (OSError, ValueError) as error:
                complain(f"saw: {error}; wanted: a record in {self._log}; do: check free space")
                if isinstance(error, OSError):
                    with self._lock:
                        self._records = [*waiting[number:], *self._records][-16:]
                    return


def complain(text: str) -> None:
    """A line for the unit's journal."""
    sys.stderr.write(f"flightline-watch: {text}\n")
    sys.stderr.flush()
