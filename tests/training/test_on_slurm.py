"""The role's job script on real hosts with a real Slurm: faults of each kind, and the run goes on without a person.

FLIGHTLINE_TRAINING_HOSTS=1 and root. Three machines of the hosts bed, of which the first is the controller as well. What stands in: a
directory of the outer machine for FSx for Lustre, PyTorch's CPU build bound into the machines, one rank for a node's GPUs. A pipe is the kernel log of the watched nodes.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.integration import play as plays
from tests.integration.bed import bed as beds
from tests.integration.bed import inventory, layout, machine
from tests.integration.conftest import SITE
from tools import nodepackage

from . import table
from .conftest import make_place
from .launch import DEADLINE_S, PYTHON, ROOT, SIZES, Running, curve, events
from .test_interrupted import damage_cut, newest_two

pytestmark = pytest.mark.skipif(
    not os.environ.get("FLIGHTLINE_TRAINING_HOSTS") or bool(beds.why_not()), reason="FLIGHTLINE_TRAINING_HOSTS=1, root"
)
COUNT = 3
STEPS, EVERY = 90, 10
"""Enough for one fault after another."""
NAMES = ("requeue", "many", "spare", "sick", "sick-alone")
CHECKS = ["disk_space", "memory", "swap", "uptime", "kernel_errors"]
"""What a machine without a GPU can pass."""
KMSG = "/var/lib/flightline/kmsg"
FAULT = "EXT4-fs (nvme1n1): Remounting filesystem read-only"
DMESG = "#!/bin/sh\n# Simulated: a container may not read the kernel's log.\necho '[    0.000000] Linux version 6.1.0-1-amd64'\n"
SILENT_S = 15
"""Timeout of collectives: a host without power closes no connection."""
MOST_LOST_S = 120
"""From a lost host to the resumed run, by the role's own time-outs."""
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
def whole(tmp_path_factory):
    """Step to loss of two ranks that nothing disturbs, on this machine."""
    place = make_place(tmp_path_factory.mktemp("whole") / "run")
    with Running(place, f"--steps={STEPS}", f"--checkpoint-every={EVERY}") as run:
        return curve(run.good().logs)


@pytest.fixture(scope="module")
def fsx(tmp_path_factory):
    """What all machines share. The checkpoints of one job have little room."""
    where = make_place(tmp_path_factory.mktemp("fsx") / "fsx")
    for name in NAMES:
        (where / f"ck-{name}").mkdir()
    small = where / "ck-many"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(small)], check=True)
    for path in (where, *where.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    yield where
    subprocess.run(["umount", "-l", str(small)], check=True)


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
            "training_user": layout.USER, "training_torchrun": "/usr/local/bin/torchrun", "training_ranks": 1,
            "training_environment": {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "host0", "TORCH_FR_BUFFER_SIZE": "500"}, "training_pause_s": 1,
            "training_join_s": 120, "training_grace_s": 30, "training_jobs": {name: job(name) for name in NAMES},
        }  # fmt: skip
        path = layout.STATE / "machines" / "training.yml"
        path.write_text(yaml.safe_dump({"all": whole}, sort_keys=False))
        for one in layout.machines(COUNT, layout.STATE):
            for tool, text in (("bin/torchrun", TORCHRUN), ("sbin/dmesg", DMESG)):
                ssh(one.name, f"cat > /usr/local/{tool} <<'END'\n{text}END\nchmod 755 /usr/local/{tool}\n")
        done = plays.play(path, SITE, tags=["flightline_node", "flightline_watch", "training", "slurm"])
        assert done.status == 0, done.output[-6000:]
        edit = f"import json; p='/etc/flightline/watch.json'; s=json.load(open(p)); s['kmsg']='{KMSG}'; json.dump(s,open(p,'w'))"
        for one in layout.machines(COUNT, layout.STATE):
            ssh(one.name, f'mkfifo {KMSG}; python3 -c "{edit}" && systemctl restart flightline-watch')
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


def said(logs, name, start, why):
    """The first such event of rank 0 in a start or later ones."""

    def found():
        return next((one for one in events(logs, 0) if one["event"] == name and one["attempt"] >= start), None)

    return wait(found, why, 480)


def hosts(logs, attempts):
    """Where the ranks of these starts were."""
    found = [event for rank in (0, 1) for event in events(logs, rank) if event["event"] == "start"]
    return {event["host"] for event in found if event["attempt"] in attempts}


def kill(logs, attempt, number=signal.SIGKILL, rank=1):
    """A signal to a rank, from outside of its machine; when."""
    (start,) = [one for one in events(logs, rank) if one["event"] == "start" and one["attempt"] == attempt]
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            ids = next(line.split()[1:] for line in path.read_text().splitlines() if line.startswith("NSpid:"))
            environ = (path.parent / "environ").read_bytes().split(b"\0")
        except (OSError, StopIteration):
            continue
        if ids[-1] == str(start["pid"]) and len(ids) > 1 and f"RANK={rank}".encode() in environ:
            os.kill(int(ids[0]), number)
            return time.time()
    raise AssertionError(f"rank {rank} of start {attempt} is no process of this machine: {start}")


def came_back(fsx, name, number, whole):
    """The run trained to its end, bit for bit as if nothing had been."""
    logs = fsx / f"logs-{name}"
    wait(lambda: any(event["event"] == "finished" for event in events(logs, 0)), "the end of the run", 480)
    wait(lambda: number not in ssh("gpu-01", "squeue -h -o %A").split(), "the end of the job")
    assert curve(logs) == whole
    told = ssh("gpu-01", f"cat /var/log/flightline/train/{name}/records.jsonl")
    assert f"{name}-slurm-{number}" in told and '"status":"finished"' in told, "the user's launcher can tell of the run"


