"""What is planned for a node in each state, and what is never touched."""

from dataclasses import replace

import pytest

from flightline.healing.journal import incident as incidents
from flightline.healing.journal.incident import Moment, advance
from flightline.healing.journal.stamps import later
from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.planner import Do, FleetState, SchedulerView, plan
from flightline.healing.site import SitePolicy
from flightline_node.model import Remedy
from tests.unit.healing.made import T0, H, attempted, fleet, incident, proven, steps, through, trouble

DRAIN = "flightline: xid GPU 3 by remediate at quick for xid.79 run R1"
OUT = SchedulerView(out=True, reason=DRAIN)
BUSY = SchedulerView(out=True, reason=DRAIN, jobs=(RunningJob("77", "ada"), RunningJob("78")))
QUARANTINED = (H.QUARANTINED,)
REPAIRING = (*QUARANTINED, H.DRAINED)
VERIFYING = (*REPAIRING, H.REPAIRED)


def only(*given, **more):
    (step,) = steps(*given, **more)
    return step


def test_a_sick_node_is_taken_out_and_its_jobs_run_on():
    step = only(incident(), places={"n1": SchedulerView(jobs=(RunningJob("77"),))})
    assert (step.do, step.remedy) == (Do.QUARANTINE, Remedy.REBOOT)
    assert step.jobs == "job 77 may run to the end, no new job starts"


def test_one_that_is_out_by_flightline_is_gone_on_with():
    assert only(incident(), places={"n1": OUT}).do is Do.ADOPT


@pytest.mark.parametrize(
    "place",
    [
        SchedulerView(out=True, reason="maintenance"),
        SchedulerView(out=True),
        SchedulerView(reserved=True),
        SchedulerView(out=True, reason="flightline R"),
    ],
)
@pytest.mark.parametrize("way", [(), QUARANTINED, REPAIRING, VERIFYING])
def test_what_somebody_else_has_set_is_never_touched(place, way):
    step = only(through(incident(), *way), places={"n1": place})
    assert step.do is Do.WAIT
    assert "changes nothing" in step.why


@pytest.mark.parametrize("way", [QUARANTINED, REPAIRING, VERIFYING])
def test_a_node_that_somebody_returned_is_theirs(way):
    assert only(through(incident(), *way), places={"n1": SchedulerView()}).do is Do.LEAVE


def test_running_jobs_are_waited_for_without_end_by_default():
    step = only(through(incident(), *QUARANTINED), places={"n1": BUSY}, now=later(T0, 86_400))
    assert (step.do, step.why) == (Do.WAIT, "jobs 77, 78 may end first")


def test_jobs_are_requeued_once_after_the_sites_deadline():
    one, site = through(incident(), *QUARANTINED), SitePolicy(requeue_after_min=30)
    assert only(one, places={"n1": BUSY}, now=later(T0, 1790), site=site).do is Do.WAIT
    step = only(one, places={"n1": BUSY}, now=later(T0, 1801), site=site)
    assert (step.do, step.jobs) == (Do.REQUEUE, "requeues jobs 77, 78")
    done = attempted(one, incidents.REQUEUE)
    assert only(done, places={"n1": BUSY}, now=later(T0, 1801), site=site).do is Do.WAIT


def test_a_drained_node_is_repaired_as_the_finding_asks():
    assert only(through(incident(), *QUARANTINED), places={"n1": OUT}).do is Do.DRAINED
    step = only(through(incident(), *REPAIRING), places={"n1": OUT})
    assert (step.do, step.remedy) == (Do.REPAIR, Remedy.REBOOT)


def test_nothing_is_repaired_under_a_job():
    assert only(through(incident(), *REPAIRING), places={"n1": BUSY}).do is Do.WAIT


