"""What a verdict of this node's own means for its place in Slurm: it takes the node out, brings it back, or neither.

For Slurm's hooks, which ask at level quick. The rule (rule.py) decides whether they take the node out, and whoever took
it out with whom it is: claim.why_kept.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Mapping, Tuple

from ..ask.runner import SYSTEM_PATHS
from ..model import SettingsError, Verdict
from . import claim, kmsg, slurm
from . import marker as marking

SCONTROL_S = 4.0
"""For each question: a hook has some 30 s for everything."""
LOCK_S = 8.0
"""The watcher may be deciding the same."""
WATCH_SETTINGS = Path("/etc/flightline/watch.json")
_BASE = re.compile(r"[A-Z_]+")
_SILENT = re.compile(r"\*|NOT_RESPONDING")


def settle(
    node: str, record: Mapping[str, Any], said: str, returns: bool, by: str, directory: Path
) -> Tuple[str, bool]:
    """Tell Slurm what was found, where that changes anything; what to say in the end, and may the node work.

    said: the claim of a no-go. A suspect works on: what it has, too many have.
    """
    good, ask = record["verdict"] == str(Verdict.GO), slurm.asking(_path(), SCONTROL_S)
    try:
        if not good:
            from .options import options  # which reads the node's settings by the module that asks this one

            wanted = options(WATCH_SETTINGS)
            with marking.locked(directory, marking.CLAIM_LOCK, LOCK_S):
                done = slurm.drain(node, said, ask, wanted.policy, wanted.suspects)
            return (f"{said}; a suspect: {done.reason}", True) if done.state == slurm.SUSPECT else (said, False)
        if by == claim.HEALTH:
            slurm.lift(node, ask, lambda there: there.by in claim.AROUND_JOBS and not claim.why_kept(there, record))
        return f"{said}{_brought_back(node, record)}" if returns else said, True
    except OSError as error:
        return f"{said}; scontrol could not be run: {error.strerror or error}", good
    except (slurm.AwayError, SettingsError) as error:
        return f"{said}; {error}", good


def _brought_back(node: str, record: Mapping[str, Any]) -> str:
    now = slurm.show(node, _path(), SCONTROL_S)
    base = _BASE.match(now["state"])
    if not base or base.group() not in ("IDLE", "DOWN") or not ("DRAIN" in now["state"] or base.group() == "DOWN"):
        return ""  # in service, or a job still runs on it
    if _SILENT.search(now["state"]):
        return "; Slurm does not hear it"
    taken = claim.read(now["reason"])
    kept = claim.why_kept(taken, record) if taken else "somebody else took it out"
    if base.group() == "DOWN" and "DRAIN" not in now["state"] and now["reason"] in slurm.LOST:
        kept = ""  # a crash is no finding; that it is fit was judged just now
    if kept or slurm.show(node, _path(), SCONTROL_S) != now:
        return f"; stays out: {kept or 'it changed meanwhile'} ({now['reason']})"
    slurm.resume(node, _path(), SCONTROL_S)
    return f"; back in service, was: {now['reason']}"


def overruled(node: str, directory: Path, kernel: str = "/dev/kmsg", root: str = "/") -> str:
    """End a quarantine against which somebody has put the node back into service; what to say of it, or ''.

    The marker says that Slurm had drained the node, and Slurm says that it is in service: nobody but a person does
    that, for a remediator ends the marker first. It is read before Slurm is asked: a drain in between looks the same.
    """
    try:
        marker = marking.read(directory)
        state = (marker or {}).get("scheduler") or {}
        if marker is None or (state.get("kind"), state.get("state")) != ("slurm", slurm.DRAINED):
            return ""
        now = slurm.show(node, _path(), SCONTROL_S)
        if not now["state"] or re.search("DRAIN|DOWN|FAIL|UNKNOWN", now["state"]):
            return ""
        marking.release("overruled", kmsg.newest(kernel), kmsg.boot_id(root), directory)
    except (OSError, marking.MarkerError):
        return ""
    who = f" ({now['reason']})" if now["reason"] else ""
    return f"somebody returned it{who} against {marking.why(marker)}"


def _path() -> str:
    return os.pathsep.join(part for part in (os.environ.get("PATH", ""), SYSTEM_PATHS) if part)
