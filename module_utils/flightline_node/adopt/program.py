"""The word `adopt`: put the gate, the health program and the watcher behind what this machine has, or take them out."""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..ask.metadata import imds
from ..know.expected import NO_TYPE, resolve
from ..model import SettingsError
from . import found as finding
from . import plan as planning
from . import slurm_conf, write
from .found import Found

DONE, NOT_DONE = 0, 2
SYSTEMD_RUNS = "/run/systemd/system"


def arguments(argv: Optional[List[str]]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="flightline-node.pyz adopt",
        description="Put Flightline behind what this machine has. Exit status: 0 done, 2 not done.",
        epilog="example: python3 flightline-node.pyz adopt --instance-type p5.48xlarge --check",
    )
    parser.add_argument("--check", action="store_true", help="say what would be done, and change nothing")
    parser.add_argument("--remove", action="store_true", help="take out what an adoption wrote")
    parser.add_argument("--conf", action="store_true", help="the part of slurm.conf, once all nodes have theirs")
    parser.add_argument("--reconfigure", action="store_true", help="with --conf: have Slurm read its settings again")
    parser.add_argument("--instance-type", help="EC2 instance type; what EC2 says, or none")
    parser.add_argument("--settings", help="more inputs of this node, such as expected: JSON, or a file of it")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser.parse_args(argv)


def main(argv: Optional[List[str]] = None) -> int:
    """Adopt or remove; returns the exit status."""
    given = arguments(argv)
    try:
        outcome = removed(given) if given.remove else adopted(given)
    except (SettingsError, OSError) as error:
        sys.stderr.write(f"flightline adopt: {error}\n")
        return NOT_DONE
    sys.stdout.write(json.dumps(outcome) + "\n" if given.json else shown(outcome))
    return DONE


def adopted(given: argparse.Namespace) -> Dict[str, Any]:
    """Put a part of it here. Raises SettingsError and OSError."""
    found = finding.look()
    if found.scheduler == finding.KUBERNETES:
        raise SettingsError("saw a node of Kubernetes, wanted Slurm or a plain host; do: flightline kube")
    part = planning.CONF if given.conf else planning.NODE
    conf = slurm_conf.read(found.conf) if found.conf else slurm_conf.SlurmConf({}, {})
    texts = {name: text(name) for name in planning.FILES}
    site: Mapping[str, Any] = {}
    if given.conf:
        plan = _conf_plan(found, conf, texts)
    else:
        _refuse_roles()
        site = _site(given)
        plan = planning.of_node(found, conf, site, _package(), texts)
    changed = [one.path for one in write.differing(plan)]
    outcome = {"found": found.text, "part": part, "changed": changed, "notes": [*plan.notes]}
    outcome.update({key: site[key] for key in ("instance_type",) if key in site})
    if not given.check:
        write.write(plan, part)
        _run_units(plan.units, bool(changed))
        _reconfigure(given, found)
    return outcome


def text(name: str) -> str:
    """A file of adopt/files, out of the package as out of a checkout."""
    return (pkgutil.get_data(__name__, f"files/{name}") or b"").decode()


def removed(given: argparse.Namespace) -> Dict[str, Any]:
    """Take a part of it out, whatever of it was written. Raises SettingsError and OSError."""
    part = planning.CONF if given.conf else planning.NODE
    known = write.manifest() or {"files": {}}
    changed = [path for path, entry in known["files"].items() if entry["part"] == part]
    if not given.check:
        units = known.get("units", {}).get(part, ())
        if units:
            _systemctl("disable", "--now", *units)
        changed = write.remove(part)
        if units:
            _systemctl("daemon-reload")
        if given.reconfigure:
            _reconfigure(given, finding.look())
    return {"part": part, "changed": changed, "notes": []}


def _conf_plan(found: Found, conf: slurm_conf.SlurmConf, texts: Mapping[str, str]) -> planning.Plan:
    if found.handed_out or not conf.files:
        return planning.Plan((), (), ["slurm.conf comes from the controller: nothing to write here"])
    place = os.path.dirname(conf.values.get("Prolog", ""))
    directory = planning.is_directory(conf.values.get("Prolog", "")) and os.path.isdir(place)
    plan = planning.of_conf(found, conf, os.listdir(place) if directory else (), texts)
    there = [one for one in plan.files if one.edits or os.path.isdir(os.path.dirname(one.path))]
    return plan._replace(files=there)


def _refuse_roles() -> None:
    """What the roles have configured is theirs: two writers of one file would take turns."""
    if write.manifest() is None and os.path.exists(planning.SETTINGS):
        raise SettingsError(
            f"saw {planning.SETTINGS}, which roles or a stack wrote; wanted a node that Flightline does not have "
            "yet; do: nothing, or take it out of the groups flightline_node and slurm"
        )


def _site(given: argparse.Namespace) -> Dict[str, Any]:
    told = json.loads(imds("/")) if not given.instance_type else {}
    kind = given.instance_type or told.get("meta-data/instance-type") or NO_TYPE
    text = given.settings or "{}"
    try:
        more = json.loads(text if text.startswith("{") else Path(text).read_text(encoding="utf-8"))
    except ValueError as error:
        raise SettingsError(f"--settings: saw {error}, wanted a JSON object or a file of one; do: mend it") from None
    site = {"instance_type": kind, "instance_id": told.get("meta-data/instance-id") or "", **more}
    resolve(site["instance_type"], site.get("expected", {}))
    return site


def _package() -> bytes:
    archive = Path(__file__).parents[2]
    if not zipfile.is_zipfile(archive):
        raise SettingsError(f"saw the library in {archive}, wanted the node package; do: run flightline-node.pyz")
    return archive.read_bytes()


def _run_units(units: Sequence[str], changed: bool) -> None:
    """The watcher runs from now on, what judges a boot from the next one on."""
    if units:
        _systemctl("daemon-reload")
        _systemctl("enable", *units)
        _systemctl("restart" if changed else "start", planning.WATCH_UNIT)


def _systemctl(*words: str) -> None:
    if os.path.isdir(SYSTEMD_RUNS):
        _called("systemctl", *words)


def _reconfigure(given: argparse.Namespace, found: Found) -> None:
    if given.reconfigure and found.bin:
        _called(os.path.join(found.bin, "scontrol"), "reconfigure")


def _called(*argv: str) -> None:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SettingsError(f"{' '.join(argv)}: saw status {done.returncode} ({done.stdout.strip()[:300]}), wanted 0")


def shown(outcome: Mapping[str, Any]) -> str:
    """For a person."""
    lines = [f"found: {outcome['found']}"] if "found" in outcome else []
    lines += [f"  {note}" for note in outcome["notes"]]
    lines += [f"  {path}" for path in outcome["changed"]] or ["  nothing to change"]
    return "".join(f"{line}\n" for line in lines)