@pytest.mark.parametrize("remedy", ["FIX_CONFIG", "INVESTIGATE", "CONTACT_SUPPORT", "NONE", "UNHEARD_OF"])
def test_what_no_step_heals_is_held(remedy):
    step = only(through(incident("n1", trouble(remedy)), *QUARANTINED), places={"n1": OUT})
    assert (step.do, step.remedy) == (Do.HOLD, None)


def test_a_step_without_an_outcome_is_settled_before_anything_else():
    pending = attempted(through(incident(), *REPAIRING), "REBOOT", outcome="")
    assert only(pending, places={"n1": OUT}).do is Do.SETTLE


def test_a_repaired_node_returns_only_with_proof():
    one = through(incident(), *VERIFYING)
    assert only(one, places={"n1": OUT}).do is Do.VERIFY
    assert only(proven(one), places={"n1": OUT}).do is Do.RETURN


def test_a_node_that_the_scheduler_is_sure_is_gone_is_left_and_not_repaired_unless_it_was_replaced_by_us():
    gone = {"n1": SchedulerView(known=False, gone="the cluster has no such Node any more")}
    for stage in (QUARANTINED, REPAIRING, VERIFYING):
        assert only(through(incident(), *stage), places=gone).do is Do.LEAVE
    assert only(incident(), places=gone).do is Do.WAIT
    ours = replace(through(incident(), *VERIFYING), swap={"bad": "i-bad"})
    assert only(ours, places=gone).do is Do.VERIFY
    assert only(through(incident(), *REPAIRING), places={"n1": SchedulerView(known=False)}).do is Do.REPAIR


def test_without_proof_in_time_it_is_held():
    one = through(incident(), *VERIFYING)
    assert only(one, places={"n1": OUT}, now=later(T0, 180 * 60 + 1)).do is Do.HOLD


def test_a_kept_bad_instance_is_given_back_before_the_return():
    one = proven(replace(through(incident(), *VERIFYING), swap={"kept": True, "bad": "i-bad"}))
    assert only(one, places={"n1": OUT}).do is Do.RELEASE
    assert only(attempted(one, incidents.RELEASE), places={"n1": OUT}).do is Do.RETURN


def test_the_same_trouble_on_the_same_gpu_climbs_whatever_the_node_is_called():
    old = through(attempted(incident("n7"), "REBOOT"), *VERIFYING, H.RETURNED)
    one = through(incident("n1", at=later(T0, 3600)), *REPAIRING)
    step = only(one, places={"n1": OUT}, past=[old], now=later(T0, 3600))
    assert step.remedy is Remedy.REPLACE
    late = only(one, places={"n1": OUT}, past=[old], now=later(T0, 169 * 3600))
    assert late.remedy is Remedy.REBOOT
    other = through(incident("n1", trouble(serial="1650000000002")), *REPAIRING)
    assert only(other, places={"n1": OUT}, past=[old]).remedy is Remedy.REBOOT


def test_what_was_proven_not_to_have_been_done_does_not_climb():
    one = attempted(through(incident(), *REPAIRING), "REBOOT", outcome=incidents.NOT_DONE)
    assert only(one, places={"n1": OUT}).remedy is Remedy.REBOOT


def test_replacing_can_be_left_to_people():
    one = through(incident("n1", trouble("REPLACE")), *REPAIRING)
    assert only(one, places={"n1": OUT}, site=SitePolicy(replace=0)).do is Do.HOLD


def test_the_budget_binds_and_the_most_urgent_goes_first():
    sick = [incident("n1", trouble("RESET_GPU", serial="1")), incident("n2", trouble("REPLACE", serial="2"))]
    first, second = steps(*sick, size=8)
    assert (first.incident.host, first.do) == ("n2", Do.QUARANTINE)
    assert (second.incident.host, second.do) == ("n1", Do.WAIT)
    assert "at most 1" in second.why


@pytest.mark.parametrize("site", [SitePolicy(budget_percent=0), SitePolicy(need=20)])
def test_no_budget_takes_nothing_out(site):
    assert only(incident(), site=site).do is Do.WAIT


