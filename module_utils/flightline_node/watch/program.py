"""The command line of the watcher. Exit status: 0 done, 1 no (status: in quarantine; release: refused), 2 not run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import List, Optional

from ..model import SettingsError
from . import marker as marking
from .kmsg import boot_id, newest
from .options import Options, options, site
from .out_of_service import complain
from .verdicts import Rules
from .watcher import Watcher, feeds_of, hands_of

DONE, NO, NOT_RUN = 0, 1, 2


def arguments(argv: Optional[List[str]]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="flightline-watch",
        description="Watch this node and take it out of service when a fault shows. Exit status: 0 done, "
        "1 refused or in quarantine, 2 could not run.",
        epilog="example: flightline-watch --release nightly-2026-11-22",
    )
    parser.add_argument("--settings", type=Path, default=Path("/etc/flightline/node.json"), help="the node's settings")
    parser.add_argument(
        "--watch-settings", type=Path, default=Path("/etc/flightline/watch.json"), help="the watcher's own settings"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--release", metavar="RUN", help="end the quarantine: this preflight has proven the remedy")
    what.add_argument("--status", action="store_true", help="print the quarantine marker as JSON")
    parser.add_argument(
        "--judged-at", default="", metavar="TIME", help="with --release: when that preflight looked (RFC 3339)"
    )
    return parser.parse_args(argv)


def main(argv: Optional[List[str]] = None) -> int:
    """Watch, or say or end the quarantine; returns the exit status."""
    given = arguments(argv)
    try:
        wanted = options(given.watch_settings)
        if given.status:
            return _status(Path(wanted.directory))
        if given.release is not None:
            return _release(given.release, given.judged_at, wanted)
        expected, settings, who = site(given.settings)
        rules = Rules(expected, settings, [name for name in (who["host"], who["instance_id"]) if name])
        feeds = feeds_of(wanted, rules, expected.has_nvidia_gpu is not False)
        Watcher(wanted, rules, who, hands_of(wanted), feeds).run()
    except marking.MarkerError as error:
        complain(str(error))
        return NO
    except SettingsError as error:
        complain(str(error))
        return NOT_RUN
    except OSError as error:
        complain(f"saw: {error}; wanted: a place for the marker; do: check free space and permissions")
        return NOT_RUN
    return DONE


def _status(directory: Path) -> int:
    found = marking.read(directory)
    sys.stdout.write(json.dumps(found, indent=1, sort_keys=True) + "\n" if found else "not in quarantine\n")
    return NO if found else DONE


def _release(run: str, judged_at: str, wanted: Options) -> int:
    if not run.strip():
        raise SettingsError("--release: saw no run; wanted: the id of the preflight that proved it; do: name it")
    was = marking.release(run, newest(wanted.kmsg), boot_id(wanted.root), Path(wanted.directory), judged_at)
    latched = ", ".join(sorted(was.get("latched") or {}))
    sys.stdout.write(f"released by run {run}: {latched or 'nothing was latched'}, since {was.get('since')}\n")
    return DONE
