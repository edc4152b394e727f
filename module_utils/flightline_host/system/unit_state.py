"""Keep a systemd unit enabled, running, and no older than its configuration.

A handler is lost when the control process dies between writing a file and the end of the play; comparing the unit with
its files finds the work that is left on the next run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping

from ..host import Host, Problem
from ..outcome import Outcome
from . import files

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "StateChangeTimestampMonotonic",
    "Type",
    "Result",
    "MainPID",
    "FreezerState",
)
MICROSECONDS = 1_000_000
ENABLED = frozenset({"enabled", "static", "alias", "enabled-runtime", "generated", "indirect"})
"""Also what cannot be enabled because something else always starts it."""


FROZEN, SIGNALLED = "frozen", "stopped by a signal"
LAST_LINES = 8
RUNNING, AT_BOOT, MASKED, STOPPED = "running", "at_boot", "masked", "stopped"
STATES = (RUNNING, AT_BOOT, MASKED, STOPPED)
NEEDS_NO_UNIT = (MASKED, STOPPED)


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """What the units read, then one unit, or several in the order given.

    In check mode units are not looked at where their files would change: they may not be there yet.
    """
    made = files.ensure(host, {"files": wanted["written"]}, check)
    if check and made.changed:
        return made
    dropped = {name[: -len(".d")] for name in map(os.path.basename, made.after) if name.endswith(".d")}
    done = {
        entry["name"]: _ensure(host, {**entry, "stale": entry["stale"] or entry["name"] in dropped}, check)
        for entry in ([wanted] if wanted["name"] else wanted["units"])
    }
    units = done[wanted["name"]] if wanted["name"] else _together(done)
    return Outcome(
        made.changed or units.changed, {**made.before, **units.before}, {**made.after, **units.after}, units.facts
    )


def _together(done: Mapping[str, Outcome]) -> Outcome:
    changed = {name: outcome for name, outcome in done.items() if outcome.changed}
    return Outcome(
        bool(changed),
        {name: outcome.before for name, outcome in changed.items()},
        {name: outcome.after for name, outcome in changed.items()},
        {name: outcome.facts for name, outcome in done.items()},
    )


def is_set_for_boot(host: Host, name: str) -> bool:
    """Does the next boot start it, from the unit file as it is now?"""
    state = _show(host, name)
    shown = _shown(state, stale=False)
    return bool(shown["there"] and shown["enabled"] and not shown["masked"] and state.get("NeedDaemonReload") == "no")


def _ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Unmask, enable, start, restart or reload, whatever is missing, in that order."""
    name = wanted["name"]
    state = _show(host, name)
    if state.get("LoadState") == "not-found" and wanted["state"] not in NEEDS_NO_UNIT and not check:
        # A package that was just installed, and does not tell systemd.
        host.ask(["systemctl", "daemon-reload"])
        state = _show(host, name)
    stale = bool(wanted.get("stale")) or _stale(host, state, wanted["files"]) or _replaced(host, state)
    before = _shown(state, stale, _halted(host, state))
    plan = _plan(before, wanted)
    after = {key: on for key, on in {**before, **_aim(wanted["state"])}.items() if key != "halted"} if plan else before
    if not before["there"] and wanted["state"] not in NEEDS_NO_UNIT:
        if check:
            return Outcome(True, before, {**after, "there": True}, before)
        raise Problem(f"no unit {name}", "its unit file", "install the package or the unit file first")
    if state.get("NeedDaemonReload") == "yes" and not check:
        host.change(["systemctl", "daemon-reload"], "systemd to read its unit files", "systemctl status")
    if not check:
        for verb in plan:
            _change(host, verb, name)
        if plan and wanted["state"] == RUNNING:
            _verify(host, name)
    return Outcome(bool(plan), before, after, after)


def _aim(state: str) -> Dict[str, bool]:
    if state == MASKED:
        return {"masked": True}
    if state == STOPPED:
        return {"enabled": False, "active": False}
    return {
        "masked": False,
        "enabled": True,
        **({"active": True, "stale": False} if state == RUNNING else {}),
    }


def _show(host: Host, name: str) -> Dict[str, str]:
    answer = host.ask(["systemctl", "show", name, f"--property={','.join(PROPERTIES)}"])
    return dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)


def _shown(state: Mapping[str, str], stale: bool, halted: str = "") -> Dict[str, Any]:
    return {
        "there": state.get("LoadState") in ("loaded", "masked"),
        "masked": state.get("LoadState") == "masked",
        "enabled": state.get("UnitFileState") in ENABLED,
        "active": state.get("ActiveState") in ("active", "reloading"),
        "stale": stale,
        **({"halted": halted} if halted else {}),
    }


def _halted(host: Host, state: Mapping[str, str]) -> str:
    """How a unit that systemd calls active stands still: its process by a signal, or the unit frozen; else empty."""
    if state.get("FreezerState", "running") not in ("running", "thawing", ""):
        return FROZEN
    rows = (host.read(f"/proc/{state.get('MainPID') or 0}/status") or "").splitlines()
    words = [row.split() for row in rows if row.startswith("State:")]
    return SIGNALLED if words and words[0][1] in ("T", "t") else ""


def _replaced(host: Host, state: Mapping[str, str]) -> bool:
    """Does the unit still run a program whose file is another one by now?"""
    return host.link(f"/proc/{state.get('MainPID') or 0}/exe").endswith(" (deleted)")


def _stale(host: Host, state: Mapping[str, str], files: List[str]) -> bool:
    """Was a file written after the unit last started or was reloaded?"""
    changed_us = int(state.get("StateChangeTimestampMonotonic") or 0)
    since_s = time.time() - (time.monotonic() - changed_us / MICROSECONDS)
    written = [Path(host.path(path)).stat().st_mtime for pattern in files for path in host.glob(pattern)]
    return any(moment > since_s for moment in written)


def _plan(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> List[str]:
    if wanted["state"] == MASKED:
        return [] if before["masked"] else ["mask"]
    if wanted["state"] == STOPPED:
        return [verb for verb, on in (("disable", "enabled"), ("stop", "active")) if before[on]]
    plan = ["unmask"] if before["masked"] else []
    plan += [] if before["enabled"] else ["enable"]
    if wanted["state"] == AT_BOOT:
        return plan
    if not before["active"]:
        plan.append("start")
    elif "halted" in before:
        plan.append("thaw" if before["halted"] == FROZEN else "restart")
    elif before["stale"]:
        plan.append(wanted["on_change"])
    return plan


def _change(host: Host, verb: str, name: str) -> None:
    try:
        host.change(["systemctl", verb, name], f"{name} to run", f"journalctl -u {name} -b")
    except Problem as problem:
        raise Problem(problem.seen + _last_words(host, name), problem.wanted, problem.do) from None


def _verify(host: Host, name: str) -> None:
    """Look again: for a unit whose condition failed systemctl answers 0 and starts nothing."""
    if not _shown(_show(host, name), False)["active"]:
        seen = f"{name} is not running after it was started{_last_words(host, name)}"
        raise Problem(seen, f"{name} active", f"systemctl status {name}; journalctl -b")


def _last_words(host: Host, name: str) -> str:
    """What the unit wrote last: a node that could not be configured is gone when somebody would look there."""
    answer = host.ask(
        ["journalctl", "--unit", name, "--boot", f"--lines={LAST_LINES}", "--output=cat", "--no-pager", "-q"]
    )
    said = " | ".join(answer.out.split("\n")).strip(" |") if answer.rc == 0 else ""
    return f"; it wrote last: {said}" if said else ""
