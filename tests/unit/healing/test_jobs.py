"""A job's priority, size and next checkpoint, before it is requeued."""

import pytest

from flightline.healing.journal import incident as incidents
from flightline.healing.journal.incident import Moment, advance
from flightline.healing.journal.stamps import later
from flightline.healing.plan import show
from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.planner import Do, SchedulerView
from flightline.healing.site import SitePolicy
from flightline.healing.steps import kubernetes
from tests.unit.healing.made import T0, H, incident, steps, through

REASON = "flightline: xid GPU 3 by remediate at quick for xid.79 run R1"
DEADLINE = SitePolicy(requeue_after_min=30)


def at(minutes, *jobs, site=DEADLINE, one=None):
    """The step for a drained node with these jobs, so long after its drain."""
    place = SchedulerView(out=True, reason=REASON, jobs=jobs)
    found = one or through(incident(), H.QUARANTINED)
    (step,) = steps(found, site=site, places={"n1": place}, now=later(T0, minutes * 60))
    return step


@pytest.mark.parametrize(
    ("says", "saves"),
    [
        ("25", 40),  # every 25 minutes since it began, 10 minutes before T0: at 15, 40, ...
        ("40", None),  # at 30: the deadline itself
        ("2026-11-22T12:44:00Z", 44),
        ("2026-11-22T12:29:00Z", None),  # before the deadline: of the one after it nothing is known
        ("2026-11-22T12:46:00Z", None),  # longer than the site waits
        ("0.5", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_requeue_waits_for_the_checkpoint_that_a_job_announces(says, saves):
    job = RunningJob("77", started=later(T0, -600), checkpoint=says)
    assert at(29.9, job).do is Do.WAIT
    assert at(30, job).do is (Do.REQUEUE if saves is None else Do.WAIT)
    assert at(saves or 30, job).do is Do.REQUEUE
    assert at(30, job, site=SitePolicy(requeue_after_min=30, checkpoint_min=0)).do is Do.REQUEUE


def test_of_several_jobs_the_last_checkpoint_counts():
    jobs = [RunningJob(str(minute), checkpoint=f"2026-11-22T12:{minute}:00Z") for minute in (35, 42)]
    assert (at(41, *jobs).do, at(42, *jobs).do) == (Do.WAIT, Do.REQUEUE)


@pytest.mark.parametrize("site", [{"keep_nodes": 64}, {"keep_priority": 9000}])
def test_a_job_that_the_site_keeps_is_only_waited_for(site):
    policy = SitePolicy(requeue_after_min=30, signal_min=10, **site)
    large = RunningJob("77", priority=9000, nodes=64)
    step = at(10**5, RunningJob("78"), large, site=policy)
    assert step.do is Do.WAIT and "job 77 (64 nodes, priority 9000) is never requeued here" in step.why
    assert at(10**5, RunningJob("77", priority=8999, nodes=63), site=policy).do is Do.SIGNAL


def test_a_job_is_signalled_first_however_late_and_has_its_time_then():
    site, job = SitePolicy(requeue_after_min=30, signal_min=10), RunningJob("77")
    assert at(45, job, site=site).do is Do.SIGNAL, "the remediator did not run when it was due"
    told = Moment(later(T0, 45 * 60), H.NOTED, "test", about=incidents.SIGNALLED)
    one = advance(through(incident(), H.QUARANTINED), told)
    assert [at(minute, job, site=site, one=one).do for minute in (54.9, 55)] == [Do.WAIT, Do.REQUEUE]


def test_the_plan_shows_what_a_job_is_before_anything_is_done_to_it():
    job = RunningJob("77", priority=9000, nodes=64, checkpoint="2026-11-22T12:30:00Z")
    (step,) = steps(incident(), places={"n1": SchedulerView(jobs=(RunningJob("78"), job))})
    said = "jobs 77 (64 nodes, priority 9000, saves at 2026-11-22T12:30:00Z), 78 may run to the end"
    assert said in step.jobs and ("jobs", step.jobs) in show.lines(step)


def test_kubernetes_words():
    def pod(name, node, owner="", labels=None, **spec):
        meta = {
            "name": name,
            "namespace": "train",
            "labels": labels or {},
            "annotations": {"flightline/checkpoint": "30"},
        }
        holds = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}]}
        owners = {"ownerReferences": [{"name": owner}]} if owner else {}
        return {
            "metadata": {**meta, **owners},
            "spec": {"nodeName": node, **holds, **spec},
            "status": {"startTime": T0},
        }

    mine = {kubernetes.JOBSET_LABEL: "llama"}
    pods = [pod("a", "n1", "llama-0", mine, priority=1000), pod("b", "n2", "llama-1", mine), pod("c", "n2")]
    jobs = kubernetes._jobs(pods)
    assert jobs["n1"] == [RunningJob("train/a", "train", "llama", 1000, 2, T0, "30")]
    assert [(job.name, job.nodes, job.priority) for job in jobs["n2"]] == [("llama", 2, 0), ("c", 1, 0)]
