"""Idle nodes are lent for a proof by a real Slurm, and given back to a job that arrives."""

import os
import signal
import tempfile
import time
from dataclasses import dataclass, field

import pytest

from flightline.demo import inventory
from flightline.healing import act
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.stamps import now_utc
from flightline.healing.request import HealingRequest
from flightline.healing.site import SitePolicy
from flightline.healing.steps.idle import begin
from flightline.healing.steps.prove import Preflight
from flightline.healing.steps.slurm import PROOF, SlurmScheduler
from tests.beds import flightline, processes, until
from tests.healing import slurmbed
from tests.healing.test_kills import born

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    slurmbed.NEEDED,
]
MOST_WAIT_S = 10.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), 4) as made:
        yield made


@pytest.fixture(autouse=True)
def slurm(cluster, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    yield SlurmScheduler()
    cluster.run("scontrol", "delete", f"ReservationName={PROOF}", check=False)
    cluster.run("scancel", "--user=root")
    cluster.idle_again()


@dataclass
class Burn:
    """A preflight that takes as long as it is let; the test's own, for no node has a GPU here."""

    found_sick: list = field(default_factory=list)
    over: bool = False
    stopped: bool = False

    def begin(self, hosts, level):
        self.hosts = hosts
        return self

    def stop(self):
        self.stopped = not self.over

    def sick(self):
        return self.found_sick


def proof_of(slurm, burn, chosen, stop_why):
    """Untyped: a Burn has all that begin() asks of a Preflight."""
    return begin(slurm, burn, chosen, stop_why)


def lent(cluster):
    return PROOF in cluster.run("scontrol", "show", "reservation").stdout


def submitted(cluster, *words):
    return cluster.run("sbatch", "--parsable", "-o", "/dev/null", *words, input="#!/bin/sh\nsleep 300\n").stdout.strip()


def started_within(cluster, job):
    began = time.monotonic()
    until(lambda: cluster.job_state(job) == "RUNNING", MOST_WAIT_S, "the job starts", 0.1)
    return time.monotonic() - began


@pytest.mark.parametrize("words", [["-N4"], ["-N1", "-w", "n2"]])
def test_a_job_that_arrives_in_the_middle_starts_within_10_s(cluster, slurm, words):
    proof = proof_of(slurm, Burn(), [(name, "deep") for name in ("n1", "n2", "n3")], lambda: "")
    time.sleep(5)
    assert lent(cluster) and not proof.wait(0)
    assert not any(place.foreign for place in slurm.places(cluster.names).values()), "ours is nobody else's"
    took_s = started_within(cluster, submitted(cluster, *words))
    assert took_s < MOST_WAIT_S and proof.wait(1) and not lent(cluster)
    assert "waits" in proof.why and proof.judging.stopped


def test_a_job_that_finds_room_or_could_not_start_anyway_ends_no_proof(cluster, slurm):
    cluster.sleep_on("n4")
    proof = proof_of(slurm, Burn(), [("n1", "deep"), ("n4", "deep")], lambda: "")
    assert proof.hosts == ["n1"], "n4 got a job meanwhile"
    started_within(cluster, submitted(cluster, "-N2"))
    submitted(cluster, "-N4")
    submitted(cluster, "-N1", "--hold")
    submitted(cluster, "-N1", "-w", "n4")
    assert not proof.wait(6), proof.why
    proof.end()
    assert not lent(cluster)


def test_nothing_is_begun_while_a_job_waits_for_the_node(cluster, slurm):
    cluster.run("scontrol", "create", "reservation", f"ReservationName={PROOF}", "Nodes=n1", "Users=root",
                "StartTime=now", "Duration=5", "Flags=MAINT,IGNORE_JOBS")  # fmt: skip
    job = submitted(cluster, "-w", "n1")
    until(lambda: slurm.waiting(["n1"], now_utc()), 10)
    assert proof_of(slurm, Burn(), [("n1", "standard")], lambda: "") is None
    slurm.give_back()
    started_within(cluster, job)


def test_one_that_was_found_sick_stays_held_until_it_is_out_of_service(cluster, slurm):
    burn = Burn(["n2"])
    proof = proof_of(slurm, burn, [("n1", "deep"), ("n2", "deep")], lambda: "")
    burn.over = True
    assert proof.wait(10) and not proof.why
    until(lambda: "Nodes=n2 " in cluster.run("scontrol", "-o", "show", "reservation").stdout, 5)
    slurm.drain("n2", "flightline: dcgm_diag by remediate at deep for dcgm_diag.failed run R")
    slurm.give_back()
    assert slurm.place("n2").ours and not lent(cluster)
    slurm.resume("n2")


def test_ended_by_a_pause_and_by_a_persons_drain_or_reservation(cluster, slurm):
    paused = []
    proof = proof_of(slurm, Burn(), [("n1", "deep")], lambda: "".join(paused))
    paused.append("paused by ada")
    assert proof.wait(10) and proof.why == "paused by ada"
    proof = proof_of(slurm, Burn(), [("n1", "deep"), ("n2", "deep")], lambda: "")
    cluster.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=ada: disk")
    assert proof.wait(10) and "n2" in proof.why and not lent(cluster)
    assert slurm.place("n2").reason == "ada: disk"
    cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    proof = proof_of(slurm, Burn(), [("n1", "deep")], lambda: "")
    theirs = ("Nodes=n1", "Users=root", "StartTime=now", "Duration=5")
    cluster.run("scontrol", "create", "reservation", "ReservationName=ada", *theirs)
    assert proof.wait(20) and "reserved" in proof.why and not lent(cluster)
    until(lambda: slurm.place("n1").foreign, 15, "theirs stays")
    cluster.run("scontrol", "delete", "ReservationName=ada")


@pytest.fixture
def hosts(tmp_path):
    """An inventory of the bed's nodes, simulated: level quick does not see that n2's GPU is slow."""
    text = inventory.render(4, "p5.48xlarge", [("gpu_slow", "gpu-02")])
    (tmp_path / "hosts.yml").write_text(text.replace("gpu-0", "n"))
    return str(tmp_path / "hosts.yml")


def test_a_real_preflight_gives_way_to_a_job_and_says_nothing_of_who_had_not_answered(cluster, slurm, tmp_path, hosts):
    prover = Preflight((hosts,), tmp_path / "runs.sqlite")
    proof = begin(slurm, prover, [("n1", "standard"), ("n3", "standard")], lambda: "")
    place = str(proof.judging.place)
    assert until(lambda: [line for line in processes(place) if "ansible-playbook" in line], 30, "nodes are asked")
    assert started_within(cluster, submitted(cluster, "-N4")) < MOST_WAIT_S
    assert proof.wait(1) and not processes(place) and proof.judging.keep() == ""


def test_killed_in_the_middle_the_next_round_gives_back_and_without_one_it_ends_by_itself(
    cluster, slurm, tmp_path, hosts
):
    def work():
        begin(slurm, Preflight((hosts,), tmp_path / "runs.sqlite"), [("n1", "deep"), ("n2", "deep")], lambda: "")
        time.sleep(60)

    tempfile.tempdir = str(tmp_path)
    child = born(work)
    tempfile.tempdir = None
    until(lambda: lent(cluster) and processes(f"{tmp_path}/flightline-proof-"), 30, "it is under way")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert lent(cluster)
    assert "Duration=00:15:00" in cluster.run("scontrol", "-o", "show", "reservation").stdout
    job = submitted(cluster, "-N4")
    assert slurm.give_back() == ["n1", "n2"] and slurm.give_back() == []
    assert started_within(cluster, job) < MOST_WAIT_S
    until(lambda: not processes(f"{tmp_path}/flightline-proof-"), 15, "nothing that it began goes on")


def test_a_round_proves_what_is_due_and_takes_out_what_is_sick(cluster, slurm, tmp_path, monkeypatch, hosts):
    store = tmp_path / "runs.sqlite"
    flightline("preflight", "-i", hosts, "--store", store, check=True)
    monkeypatch.setattr(act, "publish", lambda _: None)
    said = []

    def rounds(**policy):
        site = SitePolicy(prove=1, prove_percent=50, **policy)
        asked = HealingRequest("latest", (hosts,), "slurm", False, site, str(store), 1.0)
        act.do(asked, lambda *_: None, said.append, None)

    cluster.run("scontrol", "create", "reservation", f"ReservationName={PROOF}", "Nodes=n4", "Users=root",
                "StartTime=now", "Duration=15", "Flags=MAINT,IGNORE_JOBS")  # fmt: skip
    rounds()
    assert slurm.place("n2").claim.level == "standard", said
    assert not any(slurm.place(name).out for name in ("n1", "n3", "n4")) and not lent(cluster)
    with SqliteLedger(store) as ledger:
        (one,) = ledger.incidents()
    assert (one.host, one.level) == ("n2", "standard") and "gpu_load" in {trouble.check for trouble in one.troubles}
    rounds()
    aged = ("runs", "--store", store, "--max-age", "1", "--nodes")
    assert [flightline(*aged, names).returncode for names in ("n1,n[3-4]", "n[1-4]")] == [0, 1], said
    slurm.resume("n2")
