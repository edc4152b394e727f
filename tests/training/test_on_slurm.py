"""The role's job script on real hosts with a real Slurm: a node is powered off, and the run goes on without a person.

FLIGHTLINE_TRAINING_HOSTS=1 and root. Three machines of the hosts bed, of which the first is the controller as well. What stands in: a
directory of the outer machine for FSx for Lustre, PyTorch's CPU build bound into the machines, one rank for a node's GPUs.
"""

from __future__ import annotations

import os
import subprocess
import time

import pytest
import yaml

from tests.integration import play as plays
from tests.integration.bed import bed as beds
from tests.integration.bed import inventory, layout, machine
from tests.integration.conftest import SITE
from tools import nodepackage

from . import table
from .conftest import make_place
from .launch import DEADLINE_S, EVERY, PYTHON, ROOT, SIZES, STEPS, curve, events

pytestmark = pytest.mark.skipif(
    not os.environ.get("FLIGHTLINE_TRAINING_HOSTS") or bool(beds.why_not()), reason="FLIGHTLINE_TRAINING_HOSTS=1, root"
)
COUNT = 3
CHECKS = ["disk_space", "memory", "swap", "uptime"]
"""What a machine without a GPU can pass."""
SILENT_S = 15
"""Timeout of collectives: a host without power closes no connection."""
LOST_S = 20
"""Until slurmctld calls a silent node down, and the life of a job's credential, before which it is not started again; the role's
defaults are 180 s and 70 s."""
TORCHRUN = '#!/bin/sh\nPYTHONPATH=/opt/torch:/opt/job exec /usr/bin/python3 -m torch.distributed.run "$@"\n'


def job(name):
    sizes = [f"--{key}={value}" for key, value in {**SIZES, "timeout-s": SILENT_S}.items()]
    command = ["-m", "training.job", "--data", "/fsx/data.bin", "--checkpoints", f"/fsx/ck-{name}", "--journal", f"/fsx/logs-{name}",
               *sizes, "--steps", STEPS, "--checkpoint-every", EVERY]  # fmt: skip
    return {
        "command": list(map(str, command)),
        "workdir": "/opt/job",
        "journal": f"/fsx/logs-{name}",
        "mounts": ["/fsx"],
    }


