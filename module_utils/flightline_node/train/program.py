"""Start a training run on this node, again after each fault, until it is done, told to end, or fails by itself.

torchrun starts the ranks and finds the other nodes; this only asks the gate before each start, hands signals on, and
decides what an end means. Exit status: 0 done; 75 told to end, start it again; 77 the gate refuses the node; 70 the
program's own fault, a restart does not help; 1 failed too often; 2 settings that cannot work.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Sequence

from ..act.program import journal
from ..model import SettingsError
from .job_run import BROKEN, JobRun
from .journals import text
from .plan import LaunchPlan, of_words, plan

PROGRAM = "flightline-train"
JOB = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
SETTINGS = "/etc/flightline/train.json"
JOBS = "/etc/flightline/train"
ASKED = "/run/flightline/train"
EXAMPLES = "Examples: flightline-train llama-1; flightline-train -- --nproc-per-node 8 train.py --lr 1e-4"
DEFAULTS: Dict[str, Any] = {"torchrun": "torchrun", "ranks": 1, "environment": {}, "gate": [], "restarts": 20,
                            "pause_s": 10, "join_s": 600, "grace_s": 90, "logs": ".flightline/train"}  # fmt: skip
"""Of a command line on a machine where the role is not."""


@contextlib.contextmanager
def only_one(plan: LaunchPlan) -> Iterator[None]:
    """Hold the run's name on this node. Raises SettingsError while another run has it."""
    Path(plan.logs).mkdir(mode=0o750, parents=True, exist_ok=True)
    # Only to read: the unit's file is root's, and Slurm starts the same job as its user.
    lock = os.open(f"{plan.logs}/.lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise SettingsError(
            f"{plan.job}: saw that a run of this name is on this node already, wanted none; "
            f"do: end it, or wait for its end"
        ) from None
    finally:
        os.close(lock)


def _read(path: str, needed: bool) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        if not needed:
            return {}
        raise SettingsError(
            f"saw no {path}, wanted it; do: run the role training, with this job in training_jobs"
        ) from None
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{path}: saw {error}, wanted what the role writes; do: run the role training again"
        ) from None
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: saw {type(found).__name__}, wanted an object")
    return found


def _of_job(given: argparse.Namespace, settings: Dict[str, Any]) -> LaunchPlan:
    one = _read(f"{given.jobs}/{given.job}.json", True)
    one.update({"rendezvous": given.rendezvous} if given.rendezvous else {})
    one.update({"nodes": [given.nodes, given.nodes]} if given.nodes else {})
    asked = _read(f"{given.asked}/{given.job}.json", False)
    return plan(given.job, settings, one, asked, text(f"{given.asked}/{given.job}.manifest").strip())


def _of_words(words: Sequence[str], settings: Dict[str, Any], job: str) -> LaunchPlan:
    """Below this directory, where the role's own is another user's."""
    if not shutil.which(settings["torchrun"]):
        raise SettingsError(
            f"saw no {settings['torchrun']}, wanted it on the PATH; do: activate the environment that has PyTorch"
        )
    if not os.access(settings["logs"], os.W_OK):
        settings["logs"] = str(Path(DEFAULTS["logs"]).absolute())
    return of_words(words, settings, job)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one job."""
    own = list(sys.argv[1:] if arguments is None else arguments)
    words = own[own.index("--") + 1 :] if "--" in own else []
    own = own[: own.index("--")] if "--" in own else own
    first, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(PROGRAM, description=f"{first} {rest}", epilog=EXAMPLES)
    parser.add_argument(
        "job", nargs="?", default="", help="its name in the variable training_jobs; before --, its name"
    )
    parser.add_argument("--settings", default=SETTINGS, help="%(default)s")
    parser.add_argument("--jobs", default=JOBS, help="directory with a file of each job; %(default)s")
    parser.add_argument("--asked", default=ASKED, help="directory with what a run was asked for with; %(default)s")
    parser.add_argument("--no-gate", action="store_true", help="somebody else asks it: Slurm's prolog")
    parser.add_argument("--rendezvous", default="", help="HOST:PORT in place of the job's")
    parser.add_argument("--nodes", type=int, help="exactly so many nodes, in place of the job's")
    parser.add_argument("--pause-s", type=float, help="seconds between two starts; the settings', else 10")
    given = parser.parse_args(own)
    say = journal(PROGRAM)
    try:
        if not JOB.fullmatch(given.job) and not (words and not given.job):
            raise SettingsError(f"saw job {given.job!r}, wanted small letters, digits and dashes")
        settings = {**(DEFAULTS if words else {}), **_read(given.settings, not words)}
        settings.update({"gate": []} if given.no_gate else {})
        settings.update({"pause_s": given.pause_s} if given.pause_s is not None else {})
        made = _of_words(words, settings, given.job) if words else _of_job(given, settings)
        with only_one(made):
            return JobRun(made, say).told_of()
    except KeyError as error:
        say(f"{given.settings}: saw no {error}; do: run the role training again")
        return BROKEN
    except (SettingsError, OSError) as error:
        say(f"{error}")
        return BROKEN
