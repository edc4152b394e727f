"""The launcher as root starts it (the unit) and as Slurm does (the user): both tell of their runs in the same files."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from flightline_node.tell import logline
from tests.node_programs import LIBRARY, installed

from .test_launcher import SETTINGS

PYTHON = "/usr/bin/python3"
NOBODY = 65534
AS_USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(PYTHON).exists() or not shutil.which("setpriv"), reason="root, the system's Python"
)


@pytest.fixture
def node():
    """As the role leaves it, where every user may look."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for folder in ("jobs", "asked", "logs/demo"):
            (place / folder).mkdir(parents=True)
        shutil.copytree(LIBRARY, place / "flightline-node.pyz", ignore=shutil.ignore_patterns("__pycache__"))
        installed("train", place)
        (place / "torchrun").write_text("#!/bin/sh\nexit 0\n")
        given = {"torchrun": str(place / "torchrun"), "logs": str(place / "logs"), "gate": [],
                 "user": "nobody", "numa_binding": "", "node_usd_per_hour": 50.0}  # fmt: skip
        (place / "train.json").write_text(json.dumps({**SETTINGS, **given}))
        (place / "jobs" / "demo.json").write_text(json.dumps({"command": ["x"]}))
        for path in (place, *place.rglob("*")):
            path.chmod(0o755)
        os.chown(place / "logs" / "demo", NOBODY, NOBODY)
        if subprocess.run([*AS_USER, "test", "-x", str(place / "torchrun")], check=False).returncode:
            pytest.skip("another user sees nothing of this machine's temporary directory")
        yield place


def launched(node, *before):
    argv = [*before, PYTHON, str(node / "flightline-train"), "demo", f"--settings={node}/train.json", f"--jobs={node}/jobs",
            f"--asked={node}/asked"]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "nobody is told" not in done.stderr, done.stderr


def test_a_users_run_is_told_of_as_roots_is(node):
    launched(node)
    launched(node, *AS_USER)
    logs = node / "logs" / "demo"
    told = [logline.parse(line) for line in (logs / "records.jsonl").read_text().splitlines()]
    said = [(piece.run, logline.join([piece])["status"]) for piece in told if piece]
    assert said == [("demo-slurm-7", "running"), ("demo-slurm-7", "finished")] * 2
    costs = [json.loads(line)["TrainCost"] for line in (logs / "metrics.jsonl").read_text().splitlines()]
    assert costs == sorted(costs) and len(costs) == 2, "the requeued run goes on from what it had cost"
    assert {path.stat().st_uid for path in logs.glob("*.jsonl")} == {NOBODY}
