"""A node judges itself, without a control node: the entry point of the node package, run at boot and on schedule.

Exit status: 0 go, 1 no-go, 2 the tool itself could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Optional

from .expected import resolve
from .logline import LineError, lines
from .model import LEVELS, SettingsError
from .node import Identity, run
from .runner import Node
from .settings import build

GO, NO_GO, NOT_RUN = 0, 1, 2


def arguments(argv: Optional[List[str]]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="flightline-node",
        description="Judge this node. Exit status: 0 go, 1 no-go, 2 the tool could not run.",
        epilog="example: python3 flightline-node.pyz --instance-type p5.48xlarge --level quick",
    )
    parser.add_argument("--instance-type", required=True, help="EC2 instance type, the source of expected values")
    parser.add_argument("--instance-id", default="", help="EC2 instance id, for the record")
    parser.add_argument("--level", choices=list(LEVELS), default="quick", help="how much to measure (quick)")
    parser.add_argument("--skip", default="", help="ids or tags of checks to leave out, separated by commas")
    parser.add_argument("--expect", action="append", default=[], metavar="NAME=VALUE", help="an expected value on top")
    parser.add_argument("--run", default="", help="id of the run in the log; made from host and time when not given")
    parser.add_argument("--bundle", type=Path, help="keep the raw outputs in this directory")
    parser.add_argument("--record", type=Path, help="write the node's record to this file")
    parser.add_argument("--log", type=Path, help="append the record as log lines to this file")
    parser.add_argument("--root", default="/", help="file-system root that probes read from")
    return parser.parse_args(argv)


def main(argv: Optional[List[str]] = None) -> int:
    """Judge this node; returns the exit status."""
    given = arguments(argv)
    try:
        expected = resolve(given.instance_type, _overrides(given.expect))
        settings = build(level=given.level, skip=given.skip)
        identity = Identity("", given.instance_id)
        record = run(Node(given.root), expected, settings, identity, given.bundle)
        _keep(record, given)
    except (SettingsError, LineError) as error:
        return _sorry(str(error))
    except OSError as error:
        return _sorry(f"the results could not be written: {error}; check free space and permissions")
    except Exception as error:  # a fault of this library must not read as a node's no-go, which is exit status 1
        return _sorry(f"{type(error).__name__}: {error}; the node was not judged")
    _say(record)
    return GO if record["verdict"] == "go" else NO_GO


def _overrides(given: List[str]) -> Dict[str, str]:
    pairs = [item.partition("=") for item in given]
    wrong = [name for name, equals, _ in pairs if not equals]
    if wrong:
        raise SettingsError(f"--expect: saw {', '.join(wrong)}; wanted NAME=VALUE, for example efa_count=16")
    return {name: value for name, _, value in pairs}


def _keep(record: Dict[str, Any], given: argparse.Namespace) -> None:
    if given.record:
        given.record.write_text(json.dumps(record, indent=1, sort_keys=True, default=str), encoding="utf-8")
    if given.log:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        run_id = given.run or f"self-{os.uname().nodename}-{stamp}"
        with given.log.open("a", encoding="ascii") as stream:
            stream.write("".join(line + "\n" for line in lines("node", run_id, record)))


def _say(record: Dict[str, Any]) -> None:
    sys.stdout.write(f"{record['host']}: {record['verdict']} at level {record['level']} in {record['seconds']} s\n")
    for finding in record["findings"]:
        if finding["status"] in ("FAIL", "UNKNOWN", "UNREACHABLE", "WARN"):
            sys.stdout.write(f"  {finding['status']} {finding['check']}: {finding.get('message', '')}\n")


def _sorry(text: str) -> int:
    sys.stderr.write(f"flightline-node: {text}\n")
    return NOT_RUN
