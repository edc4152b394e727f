"""A node judges itself, without a control node: at boot, before a job, and as the job scheduler's health check.

Its settings file is written by the user data of a stack, and by the role flightline_node. Exit status: 0 go, 1 no-go,
2 the tool itself could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from .ask.runner import Node
from .bounds import MAX_MESSAGE_CHARS
from .inputs import INPUTS, defaults
from .judge.reasons import OVERRULED, QUARANTINED, SUSPECT
from .model import BLOCKING, LEVELS, Finding, SettingsError, Status, Verdict, as_status
from .node import Identity, run
from .settings import resolve_settings
from .tell.logline import LineError, lines
from .watch import claim, service
from .watch import marker as quarantine

GO, NO_GO, NOT_RUN = 0, 1, 2
SETTINGS = Path("/etc/flightline/node.json")
SHOWN = {*BLOCKING, Status.WARN}
_KINDS = {"str": str, "list": list, "dict": dict}
_DO = "do: run playbooks/site.yml for this node"


def arguments(argv: Optional[List[str]]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="flightline-node.pyz check",
        description="Judge this node by its settings. Exit status: 0 go, 1 no-go, 2 the tool could not run.",
        epilog="example: flightline-check 30 --level quick --reason",
    )
    parser.add_argument("--settings", type=Path, help=f"what is known of this node ({SETTINGS})")
    parser.add_argument("--instance-type", help="EC2 instance type; the settings', and enough without settings")
    parser.add_argument("--instance-id", help="EC2 instance id, for the record; the settings'")
    parser.add_argument("--level", choices=list(LEVELS), help="how much to measure; the settings' level")
    parser.add_argument("--run", default="", help="id of the run in the log; made from prefix, host and time")
    parser.add_argument("--run-prefix", default="self", help="beginning of the run's id in the log (self)")
    parser.add_argument("--bundle", type=Path, help="keep the raw outputs in this directory")
    parser.add_argument("--record", type=Path, help="write the node's record to this file")
    parser.add_argument("--log", type=Path, help="append the record as log lines to this file")
    parser.add_argument("--root", default="/", help="file-system root that probes read from")
    parser.add_argument("--reason", action="store_true", help="print one short line, for a job scheduler's reason")
    parser.add_argument("--by", choices=claim.WRITERS, default=claim.CHECK, help="with --reason: who asks (check)")
    parser.add_argument(
        "--slurm", metavar="NODE", help="for Slurm's hooks: drain this node of Slurm's when it is no-go"
    )
    parser.add_argument(
        "--returns", action="store_true", help="with --slurm: return it where this go ends what took it out"
    )
    parser.add_argument("--directory", type=Path, default=quarantine.DIRECTORY, help="where the quarantine marker is")
    parser.add_argument("--explain", action="store_true", help="only read the settings and say which checks they mean")
    return parser.parse_args(argv)


def check(argv: Optional[List[str]] = None) -> int:
    """Judge this node; returns the exit status."""
    given = arguments(argv)
    try:
        wanted = _wanted(given)
        expected, settings = resolve_settings(wanted)
        if given.explain:
            return _say(f"{len(settings.checks)} checks at level {settings.level} for {expected.instance_type}")
        identity = Identity(wanted["host"], wanted["instance_id"])
        told = service.overruled(given.slurm, given.directory, root=given.root) if given.slurm else ""
        record = held(run(Node(given.root), expected, settings, identity, given.bundle), given.directory, told)
        _keep(record, given)
    except (SettingsError, LineError) as error:
        return _sorry(str(error))
    except OSError as error:
        return _sorry(f"saw: {error}; wanted: a place for the results; do: check free space and permissions")
    except Exception as error:  # a fault of this library must not read as a node's no-go, which is exit status 1
        return _sorry(f"{type(error).__name__}: {error}; the node was not judged")
    said = reason(record, given.by)
    if given.slurm and (why := quarantine.paused(given.directory)):
        # Its finding is in the record; what it does to the node waits for who paused it.
        return _say(f"{claim.BEGINNING}{why}; it would have said: {said}")
    good = record["verdict"] == "go"
    if given.slurm:
        said, good = service.settle(given.slurm, record, said, given.returns, given.by, given.directory)
    _say(said if given.reason else shown(record))
    return GO if good else NO_GO


def _wanted(given: argparse.Namespace) -> Dict[str, Any]:
    """The settings, with the command line on top. A type alone is enough where no settings are."""
    path = given.settings or SETTINGS
    alone = given.instance_type and not given.settings and not path.exists()
    wanted = {**defaults(), **({} if alone else load(path))}
    named = {name: getattr(given, name) for name in ("instance_type", "instance_id", "level")}
    return {**wanted, **{name: value for name, value in named.items() if value is not None}}


def load(path: Path) -> Dict[str, Any]:
    """The settings file. Raises SettingsError when it is not what role and user data write."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"saw: {error}; wanted: {path}; {_DO}") from error
    except ValueError as error:
        raise SettingsError(f"saw: {path} is not JSON ({error}); wanted: a JSON object; {_DO}") from error
    kinds = {one.name: _KINDS[one.kind] for one in INPUTS if one.stored}
    found = {"site_checks": {}, **found} if isinstance(found, dict) else found  # one of before there were any
    wrong = [key for key, kind in kinds.items() if not isinstance(found, dict) or not isinstance(found.get(key), kind)]
    if wrong:
        raise SettingsError(f"saw: {path} without {', '.join(wrong)}; wanted: every input of a node; {_DO}")
    return dict(found)


