"""A node's whole way, over a simulated world and a real SQLite file."""

import pytest

from flightline.healing.journal import incident as incidents
from flightline.healing.journal.lease import Lease, LeaseLostError
from flightline.healing.journal.ledger import ConflictError, SqliteLedger
from flightline.healing.journal.machine import EventKind, NodeState
from flightline.healing.journal.notice import Notices
from flightline.healing.site import SitePolicy
from flightline.tell.voice import TellingOutcome
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.world import World
from tests.unit.healing.made import incident

HOSTS = [f"n{number}" for number in range(1, 21)]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "world")
    made.make(HOSTS)
    return made


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def rounds(store, world, clock, count=1, hosts=(), **more):
    for _ in range(count):
        clock.forward(30)
        with controller(store, world, clock, **more) as one:
            one.round([sighting(world, clock, host) for host in hosts], groups(world))
        hosts = ()


def fallen(store, world, clock, count, fault="REBOOT", **more):
    """The first node has a fault, and so many rounds come."""
    world.set("n1", fault=fault)
    rounds(store, world, clock, count, ["n1"], **more)


def found(store):
    with SqliteLedger(store) as ledger:
        return ledger.incidents()


class Told:
    """A voice that keeps what it says; killed: at which message, before or after it was sent."""

    def __init__(self, killed=0, sent=False):
        self.said, self.killed, self.sent = [], killed, sent

    def tell(self, digest, memory, thread=""):
        outcome = TellingOutcome()
        if memory.begin("pager"):
            self.killed -= 1
            if self.killed == 0 and not self.sent:
                raise SystemExit(9)
            self.said.append(digest)
            if self.killed == 0:
                raise SystemExit(9)
            memory.sent("pager", "")
        return outcome


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("killed", [1, 2, 3, 4])
def test_what_a_killed_remediator_had_not_told_is_told_when_it_is_back(store, world, clock, killed, sent):
    """Killed between the store and the sending, or between the sending and the store: never not told, by one key."""

    def healed(voice, host):
        for number in range(8):
            clock.forward(30)
            with controller(store, world, clock) as one:
                one.tell = Notices(voice, "fleet", pytest.fail).incident
                one.round([sighting(world, clock, host)] if number == 0 else [], groups(world))

    for host in ("n1", "n2"):
        world.set(host, fault="REBOOT")
    quiet = Told()
    healed(quiet, "n1")
    wanted = [digest.facts[0].partition(":")[0] for digest in quiet.said]
    assert wanted[0] == "quarantined" and wanted[-1] == "returned" and quiet.said[-1].over
    first, second = Told(killed, sent), Told()
    with pytest.raises(SystemExit):
        healed(first, "n2")
    with SqliteLedger(store) as ledger:
        ledger.give_up(Lease("", ledger.holder().token))
    healed(second, "n2")
    told = [digest.facts[0].partition(":")[0] for digest in (*first.said, *second.said)]
    assert list(dict.fromkeys(told)) == wanted and len(told) == len(wanted) + sent
    assert len({digest.key for digest in (*first.said, *second.said)}) == len(wanted)


def test_a_go_that_did_not_measure_the_fault_is_no_proof(store, world, clock):
    """The site's checks leave it out, or its tool is gone: nothing was proven, and no further step is taken for it."""
    world.measured = frozenset({"disk_space"})
    fallen(store, world, clock, 12, site=SitePolicy(verify_min=2))
    (one,) = found(store)
    assert one.state is NodeState.HELD
    assert "go, but it did not measure xid" in one.events[-1].why
    assert [attempt.step for attempt in one.attempts] == ["REBOOT"]
    assert sum(event.what == EventKind.NOTED for event in one.events) == 1
    assert world.node("n1")["out"]


def test_the_proof_is_as_old_as_the_nodes_own_clock_says(store, world, clock):
    """The marker has the node's times: by a control node's clock that is ahead, a fault after the proof looks older."""
    world.nodes_clock = "2026-11-22T11:50:07.000Z"
    fallen(store, world, clock, 7)
    (released,) = [line for line in world.effects() if line["what"] == "release"]
    assert released["judged_at"] == "2026-11-22T11:50:07.000Z"


