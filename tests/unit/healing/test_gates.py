"""Hours, rates, approval, signals and refusals before a step is taken."""

from dataclasses import replace

import pytest

from flightline.healing.gates import asks, rates, windows
from flightline.healing.journal import incident as incidents
from flightline.healing.journal.incident import Attempt, Moment, advance
from flightline.healing.journal.stamps import later
from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.planner import Do, SchedulerView
from flightline.healing.plan.replay import replay
from flightline.healing.site import SitePolicy, settings
from flightline_node.model import Remedy, SettingsError
from tests.unit.healing.made import T0, H, attempted, hosts, incident, steps, through, trouble

OUT = SchedulerView(out=True, reason="flightline: xid GPU 3 by remediate at quick for xid.79 run R1")
READY = (H.QUARANTINED, H.DRAINED)


def only(one, site, now=T0, **more):
    (step,) = [s for s in steps(one, site=site, now=now, places={"n1": OUT}, **more) if s.incident.id == one.id]
    return step.do, step.why


def noted(one, about, at=T0, step="REBOOT"):
    return advance(one, Moment(at, H.NOTED, "test", about=about, step=step))


@pytest.mark.parametrize(
    ("hours", "at", "open_"),
    [
        ("sun", "2026-11-22T12:00:00+00:00", True),  # a Sunday
        ("mon-fri", "2026-11-22T12:00:00+00:00", False),
        ("mon-fri@20:00-06:00", "2026-11-23T05:59:00+00:00", False),  # Sunday's night is not Monday's
        ("mon-fri@20:00-06:00", "2026-11-24T05:59:00+00:00", True),
        ("mon-fri@20:00-06:00", "2026-11-24T06:00:00+00:00", False),
        ("fri-mon", "2026-11-22T12:00:00+00:00", True),
        ("mon-fri+sun@11:00-13:00", "2026-11-22T12:00:00+00:00", True),
        ("sun@12:00-13:00", "2026-11-22T13:30:00+02:00", False),
    ],
)
def test_steps_are_taken_in_the_sites_hours(hours, at, open_):
    do, why = only(through(incident(), *READY), SitePolicy(hours=hours), now=at)
    assert (do is Do.REPAIR) is open_, why


def test_a_sick_node_is_taken_out_at_any_hour():
    (step,) = steps(incident(), site=SitePolicy(hours="mon"))
    assert step.do is Do.QUARANTINE


def test_no_more_of_a_step_than_the_rate():
    site = SitePolicy(rates="REBOOT:2/h", budget_percent=100)
    ready = [through(incident(f"n{n}", trouble(serial=str(n))), *READY) for n in (1, 2, 3)]
    places = {one.host: OUT for one in ready}
    assert [s.do for s in steps(*ready, site=site, places=places)] == [Do.REPAIR, Do.REPAIR, Do.WAIT]
    done = attempted(incident("n9", trouble(serial="9")), "REBOOT")
    assert only(ready[0], site, past=[replace(done, closed_at=T0)])[0] is Do.REPAIR
    twice = attempted(done, "REBOOT")
    assert only(ready[0], site, past=[replace(twice, closed_at=T0)])[0] is Do.WAIT
    assert only(ready[0], site, past=[replace(twice, closed_at=T0)], now=later(T0, 3601))[0] is Do.REPAIR


def test_people_are_told_before_and_may_veto_in_time():
    one, site = through(incident(), *READY), SitePolicy(approval="REBOOT:15")
    assert only(one, site)[0] is Do.PROPOSE
    told = noted(one, incidents.PROPOSED)
    assert only(told, site, now=later(T0, 899))[0] is Do.WAIT
    assert only(told, site, now=later(T0, 900))[0] is Do.REPAIR
    assert only(noted(told, incidents.APPROVED), site)[0] is Do.REPAIR


def test_without_minutes_it_waits_for_a_person_for_ever():
    told, site = noted(through(incident(), *READY), incidents.PROPOSED), SitePolicy(approval="REBOOT")
    do, why = only(told, site, now=later(T0, 10**6))
    assert do is Do.WAIT
    assert "--approve n1" in why
    assert only(noted(told, incidents.APPROVED), site)[0] is Do.REPAIR


def test_an_approval_is_for_one_step():
    told = noted(noted(through(incident(), *READY), incidents.PROPOSED), incidents.APPROVED)
    again = through(told, H.STARTED, H.FAILED)
    assert only(again, SitePolicy(approval="REBOOT"))[0] is Do.PROPOSE
    assert only(noted(told, "", step="RESET_GPU"), SitePolicy(approval="REBOOT"))[0] is Do.REPAIR


