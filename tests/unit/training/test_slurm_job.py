"""The job script for Slurm, with stand-ins of Slurm's commands."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from flightline_node.train import told
from tests.beds import until

SCRIPT = Path(__file__).parents[3] / "roles/training/templates/flightline-train.sbatch.j2"
STAND_INS = {
    "scontrol": 'echo "$@" >> {root}/asked; echo gpu-01',
    "srun": "touch {root}/begun; until [ -e {root}/end ]; do sleep 0.05; done; exit 75",
    "timeout": 'shift; exec "$@"',
    "scancel": 'echo "$@" > {root}/cancelled; echo $$ > {root}/pid; exec sleep 300',
}
WAIT_S = 60


def written(path):
    return until(lambda: path.exists() and path.read_text(), why=str(path), every_s=0.02)


def job_script(tmp_path):
    text = SCRIPT.read_text().replace("{{ training_grace_s | int + 30 }}", "120")
    (tmp_path / "script").write_text(text.replace("{{ _training_logs }}", str(tmp_path / "logs")))
    return tmp_path / "script"


@pytest.mark.parametrize(("run", "status"), [("llama-1-slurm-17", 0), ("llama-1-slurm-16", 77)])
def test_a_node_that_left_costs_a_finished_run_nothing(tmp_path, run, status):
    for name, text in {"scontrol": "echo gpu-01", "srun": "exit 77"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "logs/llama-1").mkdir(parents=True)
    plan = SimpleNamespace(about={"run": run, "told": {"job": "llama-1"}, "records": f"{tmp_path}/logs/llama-1/records.jsonl"},
                           journal=str(tmp_path), user="")  # fmt: skip
    assert told.tell(plan, "finished") == ""  # type: ignore[arg-type]  # what it reads of a plan
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "17", "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "gpu-[01-03]"}  # fmt: skip
    assert (
        subprocess.run(
            ["bash", job_script(tmp_path), "llama-1", "2"], env=environment, timeout=WAIT_S, check=False
        ).returncode
        == status
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_run_that_saved_is_requeued_although_slurm_takes_no_signal_any_more(tmp_path, number):
    for name, text in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text.format(root=tmp_path)}\n")
        (tmp_path / name).chmod(0o755)
    script = job_script(tmp_path)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "17", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "gpu-[01-02]"}  # fmt: skip
    process = subprocess.Popen(["bash", script, "llama-1"], env=environment)
    try:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        pid = int(written(tmp_path / "pid"))
        (tmp_path / "end").touch()
        assert process.wait(WAIT_S) == 75
        os.kill(pid, 0)  # Slurm's answer is not waited for
        assert (tmp_path / "cancelled").read_text() == "--signal=USR1 17\n"
        assert (tmp_path / "asked").read_text().splitlines()[-1] == "requeue 17"
    finally:
        (tmp_path / "end").touch()
        process.kill()
        process.wait()
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
