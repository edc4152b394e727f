"""roles/training's launcher with a stand-in of torchrun: a shell script that is told what to do at each start."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from flightline.cloud.functions.common import training
from flightline_node.know import training_environment
from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError
from flightline_node.tell import logline, training_run
from flightline_node.train import obstacles
from flightline_node.train.plan import plan
from tests.node_programs import TRAIN

SETTINGS = {"torchrun": "torchrun", "ranks": 8, "environment": {"NCCL_DEBUG": "WARN"}, "numa_binding": "node", "gate": ["gate"],
            "user": "", "logs": "/logs", "restarts": 3, "pause_s": 0.05, "join_s": 600, "grace_s": 1.0}  # fmt: skip
ONE = {"command": ["-m", "job"], "nodes": [3, 4], "rendezvous": "gpu-01:29400"}


def test_torchrun_gets_what_settings_job_and_request_say():
    made = plan("llama-1", SETTINGS, ONE, {"steps": "10", "batch": "64"}, "s3://results/m.json")
    assert made.argv == [
        "torchrun", "--nnodes=3:4", "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=gpu-01:29400",
        "--rdzv-id=llama-1", "--rdzv-conf=join_timeout=600", "--max-restarts=0", "--log-dir=/logs/llama-1", "--tee=3",
        "--numa-binding=node", "-m", "job", "--batch=64", "--steps=10"]  # fmt: skip
    assert made.environment == {"NCCL_DEBUG": "WARN", "FLIGHTLINE_JOB": "llama-1", "FLIGHTLINE_MANIFEST": "s3://results/m.json",
                                "FLIGHTLINE_METRICS": "/logs/llama-1/metrics.jsonl",
                                "TORCH_FR_DUMP_TEMP_FILE": "/logs/llama-1/nccl_trace_rank_"}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        ({"command": "python x"}, "wanted a list of words"),
        ({"command": []}, "wanted a list of words"),
        ({"command": ["x"], "nodes": [2, 1]}, "the smaller number first"),
        ({"command": ["x"], "nodes": [2, 2]}, "saw no rendezvous for 2 nodes"),
    ],
)
def test_a_job_that_cannot_work_is_refused(one, wanted):
    with pytest.raises(SettingsError, match=wanted):
        plan("llama-1", SETTINGS, one, {}, "")


class Site:
    """Directories of one node, and how often torchrun and the gate were called."""

    def __init__(self, root: Path, torchrun: str, gate: str = "exit 0", **settings):
        self.root = root
        for name in ("jobs", "asked", "logs"):
            (root / name).mkdir()
        (root / "torchrun").write_text(
            f"#!/bin/sh\necho x >> {root}/starts\nstart=$(wc -l < {root}/starts)\n{torchrun}\n"
        )
        (root / "torchrun").chmod(0o755)
        given = {**SETTINGS, "torchrun": str(root / "torchrun"), "logs": str(root / "logs"), "numa_binding": "",
                 "gate": ["sh", "-c", f"echo x >> {root}/gates; {gate}"], "root": str(root), **settings}  # fmt: skip
        (root / "train.json").write_text(json.dumps(given))
        (root / "jobs" / "demo.json").write_text(json.dumps({"command": ["x.py"]}))

    def popen(self, *more: str, job: str = "demo", **environment: str):
        argv = [*TRAIN, *self.given(job), *more]
        return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})

    def tool(self, name: str, script: str) -> dict[str, str]:
        """A stand-in of a program that the launcher calls; the environment that has it."""
        (self.root / "bin").mkdir(exist_ok=True)
        (self.root / "bin" / name).write_text(f'#!/bin/sh\necho "$@" >> {self.root}/{name}\n{script}\n')
        (self.root / "bin" / name).chmod(0o755)
        return {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def given(self, job: str = "demo"):
        return [job, f"--settings={self.root}/train.json", f"--jobs={self.root}/jobs", f"--asked={self.root}/asked"]

    def run(self, *more: str, **rest):
        process = self.popen(*more, **rest)
        said = process.communicate(timeout=120)[1]
        return process.returncode, said

    def count(self, what: str) -> int:
        path = self.root / what
        return len(path.read_text().splitlines()) if path.exists() else 0


def journal(root, text, step="7", event="exception"):
    """Shell that writes what a rank says."""
    line = f'{{"event":"{event}","time":%s,"attempt":0,"rank":0,"type":"E","text":"{text}","step":{step}}}\\n'
    return f"printf '{line}' $(date +%s.%N) >> {root}/logs/demo/rank-000000.jsonl"


def test_a_fault_is_followed_by_another_start_and_each_asks_the_gate(tmp_path):
    site = Site(tmp_path, "[ $start -ge 3 ] || exit 1")
    assert site.run()[0] == 0
    assert (site.count("starts"), site.count("gates")) == (3, 3)


def test_the_same_exception_at_the_same_step_twice_is_the_programs_own(tmp_path):
    site = Site(tmp_path, f"{journal(tmp_path, 'index 9 is out of bounds')}; exit 1")
    status, said = site.run()
    assert (status, site.count("starts")) == (70, 2)
    assert "twice the same at step 7: E: index 9 is out of bounds" in said


@pytest.mark.parametrize(("text", "step"), [("Connection closed by peer", "7"), ("index 9", "$start")])
def test_what_is_not_the_programs_own_or_moves_on_is_tried_until_the_limit(tmp_path, text, step):
    line = journal(tmp_path, text, step).replace('"step":$start', "\"step\":'$start'")
    site = Site(tmp_path, f"{line}; exit 1")
    status, said = site.run()
    assert (status, site.count("starts")) == (1, 4) and f"flightline blame {tmp_path}/logs/demo" in said


def aws_without_a_bucket(where):
    """A stand-in of the AWS command line: an empty data set, which has not changed."""
    (where / "tools").mkdir()
    (where / "tools" / "aws").write_text(
        '#!/bin/sh\ncase $1 in s3) echo \'{"bucket": "b", "objects": []}\' ;; *) echo null ;; esac\n'
    )
    (where / "tools" / "aws").chmod(0o755)
    return where / "tools"


def test_what_is_told_of_a_run_is_what_the_storage_function_takes(tmp_path, monkeypatch):
    site = Site(tmp_path, "[ $start -ge 2 ] || exit 1")
    (tmp_path / "asked" / "demo.manifest").write_text("s3://results/training/demo/2026-11-22-a.json")
    monkeypatch.setenv("PATH", f"{aws_without_a_bucket(tmp_path)}:{os.environ['PATH']}")
    (tmp_path / "jobs" / "demo.json").write_text(json.dumps({"command": ["x"], "dataset": "c4", "model": "llama-70b"}))
    assert site.run()[0] == 0
    pieces = [logline.parse(line) for line in (tmp_path / "logs" / "demo" / "records.jsonl").read_text().splitlines()]
    items = [training.item(logline.join([piece]), piece.run) for piece in pieces if piece]
    assert [(one["run"], one["status"], one["dataset"]) for one in items] == [
        ("2026-11-22-a", "running", "c4"), ("2026-11-22-a", "running", "c4"), ("2026-11-22-a", "finished", "c4")]  # fmt: skip
    assert [len(one["interruptions"]) for one in items] == [0, 1, 1] and items[2]["exit_status"] == 0
    (line,) = (tmp_path / "logs" / "demo" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["TrainInterruptions"] == 1


def test_nodes_code_and_checkpoints_of_the_job_are_told(tmp_path):
    said = [
        {"event": "start", "attempt": 1},
        {"event": "together", "nodes": ["gpu-02", "gpu-01"], "code": "abc"},
        {"event": "step", "step": 8},
        {"event": "checkpoint", "step": 8, "name": "step-00000008-x"},
        {"event": "checkpoint_refused", "name": "step-00000004-x"},
        {"event": "step", "step": 9},
    ]
    text = "".join(f"{json.dumps(one)}\n" for one in said) + '{"event": "checkpoint", "step'
    site = Site(tmp_path, f"cat > {tmp_path}/logs/demo/rank-000000.jsonl <<'END'\n{text}\nEND")
    assert site.run()[0] == 0
    last = logline.parse((tmp_path / "logs" / "demo" / "records.jsonl").read_text().splitlines()[-1])
    assert last
    told = training.item(logline.join([last]), last.run)
    assert (told["nodes"], told["node_names"], told["code"], told["step"]) == (2, ["gpu-01", "gpu-02"], "abc", 9)
    assert told["checkpoints"] == [{"step": 8, "name": "step-00000008-x"}] and told["checkpoints_bad"] == 1


def test_the_cost_of_a_run_goes_on_where_an_earlier_start_of_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    before = training_run.cost_line("Flightline/demo", "demo", "demo-slurm-17", 100.0)
    other = training_run.cost_line("Flightline/demo", "demo", "demo-slurm-16", 900.0)
    site = Site(tmp_path, "exit 0", node_usd_per_hour=50.0)
    (tmp_path / "logs" / "demo").mkdir()
    (tmp_path / "logs" / "demo" / "metrics.jsonl").write_text(before + other)
    assert site.run()[0] == 0
    told = json.loads((tmp_path / "logs" / "demo" / "metrics.jsonl").read_text().splitlines()[-1])
    assert 100 < told["TrainCost"] < 110 and told["run"] == "demo-slurm-17"
    piece = logline.parse((tmp_path / "logs" / "demo" / "records.jsonl").read_text().splitlines()[-1])
    assert piece and 100 <= logline.join([piece])["cost_usd"] < 110 and piece.run == "demo-slurm-17"


def test_too_little_shared_memory_is_said_before_a_rank_hangs(monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_blocks=1024, f_frsize=65536))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert obstacles.too_small(0.05) == obstacles.too_small(0) == ""
    assert "saw 0.06 GiB, wanted 8 GiB for the ranks" in obstacles.too_small(8)


def test_root_makes_the_shared_memory_as_large_as_the_job_needs(monkeypatch):
    sizes, asked = [1024, 8 * 16384], []
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_blocks=sizes.pop(0), f_frsize=65536))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(obstacles, "ran", lambda argv, _: asked.append(argv))
    assert obstacles.too_small(8) == ""
    assert asked == [["mount", "-o", "remount,size=8192M", "/dev/shm"]]


def test_the_ranks_may_open_as_many_files_as_the_hard_limit_says(tmp_path):
    site = Site(tmp_path, f"ulimit -Sn > {tmp_path}/files; ulimit -Hn >> {tmp_path}/files")
    low = f"ulimit -Sn 256; exec {shlex.join([*TRAIN, *site.given()])}"
    done = subprocess.run(["sh", "-c", low], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0
    soft, hard = (tmp_path / "files").read_text().split()
    assert soft == hard


def test_only_the_node_of_the_rendezvous_tells(tmp_path):
    assert plan("a", SETTINGS, ONE, {}, "").about == {}
    here = {**ONE, "rendezvous": f"{socket.gethostname()}:29400"}
    assert plan("a", SETTINGS, here, {}, "").about["told"]["job"] == "a"


def test_a_record_that_cannot_be_written_is_said_and_costs_no_run(tmp_path):
    site = Site(tmp_path, "exit 0")
    (tmp_path / "logs" / "demo").mkdir()
    (tmp_path / "kept").write_text("a file of root's")
    (tmp_path / "logs" / "demo" / "records.jsonl").symlink_to(tmp_path / "kept")
    status, said = site.run()
    assert (tmp_path / "kept").read_text() == "a file of root's"
    assert status == 0 and "nobody is told that the run is finished" in said


@pytest.mark.parametrize(
    ("gate", "wanted"),
    [("echo 'NO-GO gpu_lost'; exit 1", "refuses this node (1): NO-GO gpu_lost"), ("exit 2", "refuses this node (2)")],
)
def test_a_node_that_is_not_go_does_not_start(tmp_path, gate, wanted):
    site = Site(tmp_path, "exit 0", gate)
    status, said = site.run()
    assert (status, site.count("starts")) == (77, 0) and wanted in said


def test_a_node_that_fell_ill_is_not_started_again(tmp_path):
    site = Site(tmp_path, "exit 1", f"[ $(wc -l < {tmp_path}/gates) -lt 2 ]")
    assert site.run()[0] == 77 and site.count("starts") == 1


def test_a_gate_that_is_not_there_is_no_go(tmp_path):
    site = Site(tmp_path, "exit 0")
    settings = json.loads((tmp_path / "train.json").read_text())
    (tmp_path / "train.json").write_text(json.dumps({**settings, "gate": ["/nowhere/flightline-check"]}))
    status, said = site.run()
    assert status == 77 and "no answer, which is no go" in said
    assert site.run("--no-gate")[0] == 0


RANK = 'LOCAL_RANK=0 {python} -c \'import signal, sys, time\n{handler}\nopen("{root}/ready", "w")\ntime.sleep(60)\' & wait $!'


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize(
    ("handler", "killed"),
    [("signal.signal(15, lambda *_: sys.exit(3))", False), ("signal.signal(15, signal.SIG_IGN)", True)],
    ids=["saves", "ignores it"],
)
def test_being_told_to_end_reaches_the_ranks_and_requeues(tmp_path, number, handler, killed):
    grace_s = 1.0 if killed else 60.0
    site = Site(tmp_path, RANK.format(python=sys.executable, handler=handler, root=tmp_path), grace_s=grace_s)
    process = site.popen()
    end = time.monotonic() + 60
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, number)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 75 and f"{signal.Signals(number).name}: SIGTERM to 1 ranks" in said
    assert ("killed" in said) == killed and site.count("starts") == 1


def test_a_rank_of_another_node_that_was_told_requeues_here_too(tmp_path):
    site = Site(tmp_path, f"{journal(tmp_path, '', event='requeue')}; exit 1")
    status, said = site.run()
    assert (status, site.count("starts")) == (75, 1) and "another node" in said


@pytest.mark.parametrize(
    ("job", "wanted"), [("../x", "wanted small letters"), ("other", "other.json, wanted it; do: run the role training")]
)
def test_an_unknown_job_is_status_2_in_one_sentence(tmp_path, job, wanted):
    status, said = Site(tmp_path, "exit 0").run(job=job)
    assert status == 2 and wanted in said and "Traceback" not in said


WITH_GPUS = {
    "NCCL_DEBUG",
    "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "OMP_NUM_THREADS",
    "FLIGHTLINE_PEAK_TFLOPS",
}


@pytest.mark.parametrize(
    ("instance_type", "names"),
    [
        ("p5.48xlarge", WITH_GPUS | {"NCCL_NET_PLUGIN"}),
        ("g6.2xlarge", WITH_GPUS),
        ("trn2.48xlarge", set()),
        ("none", set()),
    ],
)
def test_the_environment_follows_from_the_instance_type_and_names_its_sources(instance_type, names):
    found = training_environment.variables(resolve(instance_type, {}))
    assert {variable.name for variable in found} == names and all(variable.source for variable in found)


def test_figures_of_the_environment():
    assert training_environment.environment(resolve("p5.48xlarge", {}))["OMP_NUM_THREADS"] == "12"
    assert training_environment.numa_binding(resolve("p5.48xlarge", {})) == "node"
    assert training_environment.numa_binding(resolve("none", {})) == ""