def test_a_groups_own_word_goes_first():
    one = through(incident(), *READY)
    assert only(one, SitePolicy(approval="REBOOT/p5:0+REBOOT"))[0] is Do.PROPOSE
    assert only(noted(one, incidents.PROPOSED), SitePolicy(approval="REBOOT/p5:0+REBOOT"))[0] is Do.REPAIR
    assert only(one, SitePolicy(approval="REBOOT/p4"))[0] is Do.REPAIR


def test_jobs_are_told_to_save_before_they_are_requeued():
    busy = SchedulerView(out=True, reason=OUT.reason, jobs=(RunningJob("77"),))
    one, site = through(incident(), H.QUARANTINED), SitePolicy(requeue_after_min=30, signal_min=10)

    def at(seconds, one=one):
        (step,) = steps(one, site=site, places={"n1": busy}, now=later(T0, seconds))
        return step.do

    assert [at(1199), at(1200)] == [Do.WAIT, Do.SIGNAL]
    told = noted(one, incidents.SIGNALLED, at=later(T0, 1200))
    assert [at(1300, told), at(1800, told)] == [Do.WAIT, Do.REQUEUE]


def test_what_a_platform_refused_is_not_tried_on_another_node_like_it():
    def refused(software, outcome=incidents.REFUSED, group="p5"):
        other = incident("n2", trouble("RESET_GPU", serial="2"), group=group)
        attempt = Attempt(1, "RESET_GPU", T0, 1, outcome, T0, before={"software": software})
        return replace(other, attempts=(attempt,), closed_at=T0)

    def step(*past, software=""):
        one = through(incident("n1", trouble("RESET_GPU", serial="1")), *READY)
        if software:
            tried = Attempt(1, "RESTART_APP", T0, 1, incidents.DONE, T0, before={"software": software})
            one = replace(one, attempts=(tried,))
        (found,) = [s for s in steps(one, places={"n1": OUT}, past=past) if s.incident.host == "n1"]
        return found.remedy

    assert step() is Remedy.RESET_GPU
    assert step(refused("driver 580")) is Remedy.REBOOT
    assert step(refused("driver 580"), software="driver 580") is Remedy.REBOOT
    assert step(refused("driver 580"), software="driver 590") is Remedy.RESET_GPU
    assert step(refused("driver 580", group="p4")) is Remedy.RESET_GPU
    assert step(refused("driver 580", incidents.FAILED)) is Remedy.RESET_GPU


def test_a_pause_stops_every_group():
    do, why = only(through(incident(), *READY), SitePolicy(), stops={incidents.EVERY: "paused by ada: an upgrade"})
    assert (do, why) == (Do.WAIT, "paused by ada: an upgrade")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hours": "mon-fry"}, "hours: saw 'mon-fry', wanted days and hours"),
        ({"hours": "mon@25:00-26:00"}, "hours: saw '25:00'"),
        ({"rates": "REBOOT:2"}, "rates: saw 'REBOOT:2', wanted STEP:COUNT/h"),
        ({"rates": "REBOT:2/h"}, "no step that is taken by itself (did you mean REBOOT?)"),
        ({"approval": "CONTACT_SUPPORT"}, "no step that is taken by itself"),
    ],
)
def test_a_mistake_in_words_is_named(given, said):
    with pytest.raises(SettingsError) as error:
        settings(given)
    assert said in str(error.value)
    assert (windows(""), rates(""), asks("")) == ((), (), ())


def test_a_replay_shows_what_other_settings_would_have_done():
    past = through(incident(at=T0), H.QUARANTINED, H.DRAINED, at=later(T0, 60))
    past = through(past, H.STARTED, H.REPAIRED, H.VERIFIED, H.RETURNED, at=later(T0, 120))

    def told(site):
        return [(line.host, line.do, line.what) for line in replay([past], hosts(20), site, T0)]

    assert told(SitePolicy())[0] == ("n1", Do.QUARANTINE, "REBOOT")
    assert ("n1", Do.REPAIR, "REBOOT") in told(SitePolicy())
    careful = told(SitePolicy(approval="REBOOT"))
    assert ("n1", Do.PROPOSE, "REBOOT") in careful
    assert ("n1", Do.REPAIR, "REBOOT") not in careful
    assert told(SitePolicy(budget_percent=0))[0] == ("n1", Do.WAIT, "REBOOT")