def test_nodes_that_operators_took_out_use_the_budget():
    others = {"n2": SchedulerView(out=True, reason="disk"), "n3": SchedulerView(out=True, reason="disk")}
    assert only(incident(), places=others).do is Do.WAIT


def crowd(count):
    return [incident(f"n{number}", trouble(serial=str(number))) for number in range(1, count + 1)]


def test_a_crowd_stops_its_group_and_no_other():
    groups = {**{f"n{number}": "p5" for number in range(1, 13)}, "m1": "p4", "m2": "p4"}
    sick = [*crowd(5), incident("m1", group="p4")]
    made = plan(FleetState(T0, groups, {host: SchedulerView() for host in groups}, sick), SitePolicy())
    (trip,) = made.trips
    assert (trip.group, trip.check, len(trip.hosts)) == ("p5", "xid", 5)
    assert {step.incident.group for step in made.steps if step.changes} == {"p4"}


def test_a_stopped_group_stays_stopped_when_the_crowd_is_old():
    made = plan(fleet(*crowd(2), stops={"p5": "xid on 5 of 12"}, now=later(T0, 86_400)), SitePolicy())
    assert made.trips == []
    assert not any(step.changes for step in made.steps)


def test_after_a_reset_the_same_crowd_does_not_stop_it_again():
    note = Moment(T0, H.NOTED, "ada", "driver rolled back", about=incidents.BREAKER_RESET)
    made = plan(fleet(*[advance(one, note) for one in crowd(10)]), SitePolicy())
    assert made.trips == []
    assert sum(step.do is Do.QUARANTINE for step in made.steps) == 2


def test_a_reset_and_a_run_that_an_earlier_version_stored_are_still_known():
    raw = advance(incident(), Moment(T0, H.NOTED, "ada", "breaker reset")).to_dict()
    for event in raw["events"]:
        del event["about"], event["run"]
    detected, noted = incidents.from_dict(raw).events
    assert (detected.run, detected.about, noted.about) == ("R1", "", incidents.BREAKER_RESET)


def test_nothing_is_changed_while_the_scheduler_is_down():
    sick = [incident("n1"), through(incident("n2"), *REPAIRING), proven(through(incident("n3"), *VERIFYING))]
    made = plan(FleetState(T0, {f"n{i}": "p5" for i in range(1, 21)}, None, sick), SitePolicy())
    assert [step.do for step in made.steps] == [Do.WAIT] * 3


def test_an_incident_survives_its_store():
    one = proven(attempted(through(incident(), *VERIFYING), "REBOOT"))
    one = replace(one, swap={"kept": True})
    assert incidents.from_dict({**one.to_dict(), "newer": 1}) == one


def test_events_stay_bounded():
    one = incident()
    for number in range(1000):
        one = advance(one, Moment(T0, H.NOTED, "x", str(number), tuple(map(str, range(50)))))
    assert len(one.events) == incidents.MOST_EVENTS
    assert one.events[0].what == H.DETECTED
    assert len(one.events[-1].evidence) == incidents.MOST_LINES


def test_three_reasons_of_one_check_are_three_troubles_and_what_was_returned_counts_no_more():
    def sick(host, number):
        return incident(host, trouble(serial=host, reason=f"xid.{number}"))

    mixed = [sick("n1", 48), sick("n2", 79), sick("n3", 119)]
    assert plan(fleet(*mixed, size=6), SitePolicy()).trips == []
    same = [sick(f"n{number}", 79) for number in (1, 2, 3)]
    (trip,) = plan(fleet(*same, size=6), SitePolicy()).trips
    assert (trip.check, trip.reason) == ("xid", "xid.79")
    past = [through(one, H.QUARANTINED, H.LEFT) for one in same[1:]]
    assert plan(fleet(same[0], size=6, past=past), SitePolicy()).trips == []
