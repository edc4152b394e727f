"""A remediator whose network goes and comes: what it asked for may have been done although no answer came back.

The world and its effects are simulated; the journal is a real SQLite file behind a network that is lost.
"""

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from flightline.cloud import publish as publishing
from flightline.cloud.publish_settings import publish as settings
from flightline.healing.journal.lease import LeaseLostError
from flightline.healing.journal.ledger import ConflictError, SqliteLedger
from flightline.healing.steps.ports import EdgeError
from flightline.healing.steps.slurm import SchedulerError
from flightline.store.sqlite import StoreError
from tests.beds import program, until
from tests.emulated import Cloud, lead_to
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.rules import check
from tests.healing.test_kills import FAULTS, HOSTS, LEASE_S, MOST_OUT
from tests.healing.world import World
from tests.unit.cloud.test_publish import BAD, a_run
from tests.unit.made import record

ROUNDS = 40
OF_SLURM = ("drain", "drained", "resume", "resumed", "places")


class Network:
    """Lost for random stretches of the requests and answers that pass it; errors as the real edges raise them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.left = 0
        self.lost = 0

    def __call__(self, what: str) -> None:
        if not self.left and self.chance.random() < 0.1:
            self.left = self.chance.randint(1, 8)
        if self.left:
            self.left -= 1
            self.lost += 1
            error = SchedulerError if what in OF_SLURM else EdgeError
            raise error(f"{what}: no route to host")

    def store(self, what: str) -> None:
        try:
            self(what)
        except EdgeError as error:
            # A write whose answer was lost and that the client repeated is refused by its own condition.
            again = what == "saved" and self.chance.random() < 0.5
            raise (ConflictError if again else StoreError)(str(error)) from None


class FarLedger(SqliteLedger):
    """A journal behind the network."""

    network: Network

    def save(self, incident, lease):
        self.network.store("save")
        kept = super().save(incident, lease)
        self.network.store("saved")
        return kept

    def renew(self, lease, now_s, ttl_s):
        self.network.store("renew")
        super().renew(lease, now_s, ttl_s)

    def incidents(self, *given, **more):
        self.network.store("incidents")
        return super().incidents(*given, **more)


class FarWorld(World):
    """Questions are lost as well as steps."""

    def places(self, hosts):
        self.pause("places")
        return super().places(hosts)

    def facts(self, hosts, token):
        self.pause("facts")
        return super().facts(hosts, token)


@pytest.mark.parametrize("seed", range(50))
def test_no_step_is_repeated_and_no_node_is_stranded(tmp_path, monkeypatch, seed):
    world, clock, store = FarWorld(tmp_path / "world").make(HOSTS, FAULTS), Clock(), tmp_path / "runs.sqlite"
    network = Network(seed)
    FarLedger.network = network
    broken_off = 0
    run = [sighting(world, clock, host) for host in HOSTS]  # what the service reads in each round: the latest run
    with monkeypatch.context() as lost:
        lost.setattr("tests.healing.control.SqliteLedger", FarLedger)
        world.pause = network
        for _ in range(ROUNDS):
            clock.forward(LEASE_S)
            try:
                with controller(store, world, clock) as one:
                    one.round(run, groups(world))
            except (StoreError, LeaseLostError, ConflictError):
                broken_off += 1  # as the service: the next round begins anew
            check(world, MOST_OUT, healed=False)
    assert network.lost >= 10 and broken_off

    world.pause = lambda *_: None
    clock.forward(31 * 60)
    for _ in range(60):
        clock.forward(LEASE_S)
        with controller(store, world, clock) as one:
            one.round(run, groups(world))
    check(world, MOST_OUT)
    with SqliteLedger(store) as ledger:
        assert all(one.pending is None for one in ledger.incidents())
        states = {one.host: str(one.state) for one in ledger.incidents(only_open=True)}
    out = {host for host, node in world.state()["nodes"].items() if node["out"]}
    assert set(states) == out and set(states.values()) <= {"held"}, states
    assert "n5" in out, "what no step heals stays out"


SCONTROL = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
for word; do case $word in Extra=*) echo "${word#Extra=}" > extra;; esac; done
case "$*" in
*State=DRAIN*) echo "$*" >> asked; echo DRAIN > state; : > extra;;
*Extra=*) echo "${3#Extra=}" > extra;;
*show*node*) state=$(cat state 2>/dev/null)
    echo "NodeName=n1 NodeAddr=n1 NodeHostName=n1 State=MIXED${state:++DRAIN} ${state:+Reason=flightline: row_remap by remediate at quick for pending [root@2026-11-22T10:00:00]} Extra=$(cat extra 2>/dev/null)"
    echo "NodeName=n2 NodeAddr=n2 NodeHostName=n2 State=IDLE";;
esac
"""


@dataclass
class Service:
    """`flightline remediate --mode act --every 1 --store aws`, beside a simulated Slurm and emulated AWS."""

    place: Path
    env: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for name, text in (("scontrol", SCONTROL), ("squeue", "#!/bin/sh\necho '7|root|n1|1|1|N/A|train|'\n")):
            program(self.place / name, text)
        env = {**os.environ, **self.env, "PATH": f"{self.place}:{os.environ['PATH']}", "COLUMNS": "200"}
        argv = [
            sys.executable,
            "-m",
            "flightline",
            *["remediate", "--mode=act", "--every=1", "--store=aws", "--scheduler=slurm"],
        ]
        with (self.place / "said").open("wb") as said:
            self.process = subprocess.Popen([*argv, "-i", "n1,n2,"], env=env, stdout=said, stderr=said)

    @property
    def said(self) -> str:
        return (self.place / "said").read_text()

    def until(self, what) -> None:
        assert self.process is not None
        until(lambda: what() or self.process.poll() is not None, 300)
        assert what(), self.said

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(120)


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path, {})
    yield made
    if made.process and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_the_service_outlives_an_aws_that_cannot_be_reached(tmp_path, service, monkeypatch):
    cloud = lead_to(Cloud(), monkeypatch)
    try:
        table = cloud.table()
        path = tmp_path / "runs.sqlite"
        a_run(path, "r1", 1, record("n1", BAD), *(record(f"n{number}") for number in range(2, 21)))
        wanted = settings({"table": table})
        assert wanted and publishing.publish_run(path, "r1", wanted).troubles == []
        service.env.update({**cloud.env, "FLIGHTLINE_REMEDIATE": "prove=1"})
        cloud.close()
        service.start()
        service.until(lambda: service.said.count("next round in 1 s") >= 2)
        assert not (tmp_path / "asked").exists()

        cloud = Cloud(cloud.port)
        service.until((tmp_path / "asked").exists)
        service.until(lambda: "quarantined" in str(cloud.items()))
        cloud.close()
        before = service.said.count("next round in 1 s")
        service.until(lambda: service.said.count("next round in 1 s") >= before + 2)

        cloud = Cloud(cloud.port)
        service.until(lambda: cloud.seen["GetItem"] + cloud.seen["Query"] >= 20)
        service.stop()
        asked = (tmp_path / "asked").read_text().splitlines()
        assert len(asked) == 1 and "NodeName=n1 State=DRAIN Reason=flightline: row_remap" in asked[0]
        assert "Traceback" not in service.said
    finally:
        cloud.close()
