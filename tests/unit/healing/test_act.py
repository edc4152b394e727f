"""Who is out without an incident: what the nodes themselves say of it, and of the rest what the scheduler alone says."""

from dataclasses import dataclass, field

import pytest
from botocore.exceptions import EndpointConnectionError

from flightline.cloud.publish_settings import Publish
from flightline.healing import act, persons
from flightline.healing.act import _markers
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.plan.planner import SchedulerView
from flightline.healing.plan.seen import LastSeen
from flightline.healing.request import HealingRequest
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import EdgeError, NodeFacts, Ports
from flightline.store.sqlite import Run, StoreError
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.world import World
from tests.unit.healing.made import T0, H, incident, through
from tests.unit.healing.test_observe import CLAIM, LOST, MARKER

PLACES = {
    "n1": SchedulerView(True, CLAIM, since=T0),  # its marker says why
    "n2": SchedulerView(True, CLAIM, since=T0),  # nothing of its own
    "n3": SchedulerView(True, CLAIM.replace("prolog", "watch"), since=T0),  # gives no answer
    "n4": LOST,
    "n5": SchedulerView(True, "ada: disk", since=T0),
    "n6": SchedulerView(),
    "n7": SchedulerView(True, CLAIM, since=T0),  # an incident has it
}


@dataclass
class Cluster:
    """A scheduler and nodes that answer by heart. asked: hosts whose marker was looked for."""

    asked: list[str] = field(default_factory=list)

    def places(self, hosts):
        return PLACES

    def facts(self, hosts, token):
        self.asked += hosts
        return {"n1": NodeFacts("b", MARKER), "n2": NodeFacts("b")}


def test_every_node_that_is_out_by_us_or_lost_has_an_incident_to_come(tmp_path):
    made, seen = Cluster(), LastSeen(Run("R1", T0), [], dict.fromkeys(PLACES, "p5"))
    with SqliteLedger(tmp_path / "runs.sqlite") as ledger:
        ledger.save(through(incident("n7"), H.QUARANTINED), None)
        ports = Ports(made, made, made)  # type: ignore[arg-type]  # no more is asked here
        found = _markers(seen, ports, ledger, 1, lambda _: None)
    assert {one.host: (one.about, one.troubles[0].check) for one in found} == {
        "n1": ("", "dcgm_diag"),
        "n2": ("claimed", "sysctl"),
        "n3": ("claimed", "sysctl"),
        "n4": ("lost", "reachable"),
    }
    assert made.asked == ["n1", "n2", "n3"], "a lost host is not asked"


@pytest.mark.parametrize("answers", [True, False])
def test_a_person_returned_a_node_and_its_quarantine_ends_where_it_answers(tmp_path, answers):
    world, clock, said = World(tmp_path / "world").make(["n1", *"abcdefghi"], {"n1": "REBOOT"}), Clock(), []

    def release(*_):
        raise EdgeError("n1: no connection")

    if not answers:
        world.release = release
    with controller(tmp_path / "runs.sqlite", world, clock) as one:
        one.say = said.append
        one.round([sighting(world, clock, "n1")], groups(world))
        world.set("n1", out=False)
        one.round([], groups(world))
        (left,) = one.ledger.incidents()
    assert left.events[-1].what == H.LEFT and not left.is_open
    assert bool([line for line in world.effects() if line["what"] == "release"]) is answers
    assert any("its quarantine could not be ended: n1: no connection" in line for line in said) is not answers


def test_a_reset_says_what_follows_and_lets_the_suspects_ask_again(tmp_path, monkeypatch):
    suspect = SchedulerView(mark=f"{CLAIM} held")
    places = {"n1": suspect, "n2": SchedulerView(True, CLAIM), **{f"n{number}": suspect for number in (3, 4)}}
    asked = []

    class Slurm(Cluster):
        def places(self, hosts):
            return places

        def let_go(self, hosts):
            asked.extend(hosts)

    SqliteLedger(tmp_path / "runs.sqlite").close()
    seen = LastSeen(Run("R1", T0), [], dict.fromkeys(places, "p5"))
    monkeypatch.setattr(persons, "look", lambda *_: seen)
    monkeypatch.setattr(HealingRequest, "asked_scheduler", lambda *_: Slurm())
    request = HealingRequest("latest", (), "slurm", False, SitePolicy(), str(tmp_path / "runs.sqlite"))
    said = persons.reset(request, "p5")
    assert "1 of 4 nodes are out, at most 1 may be" in said and "3 suspects: n1, n3, n4 ask again" in said
    assert asked == ["n1", "n3", "n4"]
    places.clear()
    with pytest.raises(StoreError, match="no breaker that fell there"):
        persons.reset(request, "p5")


def test_numbers_that_cannot_be_sent_cost_no_round(tmp_path, monkeypatch):
    def refuses(*_):
        raise EndpointConnectionError(endpoint_url="https://monitoring")

    said = []
    monkeypatch.setattr(act, "put", refuses)
    with SqliteLedger(tmp_path / "runs.sqlite") as ledger:
        act._measure(ledger, Publish(namespace="Flightline/demo"), SitePolicy(), said.append)
    assert said and said[0].startswith("warning: cannot send the incidents' numbers to Flightline/demo: no answer")
