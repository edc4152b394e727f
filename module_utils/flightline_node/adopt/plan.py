"""What would be put where on a machine: pure, from what was found and what the site says."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..inputs import INPUTS
from ..model import SettingsError
from . import found as finding
from .found import Found
from .slurm_conf import SlurmConf, with_settings

NODE, CONF = "node", "conf"
"""The parts of an adoption: what each node gets, and that Slurm calls it."""
HOOKS = {"prolog": "/usr/local/libexec/flightline-adopt-prolog", "health": "/usr/local/libexec/flightline-adopt-health"}
DIRECTORY, PACKAGE = "/opt/flightline", "/opt/flightline/flightline-node.pyz"
CHECK, SETTINGS = "/usr/local/sbin/flightline-check", "/etc/flightline/node.json"
FILES = ("adopted-hook.sh.j2", "flightline-boot.service", "flightline-boot.sh", "flightline-check.j2",
         "flightline-watch.service.j2", "logrotate.j2", "not-go.sh.j2")  # fmt: skip
SYSTEMD = "/etc/systemd/system"
WATCH_UNIT, BOOT_UNIT = "flightline-watch.service", "flightline-boot.service"
BUDGET_S, HEALTH_MOST_S, NO_LIMIT_S = 30, 60, 65534
"""Slurm ends a health check after 60 s, and waits 65534 s for a prolog unless told otherwise. Source: slurm.conf(5)."""
LEAST_TIMEOUT_S = 15
HEALTH_EVERY_S = 300
BUDGET_PERCENT = 10
ROLES_WORD = "Written by Flightline, role"
_FIELD = re.compile(r"\{\{ (\w+) \}\}")
_LAST_OF_PATTERN = "00_flightline"


class Written(NamedTuple):
    """A file. edits: it is somebody else's, of which a removal takes out our part alone."""

    path: str
    data: bytes
    mode: int = 0o644
    edits: bool = False


class Plan(NamedTuple):
    """files: to be written. units: to be run. notes: what a person should know."""

    files: Sequence[Written]
    units: Sequence[str] = ()
    notes: Sequence[str] = ()


def filled(template: str, **values: object) -> str:
    """A file of adopt/files with its fields. Raises KeyError for one that nobody gave."""
    return _FIELD.sub(lambda found: str(values[found.group(1)]), template)


def of_node(found: Found, conf: SlurmConf, site: Mapping[str, Any], package: bytes, texts: Mapping[str, str]) -> Plan:
    """What a node gets. site: inputs of a node by name; texts: the files of adopt/files by name."""
    role = {"flightline_node_directory": DIRECTORY, "flightline_watch_directory": DIRECTORY}
    numbers = {"flightline_watch_watchdog_s": 30, "flightline_watch_memory_max_mib": 512}
    rotated = {"flightline_node_log_days": 14, "flightline_node_log_max_mib": 50}
    stored = {one.name: site.get(one.name, one.default) for one in INPUTS if one.stored}
    watch: Dict[str, object] = {"scheduler": found.scheduler or "none", "tool_path": found.bin}
    unit = filled(texts["flightline-watch.service.j2"], **role, **numbers)
    if found.conf:
        unit = unit.replace("\nExecStart=", f"\nEnvironment=SLURM_CONF={found.conf}\nExecStart=", 1)
    files = [
        Written(PACKAGE, package, 0o755),
        _text(CHECK, filled(texts["flightline-check.j2"], **role), 0o755),
        _text(SETTINGS, json.dumps(stored, indent=4, sort_keys=True) + "\n"),
        _text("/etc/flightline/watch.json", json.dumps(watch, indent=4, sort_keys=True) + "\n"),
        _text("/etc/logrotate.d/flightline", filled(texts["logrotate.j2"], **rotated)),
        _text(f"{SYSTEMD}/{WATCH_UNIT}", unit),
    ]
    if found.scheduler == finding.SLURM:
        files += [_text(path, hook(who, found, conf, texts), 0o755) for who, path in HOOKS.items()]
        return Plan(files, (WATCH_UNIT,))
    files += [
        _text("/usr/local/sbin/flightline-boot", texts["flightline-boot.sh"], 0o755),
        _text(f"{SYSTEMD}/{BOOT_UNIT}", texts["flightline-boot.service"]),
    ]
    return Plan(files, (WATCH_UNIT, BOOT_UNIT))


def _text(path: str, text: str, mode: int = 0o644) -> Written:
    return Written(path, text.encode(), mode)


