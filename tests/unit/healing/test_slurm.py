"""What Slurm's commands print is read as it is, and a reason that is not ours keeps the node as it is.

The lines are written by hand after Slurm 22.05's and 24.05's `scontrol -o show node`; tests/healing asks a real one.
"""

import os
import time

import pytest

from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.planner import SchedulerView
from flightline.healing.steps.slurm import SchedulerError, SlurmScheduler, expand
from tests.unit.made import program

NODE = "NodeName={name} Arch=x86_64 CPUAlloc=0 NodeAddr={name} NodeHostName={name} Version=22.05.8 State={state} Partitions=all"
OURS = "flightline: xid GPU 3 by remediate at quick for xid.79 run R"
STAMP = " [root@2026-11-22T15:33:52]"


def node(name="n1", state="IDLE", reason="", more=""):
    return NODE.format(name=name, state=state) + (f" Reason={reason}" if reason else "") + more


@pytest.fixture
def cluster(tmp_path):
    """A Slurm whose scontrol and squeue are scripts that print what the test says."""

    def made(nodes=(), jobs="", scontrol_does="", timeout_s=60.0):
        (tmp_path / "nodes").write_text("\n".join(nodes) + "\n")
        (tmp_path / "jobs").write_text(jobs)
        show = f'echo "$@" >>{tmp_path}/asked; [ "$1" = -o ] && cat {tmp_path}/nodes; exit 0'
        for name, body in (("scontrol", scontrol_does + "\n" + show), ("squeue", f"cat {tmp_path}/jobs")):
            program(tmp_path / name, body)
        return SlurmScheduler(str(tmp_path), timeout_s)

    made.asked = tmp_path / "asked"  # type: ignore[attr-defined]  # tests ask it of the function
    return made


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (node(), SchedulerView()),
        (node(state="IDLE*"), SchedulerView()),
        (node(state="MIXED+PLANNED"), SchedulerView()),
        (node(state="IDLE+DRAIN", reason="flightline: xid GPU 3 run R" + STAMP),
         SchedulerView(True, "flightline: xid GPU 3 run R")),
        (node(state="DOWN*+DRAIN+NOT_RESPONDING", reason="a=b [c@d] Comment=x" + STAMP),
         SchedulerView(True, "a=b [c@d] Comment=x")),
        (node(state="DOWN*", reason="Not responding [slurm@2026-11-22T15:33:52]"),
         SchedulerView(True, "Not responding", lost=True)),
        (node(state="DOWN", reason="Node unexpectedly rebooted [slurm@2026-11-22T15:33:52]"),
         SchedulerView(True, "Node unexpectedly rebooted", lost=True)),
        (node(state="DOWN*+DRAIN", reason="Not responding" + STAMP), SchedulerView(True, "Not responding")),
        (node(state="DOWN", reason="ada: board swap" + STAMP), SchedulerView(True, "ada: board swap")),
        (node(state="IDLE+DRAIN", reason="flightline: xid", more=" Comment=y"),
         SchedulerView(True, "flightline: xid")),
        (node(state="IDLE+MAINTENANCE+RESERVED"), SchedulerView(reserved=True)),
        (node(more=" ReservationName=upgrade"), SchedulerView(reserved=True)),
        (node(reason="State=DRAIN" + STAMP), SchedulerView(reason="State=DRAIN")),
    ],
)  # fmt: skip
def test_a_node_is_read(cluster, line, place):
    assert cluster([line]).place("n1") == place


@pytest.mark.parametrize(
    ("state", "silent"), [("DOWN*", True), ("IDLE+NOT_RESPONDING", True), ("DOWN", False), ("IDLE", False)]
)
def test_who_is_not_heard_and_since_when(cluster, monkeypatch, state, silent):
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    place = cluster([node(state=state, reason="Not responding" + STAMP)]).place("n1")
    monkeypatch.undo()
    time.tzset()
    assert (place.silent, place.since) == (silent, "2026-11-22T13:33:52.999000+00:00")


def test_the_stamp_of_a_reason_before_another_field(cluster):
    line = node(state="IDLE+DRAIN", reason="flightline: xid" + STAMP, more=" Comment=noted")
    assert cluster([line]).place("n1").reason == "flightline: xid"


