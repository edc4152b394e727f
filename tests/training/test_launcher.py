"""The role's launcher around real torchrun: it starts again after a fault until the run is done, on one node and on two.

Two nodes are two launchers on this machine, each with its own torchrun; the rendezvous is c10d's own, over loopback.
"""

import json
import os
import signal
import subprocess
import time

from tests.beds import free_port
from tests.node_programs import TRAIN

from . import table
from .launch import DEADLINE_S, EVERY, HANG, HANG_S, PYTHON, ROOT, SIZES, STEPS, curve, events


class Node:
    """One launcher. Nodes of a run share data, checkpoints and journals."""

    def __init__(self, place, name="node-0", *more, ranks=2, nodes=1, port=0, workdir=ROOT, checkpoints=None, **rest):
        self.place = place
        home = place / name
        for folder in ("jobs", "asked"):
            (home / folder).mkdir(parents=True)
        torchrun = home / "torchrun"
        torchrun.write_text(f'#!/bin/sh\nexec {PYTHON} -m torch.distributed.run "$@"\n')
        torchrun.chmod(0o755)
        settings = {"torchrun": str(torchrun), "ranks": ranks, "environment": {"OMP_NUM_THREADS": "1", "FLIGHTLINE_NODE": name, "PYTHONPATH": str(ROOT)},
                    "gate": [], "logs": str(home / "logs"), "restarts": 8, "pause_s": 1, "join_s": 60, "grace_s": 60, **rest}  # fmt: skip
        sizes = [f"--{key}={value}" for key, value in SIZES.items()]
        command = ["-m", "training.job", "--data", place / "data.bin", "--checkpoints", checkpoints or place / "ck", "--journal", place / "logs",
                   *sizes, "--steps", STEPS, "--checkpoint-every", EVERY, *more]  # fmt: skip
        one = {"command": list(map(str, command)), "workdir": str(workdir), "journal": str(place / "logs"), "nodes": [nodes, nodes],
               "rendezvous": f"127.0.0.1:{port}"}  # fmt: skip
        (home / "train.json").write_text(json.dumps(settings))
        (home / "jobs" / "demo.json").write_text(json.dumps(one))
        argv = [
            *TRAIN,
            "demo",
            f"--settings={home}/train.json",
            f"--jobs={home}/jobs",
            f"--asked={home}/asked",
        ]
        self.out = home / "out.txt"
        with self.out.open("w") as file:
            self.process = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE_S)

    def ended(self) -> int:
        return self.process.wait(DEADLINE_S)

    def text(self):
        return self.out.read_text()[-5000:]


def wait_for(place, rank, name, why, attempt=0, step=0):
    """The first such event of a start that is at least so far."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        for event in events(place / "logs", rank):
            if event["event"] == name and event["attempt"] >= attempt and event.get("step", 0) >= step:
                return event
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE_S:.0f} s: {why}")


def kill(place, rank, number=signal.SIGKILL):
    os.kill(wait_for(place, rank, "start", "a start")["pid"], number)
    return time.time()


def test_a_killed_rank_is_started_again_without_a_person(place, whole):
    with Node(place) as node:
        wait_for(place, 0, "checkpoint", "a checkpoint", step=2 * EVERY)
        killed = kill(place, 1)
        resumed = wait_for(place, 0, "step", "a step of the second start", attempt=1)
        assert node.ended() == 0, node.text()
        assert resumed["step"] > 0
    table.add("SIGKILL of a rank, launcher starts again", "rank 1 vanished", place / "logs", killed)
    assert curve(place / "logs") == whole


def test_a_stopped_rank_is_ended_and_the_run_goes_on_without_a_person(place, whole):
    with Node(place, "node-0", HANG) as node:
        wait_for(place, 0, "checkpoint", "a checkpoint", step=2 * EVERY)
        stopped = kill(place, 1, signal.SIGSTOP)
        assert node.ended() == 0, node.text()
    fault = f"SIGSTOP of a rank (timeout {HANG_S} s), launcher starts again"
    table.add(fault, "rank 1 hung", place / "logs", stopped)
    assert curve(place / "logs") == whole


def test_two_nodes_meet_again_after_one_lost_a_rank(place, whole):
    one = {"ranks": 1, "nodes": 2, "port": free_port()}
    with Node(place, "node-0", **one) as first, Node(place, "node-1", **one) as second:
        wait_for(place, 0, "checkpoint", "a checkpoint", step=2 * EVERY)
        killed = kill(place, 1)
        resumed = wait_for(place, 0, "step", "a step of the second start", attempt=1)
        assert (first.ended(), second.ended()) == (0, 0), first.text() + second.text()
        assert resumed["step"] > 0
    table.add("SIGKILL of a rank of two nodes, launchers meet again", "rank 1 vanished", place / "logs", killed)
    assert curve(place / "logs") == whole
    hosts = {event["host"] for rank in (0, 1) for event in events(place / "logs", rank) if event["event"] == "start"}
    assert hosts == {"node-0", "node-1"}


def test_the_notice_saves_and_ends_with_the_code_that_requeues(place):
    with Node(place, "node-0", "--steps", "100000") as node:
        wait_for(place, 0, "step", "a step", step=EVERY + 1)
        node.process.send_signal(signal.SIGUSR1)
        assert node.ended() == 75, node.text()
    saved = wait_for(place, 0, "requeue", "the end")["step"]
    assert list((place / "ck").glob(f"step-{saved:08d}-*/manifest.json"))
    assert "SIGUSR1: SIGTERM to 2 ranks" in node.text()


def test_the_programs_own_fault_is_not_repeated_for_ever(place):
    with Node(place, "node-0", "--rate", "1e30", "--warm-up", "1") as node:
        assert node.ended() == 70, node.text()
    starts = [event for event in events(place / "logs", 0) if event["event"] == "start"]
    assert len(starts) == 2 and "twice the same at step" in node.text()
    (one,) = table.blame(place / "logs")
    assert (one.kind, one.node) == ("failed", "node-0") and "LossError" in one.why


def test_nodes_that_do_not_share_the_checkpoints_do_not_begin(place, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "ck").mkdir(parents=True)
    one = {"ranks": 1, "nodes": 2, "port": free_port(), "checkpoints": "ck", "restarts": 0}
    first = Node(place, "node-0", **one, workdir=tmp_path / "a")
    with first, Node(place, "node-1", **one, workdir=tmp_path / "b") as second:
        assert (first.ended(), second.ended()) == (1, 1), first.text() + second.text()
    text = wait_for(place, 0, "exception", "why")["text"]
    assert "1 of 2 ranks do not see what rank 0 writes there" in text
    assert not [event for event in events(place / "logs", 0) if event["event"] == "step"]


def test_fewer_nodes_than_needed(place):
    with Node(place, "node-0", nodes=2, port=free_port(), ranks=1, restarts=0, join_s=5) as node:
        assert node.ended() == 1
        assert "no rank was started" in node.text() and "fewer than 2 nodes came within 5 s" in node.text()
