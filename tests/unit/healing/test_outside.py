"""A node beside a lost host is asked as well: its word goes beside EC2's, and condemns nobody alone."""

import socket
from dataclasses import replace

import pytest

from flightline.healing.journal.stamps import later
from flightline.healing.plan.planner import Do, OutsideView, SchedulerView
from flightline.healing.steps import outside
from flightline.healing.steps.ports import EdgeError, Ports
from flightline_node.act.reach import KERNEL, OPEN, SILENT, reach
from flightline_node.model import Remedy
from tests.unit.healing.made import T0, H, hosts, steps, through
from tests.unit.healing.test_observe import LOST, lost
from tests.unit.healing.test_repair import node  # noqa: F401

GONE = replace(LOST, address="10.0.0.1:6818")
PLACES = {"n1": GONE, "n2": SchedulerView(True, "ada: disk"), "n3": SchedulerView(), "n4": SchedulerView()}


class Around:
    """EC2, the hosts and the nodes beside them, by heart."""

    def __init__(self, word=None, answers=(), dead=False):
        self.word, self.answers, self.dead, self.asked = word, answers, dead, {}

    def seen(self, instance_ids):
        return {one: OutsideView("EC2 says running, checks passed", dead=self.dead) for one in instance_ids}

    def facts(self, named, token):
        return dict.fromkeys(set(named) & set(self.answers))

    def reach(self, asked, token):
        self.asked = asked
        if self.word is None:
            raise EdgeError("nobody could be asked")
        return {one: dict.fromkeys(targets, self.word) for one, targets in asked.items()}


def seen(made, places=PLACES):
    ports, said = Ports(made, made, made, made), []
    one = through(lost(), H.DRAINED)
    return outside.seen_outside(ports, 1, [one], places, hosts(4), said.append), said


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (SILENT, "EC2 says running, checks passed, n3 gets no answer either"),
        (KERNEL, "EC2 says running, checks passed, its kernel alone answers n3"),
        (OPEN, "EC2 says running, checks passed, its scheduler's daemon answers n3"),
    ],
)
def test_a_healthy_node_of_its_group_is_asked(word, text):
    made = Around(word)
    found, _ = seen(made)
    assert made.asked == {"n3": ["10.0.0.1:6818"]}, "n2 is out of service itself"
    assert (found["n1"].said, found["n1"].reached, found["n1"].dead) == (text, word == OPEN, False)


def test_it_is_not_asked_where_more_is_known_and_its_silence_costs_no_other_word():
    for made in (Around(SILENT, answers=["n1"]), Around(SILENT, dead=True)):
        seen(made)
        assert made.asked == {}
    found, said = seen(Around())
    assert found["n1"].said == "EC2 says running, checks passed" and said == ["warning: nobody could be asked"]
    assert outside.neighbours(["n1"], {**PLACES, "n1": LOST}, hosts(4)) == {}, "nobody knows where it is"
    assert outside.neighbours(["n4"], {**PLACES, "n4": GONE}, hosts(4)) == {"n4": "n3"}


def step_at(after_s, view):
    (step,) = steps(through(lost(), H.DRAINED), places={"n1": GONE}, now=later(T0, after_s), outside={"n1": view})
    return step


def test_its_silence_alone_shortens_no_wait_and_is_shown_where_the_step_is_taken():
    silent = OutsideView("n3 gets no answer either")
    assert step_at(599, silent).do is Do.WAIT
    step = step_at(601, silent)
    assert (step.do, step.remedy) == (Do.REPAIR, Remedy.REBOOT) and "n3 gets no answer either" in step.why


def test_a_host_whose_daemon_answers_its_neighbour_is_not_rebooted_and_a_person_is_told_in_the_end():
    reached = OutsideView("its scheduler's daemon answers n3", reached=True)
    assert [step_at(after, reached).do for after in (60, 601, 180 * 60, 180 * 60 + 1)] == [Do.WAIT] * 3 + [Do.HOLD]
    assert "no reboot mends" in step_at(601, reached).why
    assert step_at(60, replace(reached, dead=True)).do is Do.REPAIR, "EC2 says more"


def test_what_answers_is_told_apart(node):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as daemon:
        there = f"127.0.0.1:{daemon.getsockname()[1]}"
        assert node("reach", 1, targets=[there])["reached"] == {there: OPEN}
    assert node("reach", 1, targets=[there])["reached"] == {there: KERNEL}
    for status, word in ((0, KERNEL), (1, SILENT)):
        pings = lambda *words, status=status: (status, " ".join(words))  # noqa: E731
        assert reach(["nowhere.invalid:1"], pings) == {"nowhere.invalid:1": word}
    assert reach([], pings) == {}
