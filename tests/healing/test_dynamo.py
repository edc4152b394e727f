"""What every journal promises, in a file and on DynamoDB (moto's server): one writer, one lease, nothing under an old token."""

from contextlib import nullcontext

import pytest

from flightline.cloud.clients import Clients
from flightline.healing.journal.dynamo import DynamoLedger
from flightline.healing.journal.lease import LeaseLostError
from flightline.healing.journal.ledger import ConflictError, SqliteLedger
from flightline.healing.journal.stamps import later
from tests.emulated import REGION, lead_to
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.world import World
from tests.unit.healing.made import T0, H, attempted, incident, proven, through


@pytest.fixture
def dynamo(server, monkeypatch):
    cloud = lead_to(server, monkeypatch)
    return DynamoLedger(cloud.table(), Clients(REGION))


@pytest.fixture(params=["file", "dynamo"])
def ledgers(request, tmp_path):
    """Two that have the same journal open."""
    if request.param == "dynamo":
        one = request.getfixturevalue("dynamo")
        yield one, DynamoLedger(one.table, Clients(REGION))
    else:
        with SqliteLedger(tmp_path / "runs.sqlite") as one, SqliteLedger(tmp_path / "runs.sqlite") as other:
            yield one, other


@pytest.fixture
def ledger(ledgers):
    return ledgers[0]


def test_an_incident_comes_back_as_it_was(ledger):
    one = proven(attempted(through(incident(), H.QUARANTINED, H.DRAINED, H.REPAIRED), "REBOOT"))
    kept = ledger.save(one, None)
    assert ledger.incidents() == [kept]


def test_a_write_over_anothers_is_refused(ledger):
    one = ledger.save(incident(), None)
    ledger.save(one, None)
    with pytest.raises(ConflictError, match="changed by somebody else"):
        ledger.save(one, None)
    with pytest.raises(ConflictError):
        ledger.save(incident(), None)


def test_a_host_has_one_open_incident(ledger):
    first = ledger.save(incident("n1"), None)
    second = incident("n1", at=later(T0, 60))
    with pytest.raises(ConflictError, match="n1 has an open incident already"):
        ledger.save(second, None)
    ledger.save(incident("n2"), None)
    over = ledger.save(through(ledger.save(first, None), H.CLEARED), None)
    again = ledger.save(second, None)
    ledger.save(over, None)  # what people are told of it after its end
    with pytest.raises(ConflictError, match="n1 has an open incident already"):
        ledger.save(incident("n1", at=later(T0, 120)), None)
    assert {one.id for one in ledger.incidents(only_open=True, name="n1")} == {again.id}


def test_one_lease_and_no_write_under_an_old_one(ledgers):
    ledger, other = ledgers
    first = ledger.acquire("one", 1000.0, 60)
    assert other.acquire("two", 1000.0, 60) is None and other.acquire("two", 1030.0, 60) is None
    assert other.holder().owner == "one"
    ledger.renew(first, 1050.0, 60)
    assert other.acquire("two", 1100.0, 60) is None
    second = other.acquire("two", 1116.0, 60)
    assert second.token == first.token + 1
    assert ledger.holder().owner == "two"
    with pytest.raises(LeaseLostError, match=r"(two|another remediator) has the lease now"):
        ledger.renew(first, 1117.0, 60)
    with pytest.raises(LeaseLostError):
        ledger.save(incident(), first)
    with pytest.raises(LeaseLostError):
        ledger.stop("p5", "why", "now", first)
    assert ledger.incidents() == []
    ledger.give_up(first)
    assert ledger.holder().owner == "two"
    ledger.give_up(second)
    assert ledger.holder() is None
    assert ledger.acquire("three", 1118.0, 60).token == second.token + 1


def test_open_ones_and_those_of_a_name(ledger):
    ledger.save(incident("n1"), None)
    over = through(incident("n2", at="2026-11-22T11:00:00+00:00"), H.CLEARED)
    ledger.save(over, None)
    assert [one.host for one in ledger.incidents(only_open=True)] == ["n1"]
    assert [one.host for one in ledger.incidents(name="i-n2")] == ["n2"]
    assert ledger.incidents(name="nobody") == []
    assert {one.host for one in ledger.incidents(name="1650000000001")} == {"n1", "n2"}
    assert [one.host for one in ledger.incidents(since="2026-11-22T11:30:00+00:00")] == ["n1"]


def test_breakers_are_kept_and_reset(ledger):
    lease = ledger.acquire("one", 1000.0, 60)
    ledger.stop("p5", "xid on 5 of 12", "now", lease)
    assert ledger.stops() == {"p5": "xid on 5 of 12"}
    assert ledger.reset("p5")
    assert not ledger.reset("p5")
    assert ledger.stops() == {}


def test_a_node_is_healed_with_its_journal_in_the_table(dynamo, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.healing.control.SqliteLedger", lambda _: nullcontext(dynamo))
    clock = Clock()
    world = World(tmp_path / "world").make([f"n{number}" for number in range(1, 21)], {"n1": "REBOOT"})
    for number in range(6):
        clock.forward(30)
        with controller("", world, clock) as one:
            one.round([sighting(world, clock, "n1")] if number == 0 else [], groups(world))
    (one,) = dynamo.incidents()
    assert one.closed_at
    assert [attempt.outcome for attempt in one.attempts] == ["done"]
