"""Take a node out of Slurm, and only what is ours to take: scontrol(1), `show node` and `update`.

A reason that is a claim (claim.py) is ours. Every other reason of a drained node is somebody else's and stays as it is.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Dict, NamedTuple

from . import claim
from .tool import Said, run

DRAINED, PENDING, ABSENT, FOREIGN = "drained", "pending", "absent", "foreign"
DEADLINE_S = 10.0
"""For each call. scontrol waits MessageTimeout (10 s, slurm.conf(5)) for a controller that does not answer."""
LOST = frozenset({"Not responding", "Node unexpectedly rebooted"})
"""Reasons that slurmctld itself writes beside a DOWN node that it lost. Source: Slurm 22.05, slurmctld/node_mgr.c."""
CONFIGURATION = "etc/slurm/slurm.conf"
_REASON = re.compile(r"^\s*Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?\s*$", re.MULTILINE)
_STATE = re.compile(r"\bState=(\S+)")


class DrainResult(NamedTuple):
    """What became of a drain: state and, for a person, why."""

    state: str
    reason: str


def is_there(path: str, root: str = "/") -> bool:
    """Does this node belong to a Slurm cluster? By its tool or its configuration: one alone may be broken."""
    return shutil.which("scontrol", path=path) is not None or Path(root, CONFIGURATION).exists()


def parsed(text: str) -> Dict[str, str]:
    """{state, reason} of `scontrol show node NAME`; empty values where it prints none."""
    state, reason = _STATE.search(text), _REASON.search(text)
    return {"state": state.group(1) if state else "", "reason": reason.group(1).strip() if reason else ""}


def show(node: str, path: str, deadline_s: float = DEADLINE_S) -> Dict[str, str]:
    """What the controller says of a node, as `parsed`; empty values while it does not answer. Raises OSError."""
    shown = run(["scontrol", "show", "node", node], path, deadline_s)
    return parsed(shown.text if shown.status == 0 else "")


def resume(node: str, path: str, deadline_s: float = DEADLINE_S) -> None:
    """Put a node back into service. Raises OSError; what the controller refuses stays as it is."""
    run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], path, deadline_s)


def drain(node: str, reason: str, path: str, deadline_s: float = DEADLINE_S) -> DrainResult:
    """Drain a node, unless it is out already. PENDING says why it could not be done now; it is worth another try."""
    try:
        shown = run(["scontrol", "show", "node", node], path, deadline_s)
        if shown.status and "not found" in shown.text:
            node = _named(node, path, deadline_s) or node
            shown = run(["scontrol", "show", "node", node], path, deadline_s)
        now = parsed(shown.text)
        if shown.status == 0 and now["state"]:
            if "DRAIN" in now["state"]:
                return DrainResult(DRAINED if claim.read(now["reason"]) else FOREIGN, now["reason"])
            update = ["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}"]
            done = run(update, path, deadline_s)
            return _drained(node, reason, path, deadline_s) if done.status == 0 else _not_done("scontrol update", done)
        return _not_done("scontrol show node", shown)
    except OSError as error:
        return DrainResult(PENDING, f"scontrol could not be run: {error.strerror or error}")


def _named(host: str, path: str, deadline_s: float) -> str:
    """Slurm's name of this host, where slurm.conf gives it another (NodeHostname=); '' unless one node alone has it."""
    listed = run(["sinfo", "-h", "-N", "-o", "%N|%n|%o"], path, deadline_s)
    rows = [line.split("|") for line in listed.text.splitlines()] if listed.status == 0 else []
    names = {row[0] for row in rows if len(row) == 3 and host in (row[1].split(".")[0], row[1], row[2])}
    return names.pop() if len(names) == 1 else ""


def _drained(node: str, reason: str, path: str, deadline_s: float) -> DrainResult:
    """Only what the controller itself now says counts: a request may be taken and not carried out."""
    shown = run(["scontrol", "show", "node", node], path, deadline_s)
    state = parsed(shown.text)["state"]
    if shown.status == 0 and state and "DRAIN" not in state:
        return DrainResult(PENDING, f"scontrol update was taken, and the node is {state[:80]}")
    return DrainResult(DRAINED, reason)


def _not_done(what: str, answer: Said) -> DrainResult:
    last = answer.text.rpartition("\n")[2].strip()[:200]
    ended = "no answer in time" if answer.status is None else f"exit status {answer.status}"
    return DrainResult(PENDING, f"{what}: {ended}" + (f" ({last})" if last else ""))