def test_jobs_are_those_of_the_node(cluster):
    lines = ("77|ada|n[1-2]|7|2|2026-11-22T12:00:00|train|large|run 4 flightline:checkpoint=30 x", "78|bob|n3|0|1|N/A|x|(null)",
             "79|eve||0|1|N/A|waits|")  # fmt: skip
    jobs = "\n".join(lines)
    places = cluster([node("n1"), node("n3"), node("n9")], jobs).places(["n1", "n3", "n9", "gone"])
    assert places["n1"].jobs == (RunningJob("77", "ada", "train|large", 7, 2, places["n1"].jobs[0].started, "30"),)
    assert places["n1"].jobs[0].started.startswith("2026-11-2")
    assert places["n3"].jobs == (RunningJob("78", "bob", "x", 0, 1),)
    assert places["n9"].jobs == ()
    assert "gone" not in places


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12]", ["n08", "n09", "n10", "n12"]),
        ("rack[1-2]n[1,3],x", ["rack1n1", "rack1n3", "rack2n1", "rack2n3", "x"]),
        ("gpu-dy-p5-[1-2]", ["gpu-dy-p5-1", "gpu-dy-p5-2"]),
    ],
)
def test_host_lists(text, names):
    assert expand(text) == names


def test_hosts_are_found_by_address_where_only_one_node_has_it(cluster):
    lines = [
        node("n1").replace("NodeAddr=n1", "NodeAddr=10.0.0.7"),
        node("n2").replace("NodeHostName=n2", "NodeHostName=n1"),
    ]
    places = cluster(lines).places(["10.0.0.7", "n1"])
    assert set(places) == {"10.0.0.7", "n1"}


@pytest.mark.parametrize("verb", ["drain", "resume"])
@pytest.mark.parametrize("line", [node(state="IDLE+DRAIN", reason="disk" + STAMP), node(state="IDLE+MAINT+DRAIN")])
def test_what_others_set_stays(cluster, verb, line):
    slurm = cluster([line])
    with pytest.raises(SchedulerError, match="it stays as it is"):
        slurm.drain("n1", OURS) if verb == "drain" else slurm.resume("n1")
    assert "update" not in cluster.asked.read_text()


def test_a_drain_says_that_it_is_ours_or_is_refused(cluster):
    with pytest.raises(SchedulerError, match="wanted a claim of Flightline's"):
        cluster([node()]).drain("n1", "because")


def test_a_reason_is_written_as_it_is(cluster):
    cluster([node(more=f" Extra={OURS} going")]).drain("n1", OURS)
    assert f"update NodeName=n1 State=DRAIN Reason={OURS} Extra=" in cluster.asked.read_text().splitlines()


def test_a_drain_that_the_rule_does_not_allow_is_refused_and_leaves_no_mark(cluster):
    nodes = [node(f"n{number}", "IDLE+DRAIN", OURS, STAMP.replace("2026", "2999")) for number in (2, 3)]
    with pytest.raises(SchedulerError, match="2 of 3 are out for the same reason"):
        cluster([node(), *nodes]).drain("n1", OURS)
    assert "update" not in cluster.asked.read_text()


def test_a_node_in_service_needs_no_resume(cluster):
    cluster([node()]).resume("n1")
    assert "update" not in cluster.asked.read_text()


def test_where_its_daemon_listens(cluster):
    lines = [node("n1").replace("NodeAddr=n1", "NodeAddr=10.0.0.7"), node("n2", more=" Port=17003")]
    assert {one.address for one in cluster(lines).places(["n1", "n2"]).values()} == {"10.0.0.7:6818", "n2:17003"}


def test_a_slow_controller_is_no_answer(cluster):
    with pytest.raises(SchedulerError, match=r"scontrol -o show: no answer within 0\.3 s"):
        cluster([node()], scontrol_does="exec sleep 5", timeout_s=0.3).place("n1")


def test_a_controller_that_is_down_is_named(cluster):
    with pytest.raises(SchedulerError, match=r"status 1: slurm_load_node error: Unable to contact"):
        cluster([], scontrol_does="echo 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1").place(
            "n1"
        )


def test_no_slurm_at_all(tmp_path):
    with pytest.raises(SchedulerError, match="scontrol: not found"):
        SlurmScheduler(str(tmp_path / "nowhere")).place("n1")


def test_the_sites_taste_does_not_change_what_is_read(cluster, monkeypatch):
    monkeypatch.setenv("SQUEUE_FORMAT", "%N")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    slurm = cluster([node()], scontrol_does='test -z "$SQUEUE_FORMAT$SLURM_TIME_FORMAT" || exit 3')
    assert slurm.place("n1").known
    assert os.environ["SQUEUE_FORMAT"] == "%N"


@pytest.mark.parametrize("reason", ["flightline: keep this one out, ada", f"JIRA-12 {OURS}", f"{OURS} - ada"])
def test_a_reason_that_reads_like_ours_is_still_somebody_elses(cluster, reason):
    made = cluster([node(state="IDLE+DRAIN", reason=reason + STAMP)])
    assert not made.place("n1").ours and "somebody else" in made.place("n1").foreign
    with pytest.raises(SchedulerError, match="somebody else"):
        made.resume("n1")


def test_what_flightline_writes_is_its_own(cluster):
    assert cluster([node(state="IDLE+DRAIN", reason=OURS + STAMP)]).place("n1").ours
