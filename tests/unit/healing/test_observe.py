"""From runs and markers to incidents: opened once, added to, cleared only by what was measured again."""

from dataclasses import replace

import pytest

from flightline.healing.journal.machine import NodeState
from flightline.healing.journal.stamps import later
from flightline.healing.plan.observe import Sighting, absorb, from_marker, trouble_of
from tests.unit.healing.made import T0, H, attempted, incident, proven, through, trouble

VERIFYING = (H.QUARANTINED, H.DRAINED, H.REPAIRED)


def seen(*troubles, host="n1", at=T0, level="quick", good=(), **more):
    return Sighting(host, f"i-{host}", "p5", at, f"run at {at}", level, troubles, good=frozenset(good), **more)


def test_a_sick_node_opens_one_incident_and_a_good_one_none():
    (one,) = absorb([seen(trouble()), seen(host="n2", good=["xid"])], [], T0)
    assert (one.host, one.state, one.level, len(one.events)) == ("n1", NodeState.IN_SERVICE, "quick", 1)
    assert absorb([seen(trouble())], [one], T0) == [one]


def test_the_same_sighting_opens_the_same_incident_wherever_it_is_read():
    assert absorb([seen(trouble())], [], T0) == absorb([seen(trouble())], [], later(T0, 9))


def test_a_new_trouble_joins_and_takes_proof_away():
    one = proven(through(incident(), *VERIFYING))
    (more,) = absorb([seen(trouble(check="gpu_lost"), at=later(T0, 60))], [one], later(T0, 61))
    assert [item.check for item in more.troubles] == ["xid", "gpu_lost"]
    assert more.proof is None


def test_the_same_trouble_seen_again_takes_proof_away_once():
    one = proven(through(incident(), *VERIFYING))
    again = seen(trouble(), at=later(T0, 60))
    (more,) = absorb([again], [one], later(T0, 61))
    assert more.proof is None
    assert absorb([again], [more], later(T0, 62)) == [more]


def test_an_old_look_takes_no_proof_away():
    one = replace(proven(through(incident(), *VERIFYING)), opened_at=T0)
    assert absorb([seen(trouble(), at=T0)], [one], T0) == [one]


def test_what_was_seen_before_the_last_incident_ended_opens_none():
    over = through(
        proven(through(attempted(incident(), "REBOOT"), *VERIFYING)), H.VERIFIED, H.RETURNED, at=later(T0, 60)
    )
    assert absorb([seen(trouble(), at=later(T0, 30))], [over], T0) == []
    assert len(absorb([seen(trouble(), at=later(T0, 90))], [over], T0)) == 1


@pytest.mark.parametrize(
    ("later_look", "clears"),
    [
        (seen(at=later(T0, 60), good=["xid"]), True),
        (seen(at=later(T0, 60), good=["clock_sync"]), False),
        (seen(at=later(T0, 60), good=["xid"], level="standard"), True),
        (seen(at=T0, good=["xid"]), False),
    ],
)
def test_only_a_later_measurement_of_the_same_clears(later_look, clears):
    (one,) = absorb([later_look], [incident()], T0)
    assert one.is_open is not clears


def test_a_shallower_run_does_not_clear():
    deep = replace(incident(), level="deep")
    (one,) = absorb([seen(at=later(T0, 60), good=["xid"])], [deep], T0)
    assert one.is_open


def test_a_good_run_returns_no_node_that_is_out():
    one = through(incident(), H.QUARANTINED)
    assert absorb([seen(at=later(T0, 60), good=["xid"])], [one], T0) == [one]


MARKER = {
    "schema": "flightline-quarantine/1",
    "node": "n1",
    "instance_id": "i-n1",
    "since": "2026-11-22T12:00:00Z",
    "by": "flightline-watch",
    "run": "W1",
    "boot_id": "b",
    "findings": [
        {
            "check": "dcgm_diag",
            "status": "FAIL",
            "message": "GPU 3 failed",
            "remedy": "REPLACE",
            "device": {"serial": "165", "index": 3},
        }
    ],
}


def test_a_marker_is_a_quarantine_that_the_node_made():
    (one,) = absorb([from_marker("n1", "p5", MARKER)], [], T0)
    assert one.state is NodeState.QUARANTINED
    assert one.troubles[0].key == "dcgm_diag@165"
    assert one.level == "standard"
    assert [event.actor for event in one.events] == ["flightline-watch run W1"] * 2


def test_a_marker_joins_what_a_run_had_found():
    (one,) = absorb([from_marker("n1", "p5", {**MARKER, "since": later(T0, 9)})], [incident()], T0)
    assert one.state is NodeState.QUARANTINED
    assert len(one.troubles) == 2


@pytest.mark.parametrize("findings", [None, [], [{"nonsense": 1}], "x"])
def test_a_marker_without_findings_is_a_trouble_for_a_person(findings):
    (one,) = absorb([from_marker("n1", "p5", {**MARKER, "findings": findings})], [], T0)
    assert [item.check for item in one.troubles] == ["node"]


def test_another_schema_is_no_marker():
    with pytest.raises(ValueError, match="wanted flightline-quarantine/1"):
        from_marker("n1", "p5", {**MARKER, "schema": "x"})


@pytest.mark.parametrize(
    ("device", "key"),
    [
        ({"serial": "165", "index": 3}, "xid@165"),
        ({"serial": "0", "pci": "0000:86:00.0"}, "xid@166"),
        ({"pci": "0000:99:00.0"}, "xid@i-1:0000:99:00.0"),
        ({}, "xid@i-1:"),
    ],
)
def test_a_trouble_is_keyed_by_serial_where_there_is_one(device, key):
    known = {("n1", "0000:86:00.0"): "166"}
    assert trouble_of({"check": "xid", "device": device}, "i-1", "n1", known).key == key
