"""Another program than the reference job: torchtitan's debug model under the role's launcher resumes after a lost rank.

Real: torchtitan 0.2.0, its FSDP2, loader and asynchronous checkpoints, torchrun. What stands in: the CPU for GPUs
(titan_cpu.py), a tokenizer of bytes, a page of ours for C4.
"""

import json
import os
import re
import signal
import subprocess
import time

from tests.node_programs import TRAIN

from . import table
from .conftest import DATA
from .launch import DEADLINE_S, PYTHON, ROOT

INTERVAL, STEPS = 5, 40
GIVEN = {
    "model.name": "llama3", "model.flavor": "debugmodel", "training.dataset": "c4_test", "training.seq_len": 64,
    "training.local_batch_size": 1, "training.steps": STEPS, "training.mixed_precision_param": "float32",
    "checkpoint.interval": INTERVAL, "checkpoint.async_mode": "async", "checkpoint.keep_latest_k": 3,
    "activation_checkpoint.mode": "none", "metrics.log_freq": 1,
}  # fmt: skip
STARTS = re.compile(r"Training starts at step (\d+)")
STEP = re.compile(r"step: +(\d+) ")


def assets(place):
    """What torchtitan wants beside itself: a tokenizer, which has a token for each byte, and text."""
    code = ("import sys; from tokenizers import Tokenizer, models, pre_tokenizers as p; a = sorted(p.ByteLevel.alphabet()); "
            "t = Tokenizer(models.BPE({c: n for n, c in enumerate(['<s>', '</s>', *a])}, [])); t.pre_tokenizer = p.ByteLevel(); "
            "t.save(sys.argv[1])")  # fmt: skip
    for name in ("assets", "text"):
        (place / name).mkdir()
    subprocess.run([PYTHON, "-c", code, place / "assets" / "tokenizer.json"], check=True)
    (place / "assets" / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": "</s>"}')
    lines = [DATA[at : at + 2000].decode(errors="replace") for at in range(0, len(DATA), 2000)]
    (place / "text" / "data.json").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))


def options(place):
    """torchtitan's, of a small run below a place that has the assets."""
    paths = {"model.hf_assets_path": "assets", "training.dataset_path": "text", "job.dump_folder": "out"}
    return [f"--{name}={value}" for name, value in {**GIVEN, **{key: place / at for key, at in paths.items()}}.items()]


def launched(place):
    """The launcher with torchtitan as a job of two ranks."""
    torchrun = place / "torchrun"
    torchrun.write_text(f'#!/bin/sh\nexec {PYTHON} -m torch.distributed.run "$@"\n')
    torchrun.chmod(0o755)
    command = ["-m", "tests.training.titan_cpu", "--checkpoint.enable", *options(place)]
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "hf")}
    settings = {"torchrun": str(torchrun), "ranks": 2, "environment": environment, "gate": [], "logs": str(place / "logs"),
                "restarts": 3, "pause_s": 1, "join_s": 60, "grace_s": 60}  # fmt: skip
    (place / "jobs").mkdir()
    (place / "train.json").write_text(json.dumps(settings))
    (place / "jobs" / "titan.json").write_text(json.dumps({"command": command, "workdir": str(place)}))
    argv = [
        *TRAIN,
        "titan",
        f"--settings={place}/train.json",
        f"--jobs={place}/jobs",
        f"--asked={place}/none",
    ]
    with (place / "out.txt").open("w") as file:
        return subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT)


def rank(number, place):
    """Process id of a rank of this run."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environ = file.read().split(b"\0")
        except OSError:
            continue
        if f"RANK={number}".encode() in environ and f"HF_HOME={place / 'hf'}".encode() in environ:
            return int(pid)
    raise AssertionError(f"saw no rank {number}")


def test_torchtitan_goes_on_from_its_own_checkpoint(place):
    assets(place)
    text = (place / "out.txt").read_text
    process = launched(place)
    try:
        saved = place / "out" / "checkpoint" / f"step-{INTERVAL}" / ".metadata"
        table.until(lambda: saved.exists() or process.poll() is not None, "a checkpoint of torchtitan")
        assert saved.exists(), text()[-4000:]
        os.kill(rank(1, place), signal.SIGKILL)
        killed = time.time()
        again = table.until(lambda: set(STARTS.findall(text())) > {"1"} and text(), "a start that goes on")
        begun = [int(step) for step in STARTS.findall(again)]
        assert (begun[-1] - 1) % INTERVAL == 0
        table.until(lambda: str(begun[-1]) in STEP.findall(text()[len(again) :]), "a step of it")
        lost = max(int(step) for step in STEP.findall(again)) - begun[-1] + 1
        table.ROWS.append(
            table.Row("SIGKILL of a rank of torchtitan, launcher starts again", "nobody", time.time() - killed, lost)
        )
        assert process.wait(DEADLINE_S) == 0, text()[-4000:]
        assert str(STEPS) in STEP.findall(text())
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(DEADLINE_S)