def begun(fsx, name, words):
    """Submit when three nodes wait for work; the job's number and its logs, once a checkpoint is whole."""
    ssh("gpu-01", f"scancel --user={layout.USER}")
    wait(lambda: len(ssh("gpu-01", "sinfo -h -N -t idle -o %N").split()) == COUNT, "three idle nodes", 300)
    number = submit(words.format("/etc/flightline/flightline-train.sbatch"))
    logs = fsx / f"logs-{name}"
    said(logs, "checkpoint", 0, "a checkpoint")
    return number, logs


def measured(fault, who, logs, at, start=1):
    """A row of the table; its seconds. A save waits for the one before it: two intervals at most, and a spoilt one."""
    row = table.add(fault, who, logs, at, start)
    assert row.lost < 3 * EVERY
    return row.seconds


def other_than_the_controller(logs):
    """A machine that trains and is not the controller."""
    return next(one for one in beds.existing() if one.name in hosts(logs, [0]) - {"gpu-01"})


def again(name):
    """A node that was lost or sick serves again."""
    beds.up(COUNT)
    ssh(name, "systemctl stop flightline-watch; cd /var/lib/flightline && rm -f quarantine.json watch-state.json")
    ssh(name, "systemctl start flightline-watch")
    ssh("gpu-01", f"scontrol update NodeName={name} State=RESUME", check=False)


@pytest.mark.parametrize(
    ("name", "words", "how"),
    [
        ("requeue", "--nodes=2 {} requeue", "job requeued"),
        ("spare", "--nodes=3 --no-kill {} spare 2", "a spare in the job"),
    ],
    ids=["requeue", "spare"],
)
def test_a_host_is_powered_off(slurm, fsx, whole, name, words, how):
    number, logs = begun(fsx, name, words)
    lost, at = other_than_the_controller(logs), time.time()
    machine.stop(lost)
    came_back(fsx, name, number, whole)
    assert lost.name not in hosts(logs, [1])
    took_s = measured(f"host powered off, {how}", f"{lost.name} (by Slurm)", logs, at)
    assert took_s < MOST_LOST_S
    again(lost.name)


@pytest.mark.parametrize(
    ("name", "words", "how"),
    [
        ("sick", "--nodes=3 --no-kill {} sick 2", "a spare in the job"),
        ("sick-alone", "--nodes=2 {} sick-alone", "job requeued"),
    ],
    ids=["spare", "requeue"],
)
def test_a_sick_node_is_drained_by_the_watcher(slurm, fsx, whole, name, words, how):
    number, logs = begun(fsx, name, words)
    sick = other_than_the_controller(logs).name
    at = time.time()
    ssh(sick, f"echo '3,7,7000,-;{FAULT}' | timeout 30 dd of={KMSG} status=none")
    wait(lambda: "flightline: kernel_errors" in ssh("gpu-01", f"sinfo -h -N -n {sick} -o %E"), "a drain", 60)
    rank = next(one for one in (0, 1) if events(logs, one)[0]["host"] == sick)
    kill(logs, 0, rank=rank)
    came_back(fsx, name, number, whole)
    assert sick not in hosts(logs, [1])
    measured(f"sick node drained by the watcher, its rank killed, {how}", f"{sick} (by flightline watch)", logs, at)
    again(sick)


def test_one_fault_after_another(slurm, fsx, whole):
    number, logs = begun(fsx, "many", "--nodes=2 {} many")
    rows, start = [], 0

    def then(fault, who, at):
        """A row; the next start, once it has a checkpoint of its own."""
        rows.append((fault, who, at, start + 1))
        return said(logs, "checkpoint", start + 1, f"a checkpoint after {fault}")["attempt"]

    def blamed(kind):
        wait(lambda: f"rank 1 {kind}" in table.named(logs), f"rank 1 is named: {kind}", 60)
        return f"rank 1 {kind}"

    at = kill(logs, start)
    start = then("SIGKILL of a rank", blamed("vanished"), at)

    at = kill(logs, start, signal.SIGSTOP)
    assert said(logs, "exception", start, "the others give up")["time"] - at < 2 * SILENT_S
    start = then(f"SIGSTOP of a rank (timeout {SILENT_S} s)", blamed("hung"), at)

    at = kill(logs, start)
    newest, before = newest_two(fsx / "ck-many")
    damage_cut(sorted(newest.glob("*.distcp")))
    assert said(logs, "resumed", start + 1, "the next start")["name"] == before.name
    start = then("newest checkpoint truncated, SIGKILL of a rank", f"checkpoint of step {int(newest.name[5:13])}", at)

    filler = fsx / "ck-many" / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, check=False)
    failed = said(logs, "checkpoint_failed", start, "a checkpoint fails")["step"]
    at = kill(logs, start)
    filler.unlink()
    assert said(logs, "resumed", start + 1, "the next start")["step"] < failed
    start = then("disk full in a checkpoint, SIGKILL of a rank", f"checkpoint of step {failed}", at)

    at = kill(logs, start, signal.SIGTERM)
    said(logs, "requeue", start, "all save and end")
    rows.append(("SIGTERM to a rank, job requeued", "nobody", at, start + 1))

    came_back(fsx, "many", number, whole)
    for fault, who, when, next_start in rows:
        measured(fault, who, logs, when, next_start)
    assert "Restarts=1" in ssh("gpu-01", f"scontrol show job {number}")
    assert table.ROWS[-1].lost == 0, "not one step is lost"
