"""The hooks that role slurm writes, on a real Slurm: who takes a node out, and whose drain they end."""

import json
import sys

import pytest

from flightline.report.copies import no_go_claim
from flightline_node.watch import claim, slurm
from flightline_node.watch import marker as marking
from tests.beds import program, ran, until
from tests.healing import slurmbed
from tests.unit.made import node_settings
from tests.unit.roles.render import Role
from tests.unit.roles.test_slurm_files import fleet

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    slurmbed.NEEDED,
]
FIT, UNFIT = {"kernel.ostype": "Linux"}, {"kernel.ostype": "Plan 9"}
SYSCTL = "flightline: sysctl: kernel.ostype is Linux, wanted Plan 9 by {} at quick for other_value"


class Node:
    """A node of the bed with the hooks of its role, and a check of one sysctl that decides whether it is fit."""

    def __init__(self, bed, name, place):
        self.bed, self.name, self.place = bed, name, place
        self.directory = place / "lib"
        self.directory.mkdir(parents=True)
        self.fit()
        words = f"--settings {place}/node.json --directory {self.directory}"
        self.check = program(
            place / "check", f'#!/bin/sh\nshift\nexec {sys.executable} -m flightline_node check {words} "$@"\n'
        )

    def fit(self, wanted=FIT):
        made = node_settings(host=self.name, instance_type="none", checks=["sysctl"], expected={"sysctl": wanted})
        (self.place / "node.json").write_text(json.dumps(made))

    def hook(self, who, returns=True):
        role = Role("slurm", "Debian 12", {**fleet(), "_slurm_name": self.name, "slurm_health_returns": returns})
        text = role.file(f"flightline-slurm-{who}.j2").replace("/usr/local/sbin/flightline-check", str(self.check))
        script = program(self.place / who, text.replace("/var/log/flightline", str(self.place)))
        return self.bed.run(str(script), check=False).returncode

    def slurm(self, state, reason=""):
        self.bed.run(
            "scontrol", "update", f"NodeName={self.name}", f"State={state}", *([f"Reason={reason}"] if reason else [])
        )

    @property
    def state(self):
        """(in short, whose reason stands beside it)"""
        state, _, reason = (
            self.bed.run("sinfo", "-h", "-N", "-n", self.name, "-o", "%T|%E").stdout.strip().partition("|")
        )
        return state.rstrip("*"), reason.replace("none", "")

    def mark(self, **scheduler):
        wanted = {"kind": "slurm", "state": "drained", **scheduler}
        found = {"check": "xid", "status": "FAIL", "message": "GPU 3: Xid 79", "reason": "xid.79", "device": {}}
        marker = {
            "schema": marking.SCHEMA,
            "since": marking.stamp(),
            "by": marking.BY,
            "run": "W1",
            "findings": [found],
        }
        marking.write_json(self.directory / marking.MARKER, {**marker, "latched": {}, "scheduler": wanted})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurmbed.bed(tmp_path_factory.mktemp("slurm"), 2) as made:
        yield made


@pytest.fixture
def node(cluster, tmp_path):
    one = Node(cluster, "n1", tmp_path)
    # A node that Slurm does not hear yet is not returned, and rightly so: slurmd may have started a moment ago.
    until(lambda: "*" not in cluster.run("sinfo", "-h", "-n", "n1", "-o", "%T").stdout, 30)
    yield one
    if one.state[0] != "idle":
        one.slurm("RESUME")


@pytest.mark.parametrize(("who", "status"), [("prolog", 1), ("epilog", 1), ("health", 0)])
def test_a_hook_drains_in_its_name_and_the_health_check_returns_what_is_fit_again(node, who, status):
    node.fit(UNFIT)
    assert node.hook(who) == status
    assert node.state == ("drained", SYSCTL.format(who))
    node.hook("health")
    assert node.state == ("drained", SYSCTL.format(who)), "the first reason stays"
    node.fit()
    node.hook("health", returns=False)
    assert node.state[0] == "drained", "a remediator acts here"
    node.hook("health")
    assert node.state == ("idle", "")


@pytest.mark.parametrize(
    "reason",
    [
        "JIRA-12 flightline: keep this one out",
        "flightline: please keep out, RMA",
        "flightline: xid GPU 3 by remediate at standard for xid.48 run R1",
        "flightline: xid GPU 3 by remediate at quick for xid.48 run R1",
        no_go_claim("20261122T161224Z-956ae0", "standard"),
        "flightline: training: rank 3 hung by blame at quick for rank.hung",
        "flightline: gpu_load: slow by health at standard for slow",
        "flightline: xid GPU 3 by watch at quick for xid.79 run W1",
    ],
)
@pytest.mark.parametrize("fit", [FIT, UNFIT])
def test_no_hook_touches_what_a_person_or_a_deeper_look_took_out(node, reason, fit):
    """The last one is the node's own at this level: but this check has not measured what the watcher found."""
    node.slurm("DRAIN", reason)
    node.fit(fit)
    for who in ("prolog", "epilog", "health"):
        node.hook(who)
        assert node.state == ("drained", reason)