def held(record: Dict[str, Any], directory: Path = quarantine.DIRECTORY, told: str = "") -> Dict[str, Any]:
    """The record, with a FAIL in front while the node is in quarantine: what it measures now proves no remedy.

    told: who ended a quarantine without proof; it is kept in the record.
    """
    if told:
        ended = Finding("quarantine", Status.INFO, told[:MAX_MESSAGE_CHARS], reason=OVERRULED.id)
        record = {**record, "findings": [*record["findings"], ended.to_record()]}
    try:
        marker = quarantine.read(directory)
    except quarantine.MarkerError:
        marker = {}
    if marker is None:
        return record
    if quarantine.is_suspect(marker):
        words = quarantine.why(marker)[:MAX_MESSAGE_CHARS], SUSPECT.remedy
        finding = Finding("quarantine", Status.WARN, *words, reason=SUSPECT.id)
        return {**record, "findings": [*record["findings"], finding.to_record()]}
    words = quarantine.reason(directory)[:MAX_MESSAGE_CHARS], QUARANTINED.remedy
    # The claim is for what was found, not for the marker: those of one reason are counted together.
    first = next((one.get("reason") for one in quarantine.findings_of(marker)), None)
    finding = Finding("quarantine", Status.FAIL, *words, measured=first, reason=QUARANTINED.id)
    return {**record, "verdict": str(Verdict.NO_GO), "findings": [finding.to_record(), *record["findings"]]}


def _keep(record: Dict[str, Any], given: argparse.Namespace) -> None:
    if given.record:
        draft = given.record.with_name(given.record.name + ".new")
        draft.write_text(json.dumps(record, indent=1, sort_keys=True, default=str), encoding="utf-8")
        draft.replace(given.record)
    if given.log:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        run_id = given.run or f"{given.run_prefix}-{os.uname().nodename}-{stamp}"
        with given.log.open("a", encoding="ascii") as stream:
            stream.write("".join(line + "\n" for line in lines("node", run_id, record)))


def shown(record: Mapping[str, Any]) -> str:
    """The verdict and what a person has to look at."""
    head = f"{record['host']}: {record['verdict']} at level {record['level']} in {record['seconds']} s"
    found = [finding for finding in record["findings"] if as_status(finding["status"]) in SHOWN]
    return "\n".join([head, *(f"  {one['status']} {one['check']}: {one.get('message', '')}" for one in found)])


def reason(record: Mapping[str, Any], by: str = claim.CHECK) -> str:
    """One line that a job scheduler shows beside the node: the claim of what was found first."""
    if record["verdict"] == "go":
        return f"{claim.BEGINNING}go"
    blocking = [finding for finding in record["findings"] if as_status(finding["status"]) in BLOCKING]
    if not blocking:
        return claim.Claim("node", ": nothing could be judged", by, record["level"], claim.NO_VERDICT).text
    more = f" (+{len(blocking) - 1})" if len(blocking) > 1 else ""
    first = blocking[0]
    if first["check"] == "quarantine":
        first = {**first, "reason": first.get("measured") or first.get("reason")}
    return claim.of_finding(first, f": {blocking[0].get('message', '')}{more}", by, record["level"]).text


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return GO


def _sorry(text: str) -> int:
    sys.stderr.write(f"flightline-check: {text}\n")
    return NOT_RUN
