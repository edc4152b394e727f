"""What a site decides about healing, declared once: name, default, unit, meaning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from flightline_node.model import SettingsError
from flightline_node.suggest import meant
from flightline_node.watch.rule import RulePolicy

from .gates import Gates, asks, rates, windows

SITE_ENV = "FLIGHTLINE_REMEDIATE"
MOST = 1_000_000
_READ = {"hours": windows, "rates": rates, "approval": asks}


@dataclass(frozen=True)
class SitePolicy:
    """The settings of remediation. WHAT says what each means."""

    window_h: float = 168.0
    budget_percent: float = 10.0
    need: int = 0
    breaker_percent: float = 100 / 3
    breaker_min: float = 10.0
    requeue_after_min: float = 0.0
    repair_min: float = 30.0
    verify_min: float = 180.0
    lease_s: float = 60.0
    replace: int = 1
    lost_min: float = 10.0
    lost_percent: float = 10.0
    hours: str = ""
    rates: str = ""
    approval: str = ""
    signal_min: float = 0.0
    checkpoint_min: float = 15.0
    keep_nodes: int = 0
    keep_priority: int = 0
    prove: int = 0
    prove_standard_h: float = 24.0
    prove_deep_h: float = 168.0
    prove_percent: float = 5.0
    prove_deep_percent: float = 2.0

    @property
    def window_s(self) -> float:
        """The window in seconds."""
        return self.window_h * 3600

    @property
    def gates(self) -> Gates:
        """Hours, rates and approval, read. Raises ValueError for what settings() refuses."""
        return Gates(windows(self.hours), rates(self.rates), asks(self.approval))

    @property
    def rule(self) -> RulePolicy:
        """What the rule goes by, which the nodes follow too."""
        return RulePolicy(self.budget_percent, self.breaker_percent, self.breaker_min * 60)


WHAT: Mapping[str, str] = {
    "window_h": "hours within which the same trouble on the same GPU serial climbs the ladder",
    "budget_percent": "share of a group that may be out at once, at least one node; 0 takes nothing out",
    "need": "nodes of each group that must stay in service",
    "breaker_percent": "share of a group above which the same finding is no hardware fault",
    "breaker_min": "minutes within which that many findings stop everything in the group",
    "requeue_after_min": "minutes a drain waits before the jobs are requeued; 0 waits for them for ever",
    "repair_min": "minutes after which a repair that gives no sign has failed",
    "verify_min": "minutes within which a repaired or replaced node must have its proof",
    "lease_s": "seconds after which another remediator may take over from one that fell silent",
    "lost_min": "minutes that a host which the scheduler lost has to come back before a reboot; 0: a person does",
    "lost_percent": "share of a group of which lost hosts may be repaired at once, at least one; 0 repairs none",
    "hours": "when steps are taken, in UTC, such as mon-fri@20:00-06:00+sat-sun; empty: always",
    "rates": "most steps of a kind in an hour or a day, such as REBOOT:4/h+REPLACE:10/d; empty: as the budget says",
    "approval": "steps that people are told of before, such as REPLACE+REBOOT/p5.48xlarge:15: with minutes it is taken "
    "after them unless somebody vetoes it, without it waits for --approve",
    "signal_min": "minutes before the requeue in which jobs are sent SIGUSR1, to write a checkpoint; 0 sends none",
    "checkpoint_min": "minutes that a requeue waits at most for the checkpoint that a job announces; 0 waits for none",
    "keep_nodes": "nodes from which on a job is never requeued, only waited for; 0: none is too large",
    "keep_priority": "priority in its scheduler from which on a job is never requeued, only waited for; 0: none",
    "prove": "1: idle nodes are proven by schedule, in mode act with --every; 0: a person does that",
    "prove_standard_h": "hours after which an idle node is proven again at level standard; 0 never",
    "prove_deep_h": "hours after which an idle node is proven again at level deep; 0 never",
    "prove_percent": "share of a group of which idle nodes may be proven at once, at least one; 0 proves none",
    "prove_deep_percent": "share of the whole fleet that may be proven at level deep, under full power, at once, at "
    "least one; 0 proves none",
    "replace": "1: instances may be replaced; 0: a person replaces them",
}
"""Where the defaults come from: budget and breaker are the project's contract (docs/healing.md); the window is a week,
in which a fault that a reset only hid comes back; repair_min is Slurm's ResumeTimeout of AWS ParallelCluster."""


def settings(given: Mapping[str, Any]) -> SitePolicy:
    """The site's settings. Raises SettingsError that names everything that is wrong."""
    known = {item.name: item.type for item in fields(SitePolicy)}
    mistakes: list[str] = []
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            mistakes.append(f"{name}: no such setting{meant(name, known)}; known: {', '.join(known)}")
            continue
        if name in _READ:
            try:
                _READ[name](str(value))
            except ValueError as error:
                mistakes.append(f"{name}: {error} ({WHAT[name]})")
            values[name] = str(value)
            continue
        try:
            number = int(str(value)) if known[name] == "int" else float(value)
        except (TypeError, ValueError):
            number = -1.0
        if not 0 <= number <= MOST:
            mistakes.append(f"{name}: saw {value!r}, wanted a number from 0 to {MOST:,} ({WHAT[name]})")
        values[name] = number
    mistakes += [
        f"{name}: saw {values[name]:g}, wanted at most 100"
        for name in ("budget_percent", "breaker_percent", "lost_percent", "prove_percent", "prove_deep_percent")
        if values.get(name, 0) > 100
    ]
    mistakes += [f"{name}: saw 0, wanted more" for name in ("lease_s", "repair_min") if values.get(name) == 0]
    if mistakes:
        raise SettingsError(*mistakes)
    return SitePolicy(**values)


def from_environment() -> dict[str, str]:
    """What FLIGHTLINE_REMEDIATE says: NAME=VALUE words."""
    words = os.environ.get(SITE_ENV, "").replace(",", " ").split()
    return {name: value for name, _, value in (word.partition("=") for word in words)}
