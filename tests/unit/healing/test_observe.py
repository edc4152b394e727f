"""From runs and markers to incidents: opened once, added to, cleared only by what was measured again."""

from dataclasses import replace

import pytest

from flightline.healing.controller import reason_of
from flightline.healing.journal.machine import NodeState
from flightline.healing.journal.stamps import later
from flightline.healing.plan.observe import Sighting, absorb, from_claim, from_marker, trouble_of
from flightline.healing.plan.planner import Do, OutsideView, SchedulerView, plan
from flightline.healing.site import SitePolicy
from flightline_node.model import Remedy
from tests.unit.healing.made import T0, H, attempted, fleet, incident, proven, steps, through, trouble

VERIFYING = (H.QUARANTINED, H.DRAINED, H.REPAIRED)


def claimed(*given):
    found = from_claim(*given)
    assert found
    return found


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


CLAIM = "flightline: sysctl: swappiness is 60 by prolog at quick for other_value"


def test_a_person_returned_a_quarantined_node_and_its_old_marker_took_it_out_again():
    """Drained by the watcher, resumed by a person, drained by the prolog: a new incident, whose step is next."""
    (first,) = absorb([from_marker("n1", "p5", MARKER)], [], T0)
    over = through(first, H.LEFT, at=later(T0, 60))
    assert absorb([from_marker("n1", "p5", MARKER)], [over], later(T0, 90)) == []
    (again,) = absorb([from_marker("n1", "p5", MARKER, later(T0, 80))], [over], later(T0, 90))
    assert (again.state, again.id == first.id, again.keys) == (NodeState.QUARANTINED, False, first.keys)
    assert steps(again, places={"n1": SchedulerView(True, CLAIM)})[0].do is Do.ADOPT


def test_a_drain_of_ours_whose_finding_nobody_knows_is_judged_before_anything_is_done():
    place = SchedulerView(True, CLAIM, since=later(T0, 5))
    (one,) = absorb([claimed("n1", "i-n1", "p5", place, T0)], [], T0)
    assert (one.state, one.level, one.troubles[0].reason, one.opened_at) == (
        NodeState.QUARANTINED,
        "quick",
        "other_value",
        later(T0, 5),
    )
    for wanted, event in ((Do.DRAINED, H.DRAINED), (Do.JUDGE, H.REPAIRED), (Do.VERIFY, H.FAILED)):
        (step,) = steps(one, places={"n1": place})
        assert step.do is wanted
        one = through(one, event)
    (step,) = steps(one, places={"n1": place})
    assert step.do is Do.ADOPT, "no-go: its own health check must not end it now"
    (step,) = steps(one, places={"n1": SchedulerView(True, reason_of(one))})
    assert step.do is Do.HOLD
    assert absorb([claimed("n1", "i-n1", "p5", place, T0)], [one], later(T0, 99)) == [one]


@pytest.mark.parametrize("reason", ["ada: disk", "", "flightline: keep out"])
def test_what_is_not_ours_opens_nothing(reason):
    assert from_claim("n1", "i-n1", "p5", SchedulerView(True, reason), T0) is None


@pytest.mark.parametrize("mark", ["held", "told"])
def test_a_suspect_is_an_incident_in_service_that_counts_for_the_breaker(mark):
    suspect = SchedulerView(mark=f"{CLAIM} {mark}")
    (one,) = absorb([claimed("n1", "i-n1", "p5", suspect, T0)], [], T0)
    assert (str(one.state), suspect.ours, suspect.foreign) == ("in service", False, "")
    assert from_claim("n1", "i-n1", "p5", SchedulerView(mark=f"{CLAIM} going"), T0) is None


LOST = SchedulerView(True, "Not responding", since=T0, lost=True, silent=True)
BACK = replace(LOST, silent=False)


def lost(host="n1"):
    (one,) = absorb([claimed(host, f"i-{host}", "p5", LOST, later(T0, 9))], [], later(T0, 9))
    return one


def test_a_lost_host_is_an_incident_without_a_preflight_and_is_seen_once():
    one = lost()
    assert (one.state, one.troubles[0].reason, one.opened_at) == (NodeState.QUARANTINED, "host_lost", T0)
    assert absorb([claimed("n1", "i-n1", "p5", LOST, later(T0, 60))], [one], later(T0, 60)) == [one]
    known = replace(
        incident(), troubles=(trouble("INVESTIGATE", check="reachable", serial=""),), opened_at=later(T0, 50)
    )
    (both,) = absorb([claimed("n1", "i-n1", "p5", LOST, later(T0, 60))], [known], later(T0, 60))
    assert both.state is NodeState.QUARANTINED and [item.reason for item in both.troubles] == ["", "host_lost"]


