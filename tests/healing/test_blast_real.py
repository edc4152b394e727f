"""The same kernel line on every node at once: on a real Slurm with real watchers, and simulated with more nodes."""

import random
import threading
import time

import pytest

from flightline.healing.steps.slurm import SlurmScheduler
from flightline_node.watch import rule, slurm
from tests.beds import until
from tests.healing import slurmbed
from tests.healing.fleet import Watched, ready
from tests.healing.slurmctld import Slurmctld

XID_79 = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
NODES = 8
real = slurmbed.NEEDED


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    place = tmp_path_factory.mktemp("blast")
    with slurmbed.bed(place / "slurm", NODES) as bed:
        nodes = {name: Watched(name, place / name, bed.env) for name in bed.names}
        for one in nodes.values():
            one.up()
        ready(list(nodes.values()))
        yield bed, nodes
        for one in nodes.values():
            one.down()


@real
@pytest.mark.root
@pytest.mark.slow
def test_a_line_on_all_nodes_takes_out_the_budget_says_so_once_and_a_person_lets_go_on(watched, monkeypatch):
    bed, nodes = watched
    monkeypatch.setenv("SLURM_CONF", str(bed.config))
    order = list(nodes.values())
    random.Random(31).shuffle(order)
    for one in order:
        one.say(XID_79)
        time.sleep(random.uniform(0, 0.1))
    until(lambda: all(one.decided() for one in order), 30, every_s=0.1)
    out = [name for name, place in SlurmScheduler().places(nodes).items() if place.out]
    suspects = [name for name, place in SlurmScheduler().places(nodes).items() if place.suspect]
    assert (len(out), len(suspects)) == (1, NODES - 1)
    assert [name for name, one in nodes.items() if one.marker()] == out
    until(lambda: any("suspects: xid.79 on 8 of 8" in one.said_so_far() for one in order), 20, every_s=0.2)
    time.sleep(2)
    assert sum("suspects: " in one.said_so_far() for one in order) == 1
    bed.run("scontrol", "update", f"NodeName={out[0]}", "State=RESUME")
    time.sleep(3)
    assert not any(place.out for place in SlurmScheduler().places(nodes).values()), "they hold until a person says so"
    assert sorted(SlurmScheduler().let_go(list(nodes))) == sorted(suspects)
    assert not any(place.suspect for place in SlurmScheduler().places(nodes).values())


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("count", [2, 8, 100, pytest.param(500, marks=pytest.mark.slow)])
def test_simulated_nodes_take_out_the_budget_and_no_more(count, eager):
    cluster, done = Slurmctld([f"n{number:03}" for number in range(count)]), {}
    pick = random.Random(count)

    def node(name, wait_s):
        time.sleep(wait_s)
        reason = "flightline: xid GPU 3 by watch at quick for xid.79 run R"
        done[name] = slurm.drain(name, reason, cluster.ask, eager=eager).state

    threads = [threading.Thread(target=node, args=(name, pick.random())) for name in cluster.nodes]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (cluster.most_out, list(done.values()).count("drained")) == (rule.most(count, 10), rule.most(count, 10))
    assert set(done.values()) == {"drained", "suspect"}
