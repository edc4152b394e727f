"""Trainers from their own packages under `flightline train`, with one broken rank: it is named, or nobody is.

gloo on a CPU. A hang is to be noticed by the steps that the ranks count, and asked about while it lasts.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline_node.train.watching import ASKED

from . import table, test_torchtitan
from .launch import PYTHON, ROOT
from .table import until

NOTICE_S = 25.0
"""15 s and what a busy machine adds."""
HANGS = {"stop": "stopped", "loader": "stopped", "spin": "stopped", "mismatch": "mismatch"}
ENDS = {"kill": ("vanished", "died"), "raise": ("failed", "software"), "oom": ("failed", "software"),
        "ecc": ("failed", "hardware"), "exit": ("unknown", "not known"), "slow": ("", "")}  # fmt: skip
TRAINERS = ("hf", "lightning", "accelerate", "torchtitan", "pipeline")
NONE_OF_PIPELINE = ("mismatch", "slow")
"""A pipeline calls no collective, and all its ranks wait for the slowest, whichever it is."""
MATRIX = [(trainer, fault) for fault in (*HANGS, *ENDS) for trainer in TRAINERS if trainer != "pipeline" or fault not in NONE_OF_PIPELINE]  # fmt: skip


class Run:
    """One job of four ranks."""

    def __init__(self, place: Path, trainer: str, fault: str):
        self.place, self.mark, self.out = place, place / "mark", place / "out.txt"
        argv = [sys.executable, "-m", "flightline", "train", "--job", "foreign", "--pause-s", "1", "--", "--standalone",
                "--nproc-per-node", "4", str(Path(__file__).with_name("foreign.py")), trainer, fault, str(self.mark)]  # fmt: skip
        if trainer == "torchtitan":
            test_torchtitan.assets(place)
            argv += test_torchtitan.options(place)
        own = {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{ROOT}/module_utils", "HF_HOME": str(place / "hf"),
                "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
        with self.out.open("w") as file:
            self.process = subprocess.Popen(argv, cwd=place, env={**os.environ, **own}, stdout=file, stderr=file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Of its own session, by what the launcher and torchrun started.
        listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True).stdout
        for pid in re.findall(rf"^ *(\d+) .*{re.escape(str(self.mark))}", listed, re.M):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.process.wait()

    def said(self, pattern: str):
        """The launcher's line, once it is there; False once the run is over without it."""
        return re.search(pattern, self.out.read_text()) or (False if self.process.poll() is None else "over")

    def blamed(self, what: Path | None = None):
        said = CliRunner().invoke(command, [str(what or self.place / ".flightline/train/foreign"), "--json"]).output
        return [(one["kind"], one["rank"], one["cause"]) for one in json.loads(said)["blames"]]


@pytest.mark.parametrize(("trainer", "fault"), [one for one in MATRIX if one[1] in HANGS])
def test_a_hang_is_noticed_and_its_rank_named(tmp_path, trainer, fault):
    with Run(tmp_path, trainer, fault) as run:
        said = until(lambda: run.said("the run hangs: .*"), "the hang's notice")
        if said == "over":
            # gloo may find a mismatch by itself, and ends the run.
            assert fault == "mismatch" and all(one[1] in (2, None) for one in run.blamed(run.out))
            return
        start = run.place / ".flightline/train/foreign/starts/00000/start.json"
        about = until(lambda: json.loads(start.read_text()).get("stall"), "the stall's note")
        seconds = about["at"] - run.mark.stat().st_mtime
        table.NOTICED.append((f"{fault}, {trainer}", seconds, about["text"]))
        assert seconds <= NOTICE_S
        # Stacks, and the flight recorder's where a collective was called: over gloo it has no sends and receives.
        files = (1 + (trainer != "pipeline")) * (4 - (fault == "stop"))
        until(lambda: sum(map(bool, map(ASKED.fullmatch, os.listdir(start.parent / "contract")))) >= files, "answers")
        assert run.blamed() == [("hung", 2, HANGS[fault])], run.out.read_text()[-3000:]
    assert run.blamed() == [("hung", 2, HANGS[fault])], "also after its end"


@pytest.mark.parametrize(("trainer", "fault"), [one for one in MATRIX if one[1] in ENDS])
def test_an_end_is_judged_and_never_a_wrong_rank_named(tmp_path, trainer, fault):
    kind, cause = ENDS[fault]
    with Run(tmp_path, trainer, fault) as run:
        ended = until(lambda: run.said("start 0 ended with"), "the first end")
        assert (ended == "over") == (fault == "slow")
        first = run.place / ".flightline/train/foreign/starts/00000"
        for what in () if fault == "slow" else (run.out, first):
            wanted = [[(kind, None if kind == "unknown" else 2, cause)]]
            # Without a word it is known only where the others had no time to say that they missed it.
            wanted += [[("failed", 2, "software")]] if fault == "exit" else []
            assert run.blamed(what) in wanted, what
        assert "the run hangs" not in run.out.read_text()