@pytest.mark.parametrize("fails", ["exit 2", "echo 'Traceback'; exit 137", "exit 124"])
def test_a_check_without_a_verdict_drains_and_is_ended_by_the_next_go(node, fails):
    good = node.check.read_text()
    node.check.write_text(f"#!/bin/sh\n{fails}\n")
    assert node.hook("prolog") > 1
    assert node.state == ("drained", "flightline: node by prolog at quick for no_verdict")
    assert claim.read(node.state[1]).check == "node"
    node.check.write_text(good)
    node.hook("health")
    assert node.state == ("idle", "")
    node.slurm("DRAIN", "ada: disk")
    node.check.write_text("#!/bin/sh\nexit 2\n")
    node.hook("epilog")
    assert node.state == ("drained", "ada: disk")
    node.check.write_text(good)


NO_VERDICT = "flightline: node by prolog at quick for no_verdict"


@pytest.mark.parametrize(("same", "check"), [(NO_VERDICT, "exit 2"), (SYSCTL.format("watch"), "")])
def test_what_another_node_is_out_for_makes_a_suspect_that_works_on(node, same, check):
    """Of two nodes one may be out for the same reason; the check of the next job ends what an earlier one said."""
    node.bed.run("scontrol", "update", "NodeName=n2", "State=DRAIN", f"Reason={same}")
    good = node.check.read_text()
    node.check.write_text(f"#!/bin/sh\n{check}\n" if check else good)
    node.fit(UNFIT)
    extra = lambda: slurm.listed(node.bed.run("scontrol", "-o", "show", "node", "n1").stdout)[0].extra  # noqa: E731
    try:
        assert [node.hook(who) for who in ("prolog", "epilog", "health")] == [0, 0, 0]
        assert (node.state, claim.read(extra()).mark) == (("idle", ""), "held")
        node.check.write_text(good)
        node.fit()
        node.hook("health", returns=False)
        assert extra() == ""
    finally:
        node.bed.run("scontrol", "update", "NodeName=n2", "State=RESUME")


def test_a_quarantine_holds_until_it_is_released(node):
    node.slurm("DRAIN", "flightline: sysctl GPU 3 by watch at quick for other_value run W1")
    node.mark()
    node.hook("health")
    assert node.state[0] == "drained"
    marking.release("R1", None, "", node.directory)
    node.hook("health")
    assert node.state == ("idle", "")


def test_who_returns_a_node_against_its_quarantine_ends_it_and_a_new_fault_is_a_new_drain(node):
    node.mark()
    assert node.hook("prolog") == 0
    assert (node.state, marking.read(node.directory)) == (("idle", ""), None)
    kept = json.loads((node.directory / marking.RELEASED).read_text())
    assert (kept["run"], kept["was"]["run"]) == ("overruled", "W1")
    records = (node.place / "records.jsonl").read_text()
    assert "overruled" in records and "in quarantine since" in records
    node.fit(UNFIT)
    assert node.hook("prolog") == 1
    assert node.state == ("drained", SYSCTL.format("prolog"))


@pytest.mark.parametrize("scheduler", [{"state": "pending"}, {"state": "foreign"}, {"kind": "kubernetes"}])
def test_a_quarantine_that_slurm_was_not_told_of_is_nobodys_to_overrule(node, scheduler):
    node.mark(**scheduler)
    assert node.hook("prolog") == 1
    assert marking.read(node.directory) is not None
    assert node.state[1].startswith("flightline: quarantine: xid: GPU 3: Xid 79")


def test_a_host_that_was_lost_comes_back_only_with_proof(cluster, tmp_path):
    one = Node(cluster, "n2", tmp_path)
    cluster.node_down("n2")
    until(lambda: one.state == ("down", "Not responding"), 90, "n2 is lost", 0.5)
    cluster.node_up("n2")
    until(
        lambda: "*" not in ran("sinfo", "-h", "-N", "-n", "n2", "-o", "%T", env=cluster.whole_env).stdout,
        60,
        "n2 answers",
    )
    assert one.state == ("down", "Not responding"), "ReturnToService=0: the answer is no proof"
    one.hook("health", returns=False)
    assert one.state[0] == "down"
    one.fit(UNFIT)
    one.hook("health")
    assert one.state[1] == SYSCTL.format("health")
    one.fit()
    one.hook("health")
    assert one.state == ("idle", "")