def ssh(name, command, *, check=True):
    """Run a shell command as root on a machine; what it printed."""
    found = next(one for one in beds.existing() if one.name == name)
    argv = ["ssh", "-i", str(layout.STATE / "id_ed25519"), "-o", f"UserKnownHostsFile={layout.STATE / 'known_hosts'}"]
    argv += ["-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", f"{layout.USER}@{found.address}"]
    done = subprocess.run([*argv, "sudo", "sh", "-s"], input=command, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{name}: {command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def fsx(tmp_path_factory):
    """What all machines share."""
    where = make_place(tmp_path_factory.mktemp("fsx") / "fsx")
    for name in ("spare", "requeue"):
        (where / f"ck-{name}").mkdir()
    for path in (where, *where.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return where


@pytest.fixture(scope="module")
def slurm(fsx):
    """Three machines as playbooks/site.yml leaves them."""
    packages = next((PYTHON.parents[1] / "lib").glob("python3.*/site-packages"))
    layout.BINDS = (
        f"--bind-ro={packages.resolve()}:/opt/torch",
        f"--bind-ro={ROOT}/training:/opt/job/training",
        f"--bind={fsx}:/fsx",
    )
    try:
        beds.up(COUNT)
        whole = inventory.inventory(layout.machines(COUNT, layout.STATE), layout.STATE)["all"]
        whole["vars"] |= {
            "flightline_checks": CHECKS, "slurm_proctrack": "proctrack/linuxproc", "slurm_task_plugin": "task/none",
            "flightline_node_package": str(nodepackage.build(layout.STATE / "flightline-node.pyz").path),
            "slurm_node_timeout_s": LOST_S, "slurm_credential_s": LOST_S, "training_user": layout.USER, "training_torchrun": "/usr/local/bin/torchrun", "training_ranks": 1,
            "training_environment": {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "host0"}, "training_pause_s": 1,
            "training_join_s": 120, "training_grace_s": 30, "training_jobs": {name: job(name) for name in ("spare", "requeue")},
        }  # fmt: skip
        path = layout.STATE / "machines" / "training.yml"
        path.write_text(yaml.safe_dump({"all": whole}, sort_keys=False))
        done = plays.play(path, SITE, tags=["flightline_node", "training", "slurm"])
        assert done.status == 0, done.output[-6000:]
        for one in layout.machines(COUNT, layout.STATE):
            ssh(one.name, f"cat > /usr/local/bin/torchrun <<'END'\n{TORCHRUN}END\nchmod 755 /usr/local/bin/torchrun\n")  # fmt: skip
        yield
    finally:
        beds.down()


def wait(what, why, deadline_s=DEADLINE_S):
    """The first value that is true."""
    end = time.monotonic() + deadline_s
    while not (value := what()):
        if time.monotonic() > end:
            pytest.fail(f"not within {deadline_s:.0f} s: {why}\n{state()}")
        time.sleep(0.2)
    return value


def state():
    """What Slurm and the job say, for a failure."""
    asked = "squeue -l; sinfo -N -l; scontrol show job | tail -60; tail -n 60 /home/admin/slurm-*.out"
    return ssh("gpu-01", asked, check=False)


def submit(words):
    """sbatch as the user; the job's number."""
    said = ssh("gpu-01", f"cd /home/{layout.USER} && sudo -u {layout.USER} sbatch --parsable {words}")
    return said.strip()


def power_off_one_that_trains(fsx, name):
    """After the second checkpoint, a node of the run that is not the controller; the node and when."""
    logs = fsx / f"logs-{name}"
    wait(
        lambda: any(e["event"] == "checkpoint" and e["step"] >= 2 * EVERY for e in events(logs, 0)), "a checkpoint", 480
    )
    hosts = {event["host"] for rank in (0, 1) for event in events(logs, rank) if event["event"] == "start"}
    lost = next(one for one in beds.existing() if one.name in hosts - {"gpu-01"})
    machine.stop(lost)
    return lost, time.time()


def came_back(fsx, name, number, lost, at, whole, fault):
    """The run trained to its end elsewhere, bit for bit as if nothing had been."""
    logs = fsx / f"logs-{name}"
    wait(lambda: any(event["event"] == "finished" for event in events(logs, 0)), "the end of the run", 480)
    wait(lambda: number not in ssh("gpu-01", "squeue -h -o %A").split(), "the end of the job")
    assert curve(logs) == whole
    hosts = {
        event["host"]
        for rank in (0, 1)
        for event in events(logs, rank)
        if event["event"] == "start" and event["attempt"]
    }
    assert lost.name not in hosts
    told = ssh("gpu-01", f"cat /var/log/flightline/train/{name}/records.jsonl")
    assert f"{name}-slurm-{number}" in told and '"status":"finished"' in told, "the user's launcher can tell of the run"
    row = table.add(fault, lost.name, logs, at)
    assert row.lost <= EVERY + 1
    return row


def test_a_job_that_lost_a_node_is_requeued_and_resumes(slurm, fsx, whole):
    number = submit("--nodes=2 /etc/flightline/flightline-train.sbatch requeue")
    lost, at = power_off_one_that_trains(fsx, "requeue")
    came_back(
        fsx, "requeue", number, lost, at, whole, f"host powered off, job requeued (Slurm, SlurmdTimeout {LOST_S} s)"
    )
    assert "Restarts=1" in ssh("gpu-01", f"scontrol show job {number}")
    beds.up(COUNT)
    ssh("gpu-01", f"scontrol update NodeName={lost.name} State=RESUME", check=False)


def test_a_lost_node_is_replaced_by_a_spare(slurm, fsx, whole):
    wait(
        lambda: ssh("gpu-01", "sinfo -h -N -t idle -o %N").split() == ["gpu-01", "gpu-02", "gpu-03"], "three idle nodes"
    )
    number = submit("--nodes=3 --no-kill /etc/flightline/flightline-train.sbatch spare 2")
    lost, at = power_off_one_that_trains(fsx, "spare")
    came_back(fsx, "spare", number, lost, at, whole, "host powered off, a spare in the job (Slurm)")
