"""The controller on a real Slurm: Debian's slurmctld and slurmd with real jobs. Nodes' faults are made by the test."""

import shlex
import time

import pytest

from flightline.healing.controller import Controller
from flightline.healing.journal.lease import RenewedLease
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.stamps import seconds
from flightline.healing.plan.observe import from_claim
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import Ports
from flightline.healing.steps.slurm import SchedulerError, SlurmScheduler
from flightline.report.copies import no_go_claim, of_hosts
from flightline_node.watch import claim
from tests.beds import until
from tests.healing import slurmbed
from tests.healing.control import Running, groups, sighting
from tests.healing.world import World

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    slurmbed.NEEDED,
]
NODES = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), NODES) as made:
        yield made


@pytest.fixture
def heal(cluster, tmp_path, monkeypatch):
    """Rounds of a controller with Slurm as its scheduler and a world's nodes; gives back the incidents."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    world, clock = World(tmp_path / "world").make(cluster.names), Running()

    def rounds(count, hosts=(), timeout_s=15.0, told=(), **policy):
        """told: nodes of which only Slurm tells."""
        with SqliteLedger(tmp_path / "runs.sqlite") as ledger:
            for number in range(count):
                lease = ledger.acquire("test", clock.seconds(), 60)
                assert lease
                kept = RenewedLease(ledger, lease, clock.seconds, 60)
                ports = Ports(SlurmScheduler(timeout_s=timeout_s), world, world)
                one = Controller(
                    ledger, ports, SitePolicy(budget_percent=50, lost_percent=100, **policy), kept, clock=clock
                )
                seen = [sighting(world, clock, host) for host in hosts] if number == 0 else []
                places = SlurmScheduler().places(told) if told else {}
                seen += [from_claim(host, "", "p5", place, clock()) for host, place in places.items()]
                one.round([each for each in seen if each], groups(world))
                ledger.give_up(lease)
            return ledger.incidents()

    rounds.world = world  # type: ignore[attr-defined]  # tests ask it of the function
    return rounds


def test_drain_wait_repair_prove_resume(cluster, heal):
    heal.world.set("n1", fault="REBOOT")
    job, other = cluster.sleep_on("n1"), cluster.sleep_on("n2")
    (one,) = heal(3, ["n1", "n2"])
    assert str(one.state) in ("quarantined", "draining")
    assert cluster.job_state(job) == "RUNNING"
    assert (
        SlurmScheduler()
        .place("n1")
        .reason.startswith("flightline: xid GPU 3 by remediate at quick for unnamed run at_")
    )
    cluster.run("scancel", job)
    until(lambda: not SlurmScheduler().place("n1").jobs, 20)
    (one,) = heal(6)
    assert [str(event.what) for event in one.events][-1] == "returned"
    assert not SlurmScheduler().place("n1").out
    assert cluster.job_state(other) == "RUNNING"
    again = cluster.sleep_on("n1")
    assert cluster.job_state(again) == "RUNNING"
    cluster.run("scancel", again, other)


def test_a_running_job_says_when_it_saves_next(cluster, heal):
    job = cluster.sleep_on("n1")
    cluster.run("scontrol", "update", f"JobId={job}", "Comment=run 4 flightline:checkpoint=30")
    (one,) = SlurmScheduler().place("n1").jobs
    cluster.run("scancel", job)
    assert (one.id, one.name, one.nodes, one.checkpoint, one.priority > 0) == (job, "sleeper", 1, "30", True)
    began = seconds(one.started)
    assert abs(began - time.time()) < 60 and one.saves_at(began + 1) == began + 1800


def test_what_an_operator_drained_stays_theirs(cluster, heal):
    cluster.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=ada: disk")
    heal.world.set("n3", fault="REBOOT")
    (one,) = heal(5, ["n3"])
    assert str(one.state) == "in service"
    assert SlurmScheduler().place("n3").reason == "ada: disk"
    assert heal.world.effects() == []


@pytest.mark.parametrize("reason", ["JIRA-12 flightline: keep this one out", "flightline: please keep out, RMA"])
def test_a_person_may_mention_us_and_the_node_stays_theirs(cluster, heal, reason):
    cluster.run("scontrol", "update", "NodeName=n5", "State=DRAIN", f"Reason={reason}")
    heal.world.set("n5", fault="REBOOT")
    (one,) = heal(5, ["n5"])
    assert (str(one.state), SlurmScheduler().place("n5").reason, heal.world.effects()) == ("in service", reason, [])
    with pytest.raises(SchedulerError, match="somebody else"):
        SlurmScheduler().resume("n5")
    cluster.run("scontrol", "update", "NodeName=n5", "State=RESUME")


def test_the_drain_command_that_a_preflight_prints_is_gone_on_with(cluster, heal):
    printed = of_hosts(["n6"], no_go_claim("20261122T161224Z-956ae0", "standard")).drain
    cluster.run(*shlex.split(printed))
    heal.world.set("n6", fault="REBOOT")
    (one,) = heal(7, ["n6"])
    assert [str(event.what) for event in one.events][1:] == [
        "quarantined",
        "drained",
        "repairing",
        "repaired",
        "verified",
        "returned",
    ]
    assert not SlurmScheduler().place("n6").out


def test_a_persons_resume_overrules_and_the_next_drain_is_a_new_incident_with_its_steps(cluster, heal):
    heal.world.set("n2", fault="REBOOT")
    heal(1, ["n2"])
    cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    (left,) = heal(1)
    assert str(left.events[-1].what) == "left to others"
    (ended,) = [line for line in heal.world.effects() if line["what"] == "release"]
    assert ended["run"] == f"overruled-{left.id}"
    time.sleep(1.1)  # Slurm tells whole seconds
    cluster.run(
        "scontrol",
        "update",
        "NodeName=n2",
        "State=DRAIN",
        "Reason=flightline: xid: GPU 3 by prolog at quick for xid.79",
    )
    incidents = heal(9, told=["n2"])
    (again,) = [one for one in incidents if one.id != left.id]
    assert [str(event.what) for event in again.events][:5] == [
        "detected",
        "quarantined",
        "drained",
        "repaired",
        "not healed",
    ]
    assert claim.read(SlurmScheduler().place("n2").reason).by == "remediate", "a quick go of its own ends it no more"
    assert str(again.state) == "held", "the claim names no step, and the preflight of this world none"
    heal.world.set("n2", fault="")
    cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")


def test_a_lost_host_is_judged_when_it_answers_and_costs_no_sick_node_its_place(cluster, heal):
    cluster.node_down("n6")
    cluster.node_down("n5")
    cluster.node_down("n1")
    until(lambda: cluster.states().count("DOWN*") == 3, 90, "three hosts are lost", 0.5)
    heal.world.set("n4", fault="REBOOT")
    for name in ("n6", "n5", "n1"):
        heal.world.set(name, up=False)
    incidents = heal(3, ["n4"], told=["n1", "n5", "n6"], breaker_percent=100)
    assert {one.host: str(one.state) for one in incidents if one.host != "n4"} == dict.fromkeys(
        ("n1", "n5", "n6"), "repairing"
    )
    assert "quarantined" in [str(event.what) for one in incidents if one.host == "n4" for event in one.events]
    assert all(SlurmScheduler().place(name).reason == "Not responding" for name in ("n1", "n5", "n6"))
    for name in ("n6", "n5", "n1"):
        cluster.node_up(name)
        heal.world.set(name, up=True)
    until(lambda: not any("*" in state for state in cluster.states()), 60, "they answer", 0.5)
    assert cluster.states().count("DOWN") == 3, "ReturnToService=0"
    for one in heal(5, told=["n1", "n5", "n6"], breaker_percent=100):
        assert (str(one.events[-1].what), "REBOOT" in str(one.attempts)) == ("returned", one.host == "n4")
    until(lambda: cluster.states().count("IDLE") == 5, 30, "all but the operator's")


def test_while_slurmctld_is_down_nothing_is_done(cluster, heal):
    heal.world.set("n4", fault="RESET_GPU")
    cluster.control_down()
    try:
        (one,) = heal(2, ["n4"], timeout_s=12.0)
        assert str(one.state) == "in service"
        assert heal.world.effects() == []
    finally:
        cluster.control_up()
    (one,) = heal(6)
    assert str(one.events[-1].what) == "returned"
