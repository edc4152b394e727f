"""Keep a systemd unit enabled, running, and no older than its configuration.

A handler is lost when the control process dies between writing a file and the end of the play; comparing the unit with
its files finds the work that is left on the next run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Dict, List, Mapping

from .host import Host, Problem
from .outcome import Outcome

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "StateChangeTimestampMonotonic",
    "Type",
    "Result",
)
MICROSECONDS = 1_000_000
ENABLED = frozenset({"enabled", "static", "alias", "enabled-runtime", "generated", "indirect"})
"""Also what cannot be enabled because something else always starts it."""


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Unmask, enable, start, restart or reload, whatever is missing, in that order."""
    name = wanted["name"]
    state = _show(host, name)
    before = _shown(state, _stale(host, state, wanted["files"]))
    plan = _plan(before, wanted)
    after = {**before, "masked": False, "enabled": True, "active": True, "stale": False} if plan else before
    if not before["there"]:
        if check:
            return Outcome(True, before, {**after, "there": True}, before)
        raise Problem(f"no unit {name}", "its unit file", "install the package or the unit file first")
    if state.get("NeedDaemonReload") == "yes" and not check:
        host.change(["systemctl", "daemon-reload"], "systemd to read its unit files", "systemctl status")
    if not check:
        for verb in plan:
            host.change(["systemctl", verb, name], f"{name} to run", f"journalctl -u {name} -b")
        if plan:
            _verify(host, name)
    return Outcome(bool(plan), before, after, after)


def _show(host: Host, name: str) -> Dict[str, str]:
    answer = host.ask(["systemctl", "show", name, f"--property={','.join(PROPERTIES)}"])
    return dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)


def _shown(state: Mapping[str, str], stale: bool) -> Dict[str, Any]:
    return {
        "there": state.get("LoadState") in ("loaded", "masked"),
        "masked": state.get("LoadState") == "masked",
        "enabled": state.get("UnitFileState") in ENABLED,
        "active": state.get("ActiveState") in ("active", "reloading"),
        "stale": stale,
    }


def _stale(host: Host, state: Mapping[str, str], files: List[str]) -> bool:
    """Was a file written after the unit last started or was reloaded?"""
    changed_us = int(state.get("StateChangeTimestampMonotonic") or 0)
    since_s = time.time() - (time.monotonic() - changed_us / MICROSECONDS)
    written = [Path(host.path(path)).stat().st_mtime for pattern in files for path in host.glob(pattern)]
    return any(moment > since_s for moment in written)


def _plan(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> List[str]:
    plan = ["unmask"] if before["masked"] else []
    plan += [] if before["enabled"] else ["enable"]
    if not before["active"]:
        plan.append("start")
    elif before["stale"]:
        plan.append(wanted["on_change"])
    return plan


def _verify(host: Host, name: str) -> None:
    """Look again: for a unit whose condition failed systemctl answers 0 and starts nothing."""
    if not _shown(_show(host, name), False)["active"]:
        raise Problem(
            f"{name} is not running after it was started", f"{name} active", f"systemctl status {name}; journalctl -b"
        )