@pytest.mark.parametrize("fault", ["RESTART_APP", "RESET_GPU", "REBOOT"])
def test_a_sick_node_comes_back_healed(store, world, clock, fault):
    fallen(store, world, clock, 1, fault=fault)
    assert world.node("n1")["reason"].startswith("flightline: xid GPU 3 by remediate at quick for unnamed run at_2026")
    rounds(store, world, clock, 6)
    (one,) = found(store)
    assert [event.what for event in one.events] == [
        "detected", "quarantined", "drained", "repairing", "repaired", "verified", "returned",
    ]  # fmt: skip
    node = world.node("n1")
    assert (node["fault"], node["out"], node["reason"]) == ("", False, "")
    assert node["boot"] == (2 if fault == "REBOOT" else 1)
    assert one.closed_at
    assert one.proof


def test_a_step_that_does_not_help_is_climbed_from_and_the_end_is_a_person(store, world, clock):
    world.set("n1", fault="BROKEN")
    with controller(store, world, clock) as one:
        seen = sighting(world, clock, "n1")
        seen = type(seen)(**{**vars(seen), "troubles": (type(seen.troubles[0])("xid@1", "xid", "RESET_GPU", "x"),)})
        one.round([seen], groups(world))
    rounds(store, world, clock, 12)
    (one,) = found(store)
    assert [attempt.step for attempt in one.attempts] == ["RESET_GPU", "REBOOT"]
    assert one.state is NodeState.HELD
    assert world.node("n1")["out"]
    assert world.node("n1")["reason"].startswith("flightline: ")


def test_jobs_end_first(store, world, clock):
    world.set("n1", fault="REBOOT", jobs=["77"])
    rounds(store, world, clock, 5, ["n1"])
    assert world.node("n1")["jobs"] == ["77"]
    assert [line["what"] for line in world.effects()] == ["drain"]
    world.set("n1", jobs=[])
    rounds(store, world, clock, 5)
    assert found(store)[0].closed_at


def test_a_site_may_have_jobs_requeued_after_a_while(store, world, clock):
    world.set("n1", fault="REBOOT", jobs=["77"])
    site = SitePolicy(requeue_after_min=1)
    rounds(store, world, clock, 8, ["n1"], site=site)
    assert [line["what"] for line in world.effects()].count("requeue") == 1
    assert found(store)[0].closed_at


def test_a_job_that_starts_after_the_plan_is_not_repaired_under(store, world, clock):
    fallen(store, world, clock, 2)
    places = world.places

    def late(hosts):
        world.set("n1", jobs=["78"]) if len(hosts) == 1 else None
        return places(hosts)

    world.places = late
    rounds(store, world, clock)
    assert "REBOOT" not in {line["what"] for line in world.effects()}
    assert found(store)[0].attempts == ()


def test_what_an_operator_takes_over_is_left_to_them(store, world, clock):
    fallen(store, world, clock, 2)
    world.set("n1", reason="ada looks at it")
    rounds(store, world, clock, 5)
    assert [line["what"] for line in world.effects()] == ["drain"]
    assert world.node("n1")["reason"] == "ada looks at it"


def test_while_the_scheduler_is_down_nothing_is_done_and_after_it_all_of_it(store, world, clock):
    world.set("n1", fault="REBOOT")
    world.set_up(False)
    rounds(store, world, clock, 3, ["n1"])
    assert world.effects() == []
    assert found(store)[0].state is NodeState.IN_SERVICE
    world.set_up(True)
    rounds(store, world, clock, 7)
    assert found(store)[0].closed_at


def test_a_node_that_vanishes_is_neither_rebooted_twice_nor_returned(store, world, clock):
    fallen(store, world, clock, 2)
    world.set("n1", up=False)
    rounds(store, world, clock, 100)
    assert "REBOOT" not in {line["what"] for line in world.effects()}
    (one,) = found(store)
    assert one.state in (NodeState.VERIFYING, NodeState.HELD)
    assert world.node("n1")["reason"].startswith("flightline: ")
    clock.forward(4 * 3600)
    rounds(store, world, clock, 3)
    assert found(store)[0].state is NodeState.HELD


