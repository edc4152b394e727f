"""A configured node judges itself: at boot, before a job, and as the job scheduler's health check.

Unlike `selfrun`, which knows the instance type alone, this reads what the inventory says about the node from the file
that the role flightline_node wrote. Exit status: 0 go, 1 no-go, 2 the tool itself could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .expected import Expected, resolve
from .logline import LineError, lines
from .model import LEVELS, SettingsError
from .node import Identity, run
from .runner import Node
from .settings import Settings, build

GO, NO_GO, NOT_RUN = 0, 1, 2
BLOCKING = ("FAIL", "UNREACHABLE", "UNKNOWN")
SHOWN = (*BLOCKING, "WARN")
REASON_CHARACTERS = 120
KEYS = {
    "host": str,
    "instance_type": str,
    "instance_id": str,
    "level": str,
    "checks": list,
    "skip": list,
    "expected": dict,
    "thresholds": dict,
    "waivers": list,
    "options": dict,
}


def arguments(argv: Optional[List[str]]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="flightline-check BUDGET_S",
        description="Judge this node by its settings. Exit status: 0 go, 1 no-go, 2 the tool could not run.",
        epilog="example: flightline-check 30 --level quick --reason",
    )
    parser.add_argument("--settings", type=Path, required=True, help="what the inventory says about this node")
    parser.add_argument("--level", choices=list(LEVELS), help="how much to measure; the settings' level")
    parser.add_argument("--record", type=Path, help="write the node's record to this file")
    parser.add_argument("--log", type=Path, help="append the record as log lines to this file")
    parser.add_argument("--run-prefix", default="self", help="beginning of the run's id in the log (self)")
    parser.add_argument("--reason", action="store_true", help="print one short line, for a job scheduler's reason")
    parser.add_argument("--explain", action="store_true", help="only read the settings and say which checks they mean")
    return parser.parse_args(argv)


def main(argv: Optional[List[str]] = None) -> int:
    """Judge this node; returns the exit status."""
    given = arguments(argv)
    try:
        wanted = load(given.settings)
        expected, settings = understood(wanted, given.level)
        if given.explain:
            return _say(f"{len(settings.checks)} checks at level {settings.level} for {expected.instance_type}")
        record = run(Node(), expected, settings, Identity(wanted["host"], wanted["instance_id"]))
        _keep(record, given)
    except (SettingsError, LineError) as error:
        return _sorry(str(error))
    except OSError as error:
        return _sorry(f"saw: {error}; wanted: a place for the results; do: check free space and permissions")
    except Exception as error:  # a fault of this library must not read as a node's no-go, which is exit status 1
        return _sorry(f"{type(error).__name__}: {error}; the node was not judged")
    _say(reason(record) if given.reason else shown(record))
    return GO if record["verdict"] == "go" else NO_GO


def load(path: Path) -> Dict[str, Any]:
    """The settings file. Raises SettingsError when it is not what the role writes."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"saw: {error}; wanted: {path}; do: run playbooks/site.yml for this node") from error
    except ValueError as error:
        raise SettingsError(f"saw: {path} is not JSON ({error}); do: run playbooks/site.yml for this node") from error
    wrong = [key for key, kind in KEYS.items() if not isinstance(found, dict) or not isinstance(found.get(key), kind)]
    if wrong:
        raise SettingsError(f"saw: {path} without {', '.join(wrong)}; do: run playbooks/site.yml for this node")
    return dict(found)


def understood(wanted: Mapping[str, Any], level: Optional[str]) -> Tuple[Expected, Settings]:
    """Expected values and settings, checked as the Ansible module checks them. Raises SettingsError."""
    settings = build(
        level=level or wanted["level"],
        select=wanted["checks"],
        skip=wanted["skip"],
        thresholds=wanted["thresholds"],
        waivers=wanted["waivers"],
        options=wanted["options"],
    )
    return resolve(wanted["instance_type"], wanted["expected"]), settings


def _keep(record: Dict[str, Any], given: argparse.Namespace) -> None:
    if given.record:
        draft = given.record.with_name(given.record.name + ".new")
        draft.write_text(json.dumps(record, indent=1, sort_keys=True, default=str), encoding="utf-8")
        draft.replace(given.record)
    if given.log:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        with given.log.open("a", encoding="ascii") as stream:
            run_id = f"{given.run_prefix}-{os.uname().nodename}-{stamp}"
            stream.write("".join(line + "\n" for line in lines("node", run_id, record)))


def shown(record: Mapping[str, Any]) -> str:
    """The verdict and what a person has to look at."""
    head = f"{record['host']}: {record['verdict']} at level {record['level']} in {record['seconds']} s"
    rows = [f"  {f['status']} {f['check']}: {f.get('message', '')}" for f in record["findings"] if f["status"] in SHOWN]
    return "\n".join([head, *rows])


def reason(record: Mapping[str, Any]) -> str:
    """One line that a job scheduler shows beside the node."""
    blocking = [f for f in record["findings"] if f["status"] in BLOCKING]
    if record["verdict"] == "go":
        return "flightline: go"
    first = f"{blocking[0]['check']}: {blocking[0].get('message', '')}" if blocking else "nothing could be judged"
    more = f" (+{len(blocking) - 1})" if len(blocking) > 1 else ""
    text = " ".join(f"flightline: {first}".split())
    return text[: REASON_CHARACTERS - len(more)] + more


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return GO


def _sorry(text: str) -> int:
    sys.stderr.write(f"flightline-check: {text}\n")
    return NOT_RUN


if __name__ == "__main__":
    sys.exit(main())
