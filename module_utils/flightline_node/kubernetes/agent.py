"""The agent of a node: has it judged when it joins and at intervals, and tells its Node what stands.

A node joins with the startup taint, or gets it here: no pod lands on a node that has not been proven since its boot.
The API server may be away: judging goes on, and what stands is told when it answers again.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional

from ..selfcheck import GO as CHECK_GO
from ..selfcheck import NOT_RUN
from ..watch import marker as marking
from ..watch.kmsg import newest
from ..watch.rule import HELD, TOLD
from ..watch.slurm import PENDING, SUSPECT, DrainResult
from . import api, names
from .drain import row_of
from .judging import PREFIX, Judged
from .own_node import OwnNode
from .standing import GO, NO_GO, UNPROVEN, Standing, later, read, serves, settled, taints

LOOK_EVERY_S = 30.0
"""The Node is read that often: one request by name, 33 a second from a thousand nodes."""
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
SETTLE_S = 20.0
"""A pod that was bound before the taint needs that long to have its GPUs noted by kubelet."""


@dataclass(frozen=True)
class AgentOptions:
    """Seconds, and where things are. standard_every_s: 0 for never."""

    every_s: float = 300.0
    standard_every_s: float = 86_400.0
    directory: Path = marking.DIRECTORY
    kmsg: str = "/dev/kmsg"
    look_every_s: float = LOOK_EVERY_S
    settle_s: float = SETTLE_S
    returns: bool = True
    """May a go of its own lift a no-go? Not where a controller acts: its proof does."""


class NodeAgent:
    """Everything that changes over time. judge: (level, run) -> Judged; why_not_idle: '' where no pod has GPUs.

    leave: takes a Node that serves out by the rule; it knows whether the node was a suspect before.
    """

    def __init__(
        self,
        options: AgentOptions,
        own: OwnNode,
        boot: str,
        judge: Callable[[str, str], Judged],
        why_not_idle: Callable[[], str],
        sleep: Callable[[float], object] = time.sleep,
        leave: Optional[Callable[[Standing, bool], DrainResult]] = None,
    ) -> None:
        self._options, self._own, self._boot = options, own, boot
        self._judge, self._why_not_idle, self._sleep, self._leave = judge, why_not_idle, sleep, leave
        self._proven: Optional[Standing] = None
        """The go that stood before level standard began."""
        self.suspect = False
        self._due = 0.0
        self._deep_due = time.monotonic() + options.standard_every_s * random.uniform(0.5, 1.0)  # noqa: S311
        self._marker = ""
        self._untold: Optional[Standing] = None
        self._failures = 0
        self._said = ""
        self.instance = ""
        """The EC2 instance id, of the Node's provider id (aws:///ZONE/INSTANCE)."""
        self.stands: Optional[Standing] = None
        self.last: Optional[Judged] = None
        self.judged_at_s = 0.0
        self.counts: Dict[str, int] = {"judged": 0, "not_judged": 0, "api_errors": 0}

    def step(self) -> float:
        """Do what is due; returns the seconds until the next step."""
        try:
            node = self._own.read()
            self.instance = str((node.get("spec") or {}).get("providerID") or "").rpartition("/")[2]
            self.suspect = row_of(node["metadata"]).mark in (HELD, TOLD)
            self._joined(node)
            self._released(node)
            self._answered()
        except api.ApiError as error:
            pause = self._failed(error)
        else:
            pause = self._options.look_every_s
        if self._is_due():
            self._look()
            pause = min(pause, BACK_OFF_S[0]) if self._untold else pause
        return min(pause, max(self._due - time.monotonic(), 0.0) + 0.01)

    # ---- the Node

    def _joined(self, node: Mapping[str, Any]) -> None:
        """A Node that is new, is another of the same name, or has been booted since is unproven."""
        before = read(node)
        if before is not None and before.boot == self._boot:
            self.stands = before
            if before.verdict != GO and taints(node, before) != (node["spec"].get("taints") or []):
                complain(
                    f"saw: {before.verdict} without its taint; wanted: a go takes it; do: nothing, it is set again"
                )
                self._tell(before)
            return
        why = "joined" if before is None else f"booted since run {before.run}"
        self._untold = None  # what was found before belongs to the Node that was
        self._tell(Standing(UNPROVEN, "quick", f"{PREFIX}-join", marking.stamp(), self._boot, why))
        self._due = 0.0

    def _released(self, node: Mapping[str, Any]) -> None:
        """A run has proven the remedy: the marker goes, and the node is judged again."""
        text = (node["metadata"].get("annotations") or {}).get(names.RELEASE)
        if text is None:
            return
        try:
            asked = json.loads(text)
            run, judged_at = str(asked["run"]), str(asked["judged_at"])
            marking.release(run, newest(self._options.kmsg), self._boot, self._options.directory, judged_at)
        except (ValueError, KeyError, TypeError, OSError) as error:  # MarkerError is a ValueError
            complain(f"saw: {names.RELEASE}: {error}; wanted: a proof of this quarantine; do: see docs/kubernetes.md")
        self._own.drop(names.RELEASE)
        self._due = 0.0

    def _failed(self, error: api.ApiError) -> float:
        self.counts["api_errors"] += 1
        self._failures += 1
        if str(error) != self._said:
            complain(f"saw: {error}; wanted: the API server's answer; do: nothing yet, it is asked again")
            self._said = str(error)
        pause = BACK_OFF_S[min(self._failures, len(BACK_OFF_S)) - 1] * random.uniform(0.5, 1.0)  # noqa: S311
        return max(pause, error.retry_s or 0.0)

    def _answered(self) -> None:
        if self._untold:
            self._tell(self._untold)
            self._untold = None
        if self._failures:
            complain(f"the API server answers again, after {self._failures} failures")
        self._failures, self._said = 0, ""

    # ---- the judgement

    def _is_due(self) -> bool:
        """Is it time, or has the watcher's quarantine begun or ended?"""
        now, marker = time.monotonic(), marking.reason(self._options.directory)
        marker += self._proof()
        changed, self._marker = marker != self._marker, marker
        return changed or now >= self._due

    def _look(self) -> None:
        began = time.monotonic()
        level = self._level()
        self._due = began + self._options.every_s * random.uniform(0.9, 1.1)  # noqa: S311
        at = marking.stamp()
        run = f"{PREFIX}-{self._own.name}-{''.join(ch for ch in at if ch.isalnum())}"
        self.last = self._judge(level, run)
        self.judged_at_s = time.time()
        if level != "quick":
            self._deep_due = time.monotonic() + self._options.standard_every_s
        if self.last.status == NOT_RUN:
            self.counts["not_judged"] += 1
            complain(f"not judged: {self.last.why}")
            self._try(lambda: self._own.set_unknown(f"not judged: {(self.last or Judged(NOT_RUN, '', {})).why}"))
            return
        self.counts["judged"] += 1
        verdict = GO if self.last.status == CHECK_GO else NO_GO
        if verdict == GO and marking.reason(self._options.directory):
            return  # the watcher found something meanwhile, and has told it
        if verdict == GO and self._waits_for_proof():
            complain(f"{self._own.name}: go; a controller acts here, and has not proven it yet")
            return
        if verdict == GO and self.suspect and not (self._options.directory / marking.SUSPECT).exists():
            self._try(lambda: self._own.mark(None, None))
        # A go counts from the moment it began to look, a no-go from its end.
        word = Standing(verdict, level, run, at if verdict == GO else marking.stamp(), self._boot, self.last.why)
        self._untold = settled(self._untold, word)
        self._try(self._answered)

    def _waits_for_proof(self) -> bool:
        stands = self.stands
        refused = stands is not None and stands.verdict == NO_GO and not self._options.returns
        return refused and not later(self._proof(), stands.at if stands else "")

    def _proof(self) -> str:
        """When a controller's preflight last looked and found it good; '' for never."""
        try:
            return str((marking.read_json(self._options.directory / marking.PROVEN) or {}).get("judged_at", ""))
        except marking.MarkerError:
            return ""

    def _level(self) -> str:
        """Standard where it is due, or alone can lift what stands, and no pod has GPUs."""
        stands = self.stands
        if not self._options.standard_every_s or stands is None:
            return "quick"
        needed = stands.verdict == NO_GO and stands.level != "quick"
        due = stands.verdict == GO and time.monotonic() >= self._deep_due
        if not (needed or due) or self._why_not_idle():
            return "quick"
        if due:
            why = "level standard runs"
            self._proven = stands
            word = Standing(UNPROVEN, "quick", f"{PREFIX}-standard", marking.stamp(), self._boot, why)
            if not self._try(lambda: self._tell(word)):
                return "quick"  # without the taint a pod could come meanwhile
            self._sleep(self._options.settle_s)
        return "quick" if self._why_not_idle() else "standard"

    def _tell(self, word: Standing) -> None:
        if word.verdict == NO_GO and self._leave and serves(self.stands):
            done = self._leave(word, self.suspect)
            if done.state == PENDING:
                raise api.ApiError(done.reason)
            if done.state == SUSPECT:
                complain(f"{self._own.name}: a suspect: {done.says or done.reason}; {word.why}")
                if self._proven is None or (self.stands and self.stands.verdict == GO):
                    return
                word = self._proven
        told = self._own.tell(word)
        self.stands = told.stands
        if told.changed:
            complain(f"{self._own.name}: {told.stands.verdict}: {told.stands.why}")
        if told.trouble:
            complain(f"saw: {told.trouble}; wanted: an Event; do: nothing, taint and condition are set")

    def _try(self, what: Callable[[], None]) -> bool:
        try:
            what()
        except api.ApiError as error:
            self._failed(error)
            return False
        return True


def complain(text: str) -> None:
    """A line for the pod's log."""
    sys.stderr.write(f"flightline-node: {text}\n")
    sys.stderr.flush()
