"""The deep stage through srun alone, on a real Slurm (Debian's): three slurmd on this machine, no Ansible on a node.

The test program is a shell script that prints nccl-tests' table with the bandwidth that its file for the node says:
nothing is measured here, what is tried is who starts it, where, and what becomes of it.
"""

import os
import subprocess
import sys

import pytest

from flightline.fabric.ansible import FabricRequest
from flightline.fabric.by_launcher import LauncherRounds
from flightline.fabric.drive import READY, FabricNodes, drive
from flightline.run.launchers.slurm import SlurmLauncher
from flightline_host.trial import collective
from flightline_node.know.expected import resolve
from tests.beds import program, until
from tests.healing import slurmbed
from tests.unit.fabric.test_drive import log

pytestmark = slurmbed.NEEDED

PROGRAM = """#!/bin/sh
[ "$SLURM_PROCID" = 0 ] || exit 0
busbw=10.00
for node in $(scontrol show hostnames "$SLURM_STEP_NODELIST"); do
    [ ! -e {place}/hung-$node ] || sleep 300
    [ ! -e {place}/slow-$node ] || busbw=2.00
done
sed "s/10[.]00/$busbw/g" {place}/log-$SLURM_STEP_NUM_NODES
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), 4) as made:
        yield made


@pytest.fixture
def play(slurm, tmp_path, monkeypatch):
    for key, value in slurm.env.items():
        monkeypatch.setenv(key, value)
    for count in (2, 3, 4):
        (tmp_path / f"log-{count}").write_text(log(10.0, nodes=count))
    program(tmp_path / "all_reduce_perf", PROGRAM.format(place=tmp_path))
    ring = tuple(slurm.names)
    fleet = FabricNodes(ring, {name: name for name in ring}, resolve("none"), ("all_reduce",), ranks=1)
    asked = FabricRequest((), program=(str(tmp_path / "{collective}_perf"),), launcher="srun", deadline_s=8)
    run_id = f"s{os.getpid()}x{tmp_path.name[-8:].strip('_').replace('_', '-')}"
    return LauncherRounds(asked, fleet, run_id, SlurmLauncher())


def test_the_slow_node_is_named_by_tests_that_srun_starts_from_here(play, tmp_path):
    (tmp_path / "slow-n3").touch()
    result = drive(play.fleet, play, tmp_path / "logs", lambda _: None)
    assert [(blame.kind, blame.nodes) for blame in result.found] == [("node", ("n3",))], result.found
    assert result.healthy == ["n1", "n2", "n4"] and not result.left_out


def test_a_node_that_slurm_has_drained_is_left_out_with_its_word(play, slurm, tmp_path):
    slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
    try:
        answers = play(READY, {}, "")
        assert answers["n2"].lost and "drained" in answers["n2"].trouble and not answers["n1"].trouble
    finally:
        slurm.run("scontrol", "update", "NodeName=n2", "State=RESUME")


def test_a_hung_rank_is_ended_on_every_node_at_its_deadline(play, tmp_path):
    (tmp_path / "hung-n4").touch()
    answers = play("r1", {"n1": ["n1", "n2"], "n3": ["n3", "n4"]}, "all_reduce")
    assert answers["n1"].facts["rc"] == 0 and answers["n3"].facts["timed_out"]
    assert not collective.strays(f"{play.run_id}-r1-2")


KILLED = """
import sys
sys.path.insert(0, {root!r})
from flightline.run.launchers.slurm import SlurmLauncher
from flightline_host.trial import collective
from flightline_host.host import Host
collective.run(Host(), {{"id": {job!r}, "nodes": ["n1", "n2"], "ranks": 1, "program": ["/bin/sleep", "300"], "deadline_s": 6,
    "environment": {{}}, "launcher": "srun", "launcher_options": [], "search": []}})
"""


def test_sigkill_of_who_started_it_leaves_no_rank(play, slurm):
    """Nobody is left to end the ranks: each ends by its own deadline, on its own node."""
    job, root = f"{play.run_id}-killed", os.getcwd()
    text = KILLED.format(root=root, job=job)
    starter = subprocess.Popen([sys.executable, "-c", text], env={**os.environ, **slurm.env})

    def asleep():
        return list(collective.strays(job).values()).count("sleep")

    until(lambda: asleep() >= 2)
    assert asleep() == 2
    starter.kill()
    starter.wait()
    until(lambda: not collective.strays(job))
    assert collective.strays(job) == {}
