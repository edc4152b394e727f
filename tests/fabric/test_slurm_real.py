"""The Slurm launcher on a real Slurm (Debian's slurmctld, slurmd, munged): three slurmd on this machine."""

import os
import subprocess
import time

import pytest

from flightline_host.host import Host
from flightline_host.trial import collective
from tests.beds import until
from tests.healing import slurmbed

pytestmark = slurmbed.NEEDED

SAY = 'echo "rank $SLURM_PROCID on $SLURMD_NODENAME"'


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), 3) as made:
        yield made


def run(slurm, name, script, deadline_s=20, monkeypatch=None, nodes=None):
    for key, value in slurm.env.items():
        monkeypatch.setenv(key, value)
    given = {
        "state": "run", "id": name, "nodes": nodes or slurm.names, "ranks": 1, "program": ["/bin/sh", "-c", script],
        "deadline_s": deadline_s, "environment": {"NCCL_DEBUG": "INFO"}, "launcher": "srun", "launcher_options": [],
        "search": [],
    }  # fmt: skip
    return collective.run(Host(), given)


def gone(name, within_s=15):
    return until(lambda: not collective.strays(name), within_s)


def test_every_rank_runs_on_its_node_and_its_log_comes_back(slurm, monkeypatch):
    answer = run(slurm, "s1", f'{SAY}; echo "$NCCL_DEBUG $FLIGHTLINE_COLLECTIVE"', monkeypatch=monkeypatch)
    assert answer["rc"] == 0 and not answer["timed_out"], answer
    said = answer["output"].splitlines()
    assert sorted(line for line in said if line.startswith("rank")) == [f"rank {at} on n{at + 1}" for at in range(3)]
    assert said.count("INFO s1") == 3 and gone("s1")


def test_a_hung_rank_meets_the_deadline_on_every_node_and_leaves_nothing(slurm, monkeypatch):
    began = time.monotonic()
    answer = run(slurm, "s2", f"{SAY}; trap '' TERM; sleep 300 & wait; sleep 300", 4, monkeypatch)
    assert answer["timed_out"] and answer["rc"] != 0 and time.monotonic() - began < 60, answer
    assert {f"rank {at} on n{at + 1}" for at in range(3)} <= set(answer["output"].splitlines())
    assert gone("s2") and slurm.run("squeue", "-h").stdout.strip() == ""


def test_a_rank_that_dies_ends_the_others(slurm, monkeypatch):
    began = time.monotonic()
    answer = run(slurm, "s3", f'{SAY}; [ "$SLURM_PROCID" = 1 ] && kill -9 $$; sleep 300', 60, monkeypatch)
    assert answer["rc"] not in (0, None) and time.monotonic() - began < 50, answer
    assert gone("s3")


def test_a_killed_launcher_leaves_no_rank_beyond_the_deadline(slurm, monkeypatch):
    for key, value in slurm.env.items():
        monkeypatch.setenv(key, value)
    given = ("s4", tuple(slurm.names), 1, ("/bin/sleep", "300"), 5, {}, "srun")
    argv = collective.argv_of(collective.Test(*given), "/usr/bin/srun")
    process = subprocess.Popen(argv, env={**os.environ, collective.MARK: "s4"})
    until(lambda: len(_sleeping("s4")) >= 3, 30)
    assert len(_sleeping("s4")) == 3
    process.kill()
    process.wait(10)
    assert gone("s4", 30)


def _sleeping(name):
    return [pid for pid, comm in collective.strays(name).items() if comm == "sleep"]


def test_a_node_that_slurm_does_not_know_is_said(slurm, monkeypatch):
    answer = run(slurm, "s5", SAY, 5, monkeypatch, nodes=["n1", "n9"])
    assert answer["rc"] != 0 and "Invalid node name" in answer["output"]