def test_a_reboot_that_is_proven_not_to_have_come_is_asked_for_again(store, world, clock):
    fallen(store, world, clock, 2)
    repair, world.repair = world.repair, lambda *_: (_ for _ in ()).throw(world_error())
    rounds(store, world, clock, 2)
    (one,) = found(store)
    assert one.pending.step == "REBOOT"
    world.repair = repair
    clock.forward(31 * 60)
    rounds(store, world, clock, 5)
    (one,) = found(store)
    assert [attempt.outcome for attempt in one.attempts] == [incidents.NOT_DONE, incidents.DONE]
    assert one.closed_at
    assert [line["what"] for line in world.effects()].count("REBOOT") == 1


def world_error():
    from flightline.healing.steps.ports import EdgeError

    return EdgeError("the connection was cut")


def test_a_reset_that_was_cut_off_is_not_repeated(store, world, clock):
    fallen(store, world, clock, 2, fault="RESET_GPU")
    repair = world.repair

    def cut(*arguments):
        repair(*arguments)
        raise world_error()

    world.repair = cut
    rounds(store, world, clock, 1)
    world.repair = repair
    rounds(store, world, clock, 4)
    (one,) = found(store)
    assert [(attempt.step, attempt.outcome) for attempt in one.attempts] == [("RESET_GPU", incidents.UNKNOWN)]
    assert one.closed_at


def test_a_crowd_stops_everything_until_a_person_resets_it(store, world, clock):
    for host in HOSTS[:7]:
        world.set(host, fault="REBOOT")
    rounds(store, world, clock, 5, HOSTS)
    assert world.effects() == []
    with SqliteLedger(store) as ledger:
        assert list(ledger.stops()) == ["p5"]


def test_no_more_than_the_budget_is_out(store, world, clock):
    for host in HOSTS[:5]:
        world.set(host, fault="REBOOT")
    most = 0
    clock.forward(30)
    for number in range(40):
        rounds(store, world, clock, 1, HOSTS if number == 0 else ())
        most = max(most, sum(node["out"] for node in world.state()["nodes"].values()))
    assert most == 2
    assert all(one.closed_at for one in found(store))
    assert not any(node["fault"] for node in world.state()["nodes"].values())


def test_a_budget_of_zero_changes_nothing(store, world, clock):
    fallen(store, world, clock, 5, site=SitePolicy(budget_percent=0))
    assert world.effects() == []


def test_a_step_that_is_not_approved_is_not_taken(store, world, clock):
    world.set("n1", fault="REBOOT")
    with controller(store, world, clock) as one:
        one.approve = lambda step: False
        one.round([sighting(world, clock, "n1")], groups(world))
    assert world.effects() == []


def test_a_new_finding_takes_proof_away_before_the_return(store, world, clock):
    fallen(store, world, clock, 4)
    assert found(store)[0].state is NodeState.VERIFYING
    assert found(store)[0].proof
    fallen(store, world, clock, 1)
    assert found(store)[0].proof is None or found(store)[0].state is not NodeState.IN_SERVICE
    assert "resume" not in {line["what"] for line in world.effects()}


def test_a_controller_that_lost_its_lease_begins_nothing(store, world, clock):
    fallen(store, world, clock, 2)
    with controller(store, world, clock) as one:
        with SqliteLedger(store) as other:
            other.acquire("two", clock.seconds() + 100, 60)
        with pytest.raises(LeaseLostError):
            one.round([], groups(world))
    assert [line["what"] for line in world.effects()] == ["drain"]


def test_a_second_open_incident_of_a_node_is_refused(store):
    with SqliteLedger(store) as ledger:
        ledger.save(incident(), None)
        with pytest.raises(ConflictError, match="open incident already"):
            ledger.save(incident("n1", at="2026-11-22T13:00:00+00:00"), None)


def test_the_run_store_still_opens(store):
    from flightline.store.sqlite import SqliteStore

    with SqliteLedger(store) as ledger:
        ledger.save(incident(), None)
    with SqliteStore(store) as opened:
        assert opened.runs() == []


def test_happened_words_are_those_of_the_contract():
    assert {"detected", "quarantined", "drained", "repairing", "verified", "returned", "held"} <= {
        str(one) for one in EventKind
    }