def hook(who: str, found: Found, conf: SlurmConf, texts: Mapping[str, str]) -> str:
    """The program that Slurm calls: the site's own first, then ours, within the time that Slurm gives both."""
    prolog = who == "prolog"
    own = conf.values.get("Prolog" if prolog else "HealthCheckProgram", "")
    if own and (prolog and is_directory(own)):
        own = ""  # Slurm itself runs all of the directory, ours last
    ends = 'exit "$?"' if prolog else 'logger -t flightline-slurm-health "$program ended with $?"'
    runs = f'for program in $(printf \'%s\\n\' {own} | LC_ALL=C sort -r); do\n    "$program" "$@" || {ends}\ndone'
    words = (
        '--log /var/log/flightline/records.jsonl --run-prefix "job-${SLURM_JOB_ID:-none}"' if prolog else "--returns"
    )
    fields = {"slurm_bin": found.bin, "slurm_conf": f"SLURM_CONF={shlex.quote(found.conf)}", "who": who, "words": words}
    begun = filled(
        texts["adopted-hook.sh.j2"], budget_s=BUDGET_S, most_s=most_s(conf) if prolog else HEALTH_MOST_S, **fields
    )
    ended = filled(texts["not-go.sh.j2"], _slurm_bin=found.bin, _slurm_budget=BUDGET_PERCENT)
    good = '[ "$status" -ne 0 ] || exit 0\n' if prolog else _HEALTH_GOOD
    return (
        begun.replace("{% site %}", runs if own else "# The site has none of its own.")
        + good
        + ended
        + ('exit "$status"\n' if prolog else "exit 0\n")
    )


_HEALTH_GOOD = """\
case $status:$said in
    '0:flightline: go') exit 0 ;;
    0:* | *'left no time'*) logger -t flightline-slurm-health "$said"; exit 0 ;;
esac
"""


def is_directory(pattern: str) -> bool:
    """Does the setting name all programs of a directory?"""
    return os.path.basename(pattern) == "*" and not any(sign in os.path.dirname(pattern) for sign in "*?[")


def most_s(conf: SlurmConf) -> int:
    """How long Slurm waits for a prolog. Raises SettingsError where ours has no room in it."""
    said = conf.values.get("PrologEpilogTimeout", "")
    most = int(said) if said.isdigit() else NO_LIMIT_S
    if most < LEAST_TIMEOUT_S:
        raise SettingsError(
            f"PrologEpilogTimeout: saw {most} s, wanted {LEAST_TIMEOUT_S} or more for the site's prolog and ours; "
            "do: raise it in slurm.conf, and adopt again"
        )
    return most


def of_conf(found: Found, conf: SlurmConf, beside: Sequence[str], texts: Mapping[str, str]) -> Plan:
    """That Slurm calls what the nodes have. beside: names in the prolog's directory, where the site has one."""
    values, notes = conf.values, []  # type: Mapping[str, str], List[str]
    settings = {"HealthCheckProgram": HOOKS["health"]}
    files: List[Written] = []
    prolog = values.get("Prolog", "")
    if is_directory(prolog):
        place = os.path.join(os.path.dirname(prolog), last_name(beside))
        files.append(_text(place, _DROP_IN, 0o755))
        notes.append(f"prolog: {place}, which Slurm runs after the others of its directory")
    else:
        settings["Prolog"] = HOOKS["prolog"]
        notes.append(f"prolog: {prolog or 'none'}, then flightline-check")
    health = values.get("HealthCheckProgram", "")
    notes.append(f"health check: {health or 'none'}, then flightline-check")
    if values.get("HealthCheckInterval", "0") in ("0", ""):
        settings["HealthCheckInterval"] = str(HEALTH_EVERY_S)
    scheduler = values.get("SchedulerParameters", "")
    if "nohold_on_prolog_fail" not in scheduler:
        settings["SchedulerParameters"] = ",".join(part for part in (scheduler, "nohold_on_prolog_fail") if part)
    if "alloc" not in values.get("PrologFlags", "").lower():
        notes.append("PrologFlags has no Alloc: of a job's nodes all but the first are judged at their first step")
    main = next(iter(conf.files))
    for path, text in conf.files.items():
        changed = with_settings(text, settings, path == main)
        if changed != text:
            files.append(Written(os.path.realpath(path), changed.encode("latin-1"), 0, True))
    return Plan(files, (), notes)


def last_name(beside: Sequence[str]) -> str:
    """A name that Slurm, which goes from Z to 0, comes to last."""
    others = [name for name in beside if not fnmatch.fnmatch(name, "*flightline")]
    return _LAST_OF_PATTERN if all(name > _LAST_OF_PATTERN for name in others) else f"0000{_LAST_OF_PATTERN}"


_DROP_IN = f"""\
#!/bin/sh
# Written by flightline adopt; flightline adopt --remove takes it out. A node that is not adopted is what it was.
[ ! -x {HOOKS["prolog"]} ] || exec {HOOKS["prolog"]} "$@"
"""
