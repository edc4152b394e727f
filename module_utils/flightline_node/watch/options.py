"""What a site sets for the watcher: the node's own settings file, and a few of its own."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

from ..ask.runner import SYSTEM_PATHS
from ..inputs import defaults
from ..know.expected import Expected, resolve
from ..model import SettingsError
from ..selfcheck import load
from ..settings import NodeSettings, build, resolve_settings
from . import marker, slurm
from .rule import RulePolicy

SCHEDULERS = ("auto", "slurm", "kubernetes", "none")


@dataclass(frozen=True)
class Options:
    """Paths, intervals in seconds, and the scheduler. `tool_path` goes before the system's own directories."""

    directory: str = str(marker.DIRECTORY)
    log: str = "/var/log/flightline/records.jsonl"
    heartbeat_log: str = "/var/log/flightline/watch.jsonl"
    kmsg: str = "/dev/kmsg"
    root: str = "/"
    tool_path: str = ""
    scheduler: str = "auto"
    slurm_node: str = ""
    namespace: str = "Flightline"
    suspects: str = slurm.SERVE
    budget_percent: float = 10.0
    breaker_percent: float = 100 / 3
    window_min: float = 10.0
    """Of the rule: what suspects do, and how many may be out for one reason (rule.py)."""
    smi_every_s: float = 5.0
    sample_every_s: float = 10.0
    dcgm_every_s: float = 60.0
    beat_every_s: float = 60.0
    boot_grace_s: float = 300.0
    """Since the boot: drivers are still being loaded then, and the preflight at boot judges what samples would."""

    @property
    def policy(self) -> RulePolicy:
        """The rule's."""
        return RulePolicy(self.budget_percent, self.breaker_percent, self.window_min * 60)

    @property
    def path(self) -> str:
        """Where tools are looked up."""
        return os.pathsep.join(part for part in (self.tool_path, SYSTEM_PATHS) if part)


def options(path: Path) -> Options:
    """The watcher's own settings; a file that is not there means the defaults. Raises SettingsError."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Options()
    except (OSError, ValueError) as error:
        raise SettingsError(f"saw: {path}: {error}; wanted: JSON; do: run playbooks/site.yml for this node") from None
    if not isinstance(given, dict):
        raise SettingsError(f"saw: {path} with {type(given).__name__}; wanted: an object; do: run playbooks/site.yml")
    return _checked(given)


def _checked(given: Mapping[str, Any]) -> Options:
    known = {field.name: field.default for field in fields(Options)}
    wrong = [
        name
        for name, value in given.items()
        if name not in known
        or not isinstance(value, (int, float) if isinstance(known[name], float) else str)
        or isinstance(value, bool)
        or (isinstance(known[name], float) and not 0 <= float(value) <= 86_400)
    ]
    wrong += [name for name in ("budget_percent", "breaker_percent") if name in given and not 0 <= given[name] <= 100]
    wrong += ["suspects"] if given.get("suspects", slurm.SERVE) not in (slurm.SERVE, slurm.DRAIN) else []
    if wrong or given.get("scheduler", "auto") not in SCHEDULERS:
        raise SettingsError(
            f"saw: watch settings {', '.join(wrong) or 'scheduler ' + repr(given.get('scheduler'))}; "
            f"wanted: {', '.join(known)} with text or seconds, scheduler one of {', '.join(SCHEDULERS)}; "
            "do: run playbooks/site.yml for this node"
        )
    return replace(Options(), **given)


def site(path: Path) -> Tuple[Expected, NodeSettings, Dict[str, str]]:
    """Expected values, settings and who the node is. Without the role's file it is judged without a type.

    Raises SettingsError for a file that cannot be used.
    """
    if not path.exists():
        return resolve("none"), build(), {"host": os.uname().nodename, "instance_id": "", "instance_type": "none"}
    wanted = load(path)
    expected, settings = resolve_settings({**defaults(), **wanted, "level": "quick"})
    host = wanted["host"] or os.uname().nodename
    return expected, settings, {**{key: str(wanted[key]) for key in ("instance_id", "instance_type")}, "host": host}
