"""The controller on a real Slurm: Debian's slurmctld and slurmd with real jobs. Nodes' faults are made by the test."""

import pytest

from flightline.healing.controller import Controller
from flightline.healing.journal.lease import RenewedLease
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import Ports
from flightline.healing.steps.slurm import SlurmScheduler
from tests.beds import until
from tests.healing import slurmbed
from tests.healing.control import groups, sighting
from tests.healing.test_kills import Running
from tests.healing.world import World

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(bool(slurmbed.missing()), reason=slurmbed.missing()),
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

    def rounds(count, hosts=(), timeout_s=15.0):
        with SqliteLedger(tmp_path / "runs.sqlite") as ledger:
            for number in range(count):
                lease = ledger.acquire("test", clock.seconds(), 60)
                kept = RenewedLease(ledger, lease, clock.seconds, 60)
                ports = Ports(SlurmScheduler(timeout_s=timeout_s), world, world)
                one = Controller(ledger, ports, SitePolicy(budget_percent=50), kept, clock=clock)
                one.round([sighting(world, clock, host) for host in hosts] if number == 0 else [], groups(world))
                ledger.give_up(lease)
            return ledger.incidents()

    rounds.world = world
    return rounds


def test_drain_wait_repair_prove_resume(cluster, heal):
    heal.world.set("n1", fault="REBOOT")
    job, other = cluster.sleep_on("n1"), cluster.sleep_on("n2")
    (one,) = heal(3, ["n1", "n2"])
    assert str(one.state) in ("quarantined", "draining")
    assert cluster.job_state(job) == "RUNNING"
    assert SlurmScheduler().place("n1").reason.startswith("flightline: xid GPU 3 run at ")
    cluster.run("scancel", job)
    until(lambda: not SlurmScheduler().place("n1").jobs, 20)
    (one,) = heal(6)
    assert [str(event.what) for event in one.events][-1] == "returned"
    assert not SlurmScheduler().place("n1").out
    assert cluster.job_state(other) == "RUNNING"
    again = cluster.sleep_on("n1")
    assert cluster.job_state(again) == "RUNNING"
    cluster.run("scancel", again, other)


def test_what_an_operator_drained_stays_theirs(cluster, heal):
    cluster.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=ada: disk")
    heal.world.set("n3", fault="REBOOT")
    (one,) = heal(5, ["n3"])
    assert str(one.state) == "in service"
    assert SlurmScheduler().place("n3").reason == "ada: disk"
    assert heal.world.effects() == []


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
