"""What is told of a run: its steps for the training table, and its cost as a metric, in files of the job's own."""

from __future__ import annotations

import contextlib
import os
import pwd
import time
from typing import Any, Optional

from ..tell import logline, training_run
from .plan import LaunchPlan

COST_S = 60.0
"""How often the run's cost is told."""


def append(path: str, text: str, user: str) -> None:
    """Add lines to a file of the job's directory. It is the user's: no link of theirs is followed. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o644)
    try:
        if user and os.geteuid() == 0:
            entry = pwd.getpwnam(user)
            os.fchown(file, entry.pw_uid, entry.pw_gid)
        os.write(file, text.encode("utf-8"))
    finally:
        os.close(file)


def tell(plan: LaunchPlan, status: str, **more: Any) -> str:
    """Write a step of the run for the storage function, which puts it into the training table; why not, or ''."""
    about = plan.about
    try:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        seen = training_run.facts(f"{plan.journal}/rank-000000.jsonl")
        written = logline.lines("training", about["run"], {**about["told"], **seen, "status": status, "at": at, **more})
        append(about["records"], "".join(f"{line}\n" for line in written), plan.user)
    except (OSError, ValueError) as error:
        return f"nobody is told that the run is {status}: {error}"
    return ""


def interrupted(plan: LaunchPlan) -> None:
    """Count an interruption, as a metric. A disk that is full costs the metric and not the run."""
    with contextlib.suppress(OSError):
        if plan.about:
            about = plan.about
            line = training_run.metric_line(about["namespace"], plan.job, about["run"], training_run.INTERRUPTIONS, 1)
            append(about["metrics"], line, plan.user)


class RunCost:
    """What the run has cost: all its nodes at their price since this launcher began, and what was told before that.

    Told before: the last line of this node's own metrics. Where the rendezvous moves to another node it begins anew.
    """

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan, self._began, self._told_at = plan, time.monotonic(), 0.0
        self._before = self._last() if plan.about.get("usd_per_hour") else 0.0

    @property
    def usd(self) -> Optional[float]:
        """US dollars so far; None where no price is known."""
        about = self._plan.about
        if not about.get("usd_per_hour"):
            return None
        hours = (time.monotonic() - self._began) / 3600
        return self._before + hours * float(about["usd_per_hour"]) * int(about["told"]["nodes"])

    def tell(self, now: bool = False) -> None:
        """As a metric, each COST_S. A disk that is full costs the metric and not the run."""
        usd, at = self.usd, time.monotonic()
        if usd is None or (not now and at < self._told_at + COST_S):
            return
        self._told_at, about = at, self._plan.about
        with contextlib.suppress(OSError):
            line = training_run.cost_line(about["namespace"], self._plan.job, about["run"], usd)
            append(about["metrics"], line, self._plan.user)

    def _last(self) -> float:
        about, found = self._plan.about, 0.0
        with contextlib.suppress(OSError), open(about["metrics"], encoding="utf-8", errors="replace") as file:
            for one in (training_run.event_of(line) for line in file if f'"{training_run.COST}"' in line):
                usd = one.get(training_run.COST)
                found = float(usd) if one.get("run") == about["run"] and isinstance(usd, (int, float)) else found
        return found
