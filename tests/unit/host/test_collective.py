"""One program over several nodes: the launchers' command lines, the deadline, and what is ended."""

import os
import subprocess
import sys
import time

import pytest

from flightline_host.host import Host, Problem
from flightline_host.trial import collective
from tests.unit.made import program

GIVEN = {
    "state": "run", "id": "r1", "nodes": ["10.0.0.1", "n2"], "ranks": 2, "program": [sys.executable, "-c", "print(1)"],
    "deadline_s": 20, "environment": {"NCCL_DEBUG": "INFO"}, "launcher": "mpirun", "launcher_options": ["--x"], "search": [],
}  # fmt: skip


def launcher(tmp_path, text, name="mpirun"):
    """A stand-in for a launcher: it runs what follows the options that end with --x, here."""
    return str(program(tmp_path / name, text).parent)


def test_mpirun_gets_hosts_ranks_environment_and_a_deadline_for_every_rank():
    argv = collective.argv_of(collective.test_of(GIVEN), "/bin/mpirun")
    text = " ".join(argv)
    assert (
        "--host 10.0.0.1:2,n2:2 --map-by ppr:2:node -x FLIGHTLINE_COLLECTIVE -x NCCL_DEBUG --x timeout -k 5 20" in text
    )
    assert argv[-3:] == GIVEN["program"] and ("--allow-run-as-root" in argv) == (os.geteuid() == 0)


def test_srun_gets_nodes_and_a_time_limit_and_ends_all_ranks_with_the_first():
    argv = collective.argv_of(collective.test_of({**GIVEN, "launcher": "srun", "deadline_s": 300}), "/bin/srun")
    assert {"--nodes=2", "--nodelist=10.0.0.1,n2", "--ntasks-per-node=2", "--time=6", "--kill-on-bad-exit=1"} <= set(
        argv
    )


@pytest.mark.parametrize(
    "wrong",
    [{"nodes": []}, {"nodes": ["-n2"]}, {"nodes": ["a b"]}, {"nodes": ["a,b"]}, {"id": "a b"}, {"id": ""},
     {"program": []}, {"program": ["perf"]}, {"program": ["/no/such"]}],
)  # fmt: skip
def test_what_could_not_be_a_test_is_refused(wrong, tmp_path):
    search = [launcher(tmp_path, "exit 0")]
    with pytest.raises(Problem):
        collective.run(Host(), {**GIVEN, "search": search, **wrong})


def test_a_missing_launcher_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="no mpirun on this node"):
        collective.run(Host(), GIVEN)


def test_output_status_and_time_come_back(tmp_path):
    search = [launcher(tmp_path, "echo out; echo err >&2; exit 3")]
    answer = collective.run(Host(), {**GIVEN, "search": search})
    assert answer["rc"] == 3 and answer["output"].split() == ["out", "err"] and not answer["timed_out"]


def test_a_launcher_that_does_not_end_is_ended_with_what_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(collective, "LAUNCH_S", 0)
    monkeypatch.setattr(collective, "GRACE_S", 1)
    search = [launcher(tmp_path, "trap '' TERM; sleep 300 & wait; wait")]
    began = time.monotonic()
    answer = collective.run(Host(), {**GIVEN, "search": search, "deadline_s": 1})
    assert answer["timed_out"] and time.monotonic() - began < 100
    # Killed with its group, which the kernel ends one after the other.
    while collective.strays("r1"):
        assert time.monotonic() - began < 100
        time.sleep(0.01)


def test_an_endless_log_keeps_its_beginning_and_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(collective, "MAX_OUTPUT_BYTES", 1000)
    search = [launcher(tmp_path, "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last")]
    text = collective.run(Host(), {**GIVEN, "search": search})["output"]
    assert (
        text.startswith("first")
        and text.rstrip().endswith("last")
        and "bytes are left out" in text
        and len(text) < 1200
    )


def test_only_processes_of_this_test_are_ended():
    ours, others = (
        subprocess.Popen(["sleep", "300"], env={**os.environ, collective.MARK: name}) for name in ("mine-1", "mine-12")
    )
    try:
        while len(collective.strays("mine-1")) < 1:
            time.sleep(0.01)
        assert collective.end("mine-1") == {"strays": ["sleep"], "left": []}
        assert ours.wait(60) != 0 and others.poll() is None
    finally:
        others.kill()
        others.wait()


def test_check_mode_ends_nothing():
    process = subprocess.Popen(["sleep", "300"], env={**os.environ, collective.MARK: "mine-2"})
    try:
        while not collective.strays("mine-2"):
            time.sleep(0.01)
        outcome = collective.ensure(Host(), {**GIVEN, "state": "ended", "id": "mine-2"}, True)
        assert outcome.facts["strays"] == ["sleep"] and process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_ready_says_which_machine_this_is_and_what_is_missing(tmp_path):
    facts = collective.ensure(
        Host(), {**GIVEN, "state": "ready", "search": [launcher(tmp_path, "exit 0")]}, False
    ).facts
    assert facts["problems"] == [] and os.uname().nodename in facts["machine"]
    facts = collective.ensure(
        Host(), {**GIVEN, "state": "ready", "program": ["/no/such"], "launcher": "srun"}, False
    ).facts
    assert "no program /no/such" in facts["problems"]


def test_of_the_middle_of_a_long_log_what_proves_each_ranks_transport_is_kept(tmp_path, monkeypatch):
    """NCCL's lines here are hand-written."""
    monkeypatch.setattr(collective, "MAX_OUTPUT_BYTES", 2000)
    lines = [
        f"h{at}:{at}:{at} [0] NCCL INFO {text}" for at in range(200) for text in ("Using network Libfabric", "x" * 99)
    ]
    log = tmp_path / "log"
    log.write_text("\n".join(lines) + "\n")
    search = [launcher(tmp_path, f"cat {log}")]
    text = collective.run(Host(), {**GIVEN, "search": search})["output"]
    assert all(f"h{at}:{at}:{at} [0] NCCL INFO Using network Libfabric" in text for at in range(12, 190))
    assert text.count("x" * 99) < 30 and "bytes are left out" in text