@pytest.mark.parametrize(
    ("after_s", "place", "site", "do", "remedy"),
    [
        (60, LOST, {}, Do.WAIT, Remedy.REBOOT),
        (601, LOST, {}, Do.REPAIR, Remedy.REBOOT),
        (601, LOST, {"lost_min": 0.0}, Do.WAIT, Remedy.REBOOT),
        (601, LOST, {"lost_percent": 0.0}, Do.WAIT, Remedy.REBOOT),
        (60, BACK, {}, Do.JUDGE, None),
        (60, BACK, {"lost_min": 0.0}, Do.JUDGE, None),
    ],
)
def test_a_lost_host_is_waited_for_rebooted_and_judged_when_it_answers(after_s, place, site, do, remedy):
    one = through(lost(), H.DRAINED)
    (step,) = steps(one, places={"n1": place}, now=later(T0, after_s), site=SitePolicy(**site))
    assert (step.do, step.remedy) == (do, remedy)
    tried = attempted(through(one, H.REPAIRED, H.FAILED), "REBOOT")
    if do is Do.REPAIR:
        assert steps(tried, places={"n1": place}, now=later(T0, after_s))[0].remedy is Remedy.REPLACE


@pytest.mark.parametrize(
    ("outside", "do", "remedy"),
    [
        (OutsideView("EC2 says running, checks passed"), Do.WAIT, Remedy.REBOOT),
        (OutsideView("EC2 says system check impaired", dead=True), Do.REPAIR, Remedy.REBOOT),
        (OutsideView("the host itself answers", answers=True), Do.REPAIR, Remedy.RESTART_APP),
    ],
)
def test_what_others_see_of_a_lost_host_decides_before_its_time_is_over(outside, do, remedy):
    one = through(lost(), H.DRAINED)
    (step,) = steps(one, places={"n1": LOST}, now=later(T0, 60), outside={"n1": outside})
    assert (step.do, step.remedy) == (do, remedy)
    assert outside.said in step.why


def test_a_daemon_is_restarted_once_and_a_site_that_leaves_lost_hosts_to_a_person_is_heard():
    answers = OutsideView("the host itself answers", answers=True)
    tried = attempted(through(lost(), H.DRAINED), "RESTART_APP", outcome="failed")
    (step,) = steps(tried, places={"n1": LOST}, now=later(T0, 60), outside={"n1": answers})
    assert step.do is Do.WAIT
    dead, site = {"n1": OutsideView("EC2 says stopped", dead=True)}, SitePolicy(lost_min=0)
    (step,) = steps(through(lost(), H.DRAINED), places={"n1": LOST}, site=site, outside=dead)
    assert step.do is Do.WAIT


def test_lost_hosts_use_up_no_place_of_a_sick_one_and_none_of_those_that_must_stay():
    dead = {f"n{number}": LOST for number in range(10, 15)}
    sick = [incident("n1"), *(through(lost(host), H.DRAINED) for host in dead)]
    made = {
        step.incident.host: step
        for step in steps(*sick, places=dead, now=later(T0, 601), site=SitePolicy(breaker_percent=100))
    }
    assert made["n1"].do is Do.QUARANTINE
    assert [step.do for host, step in made.items() if host != "n1"].count(Do.REPAIR) == 2, "10 % of 20 at once"
    (step,) = steps(incident("n1"), places=dead, site=SitePolicy(need=15))
    assert step.do is Do.WAIT
    (step,) = steps(incident("n1"), places=dead, site=SitePolicy(need=14))
    assert step.do is Do.QUARANTINE


def test_many_lost_hosts_stop_the_steps_on_lost_hosts_and_on_no_sick_one():
    dead = {f"n{number}": LOST for number in range(10, 20)}
    made = plan(fleet(incident("n1"), *(through(lost(host), H.DRAINED) for host in dead), places=dead), SitePolicy())
    (trip,) = made.trips
    assert (trip.group, len(trip.hosts)) == ("p5:lost", 7)
    assert [step.incident.host for step in made.steps if step.changes] == ["n1"]
