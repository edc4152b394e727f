"""A thousand Nodes of a real API server with 50 faults: judged at their join, healed within the budget, the API server
upgraded meanwhile.

Simulated: kubelets (kwok keeps the Nodes ready, their leases renewed and the agents' pods running), what the checks find,
repairs and proofs (tests/healing/world.py). Real: the API server with its admission, the node lifecycle controller, each
agent's own code under its own token, kubectl, the controller and its journal.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from flightline import contract
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.site import SitePolicy
from flightline.healing.steps.kubernetes import KubernetesScheduler
from flightline_node.kubernetes.agent import AgentOptions, NodeAgent
from flightline_node.kubernetes.api import ApiAccess
from flightline_node.kubernetes.judging import Judged
from flightline_node.kubernetes.own_node import OwnNode
from flightline_node.selfcheck import GO, NO_GO
from flightline_node.watch import claim
from flightline_node.watch.marker import stamp
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.world import World

from . import fleet
from .cluster import WAIT_S, cluster

NODES, AT_JOIN, LATER = 1000, 25, 25
PERCENT = 4.0
"""Of the group may be out at once: 40 nodes, so that of the later faults 15 are taken out at first and 10 wait."""
MOST_OUT = int(NODES * PERCENT / 100)
AT_ONCE = 8
SICK = "REBOOT"
FIRST_VERSION = "--emulated-version=1.35"
MOST_ROUNDS = 60


class Agents:
    """The agents of all nodes in one process: each with its own token, Node, marker and judgement."""

    def __init__(self, plane, place, world):
        self.plane, self.place, self.world = plane, place, world
        self.names = [f"thousand-{number:04}" for number in range(NODES)]
        self.made = {}

    def each(self, do, names=None):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(do, names or self.names))

    def register(self, name):
        fleet.register(self.plane, name, fleet.P5)
        own = self.place / name
        own.mkdir()
        (own / "ca.crt").write_bytes(self.plane.authority.read_bytes())
        (own / "token").write_text(fleet.token(self.plane, name))
        node = OwnNode(ApiAccess(self.plane.server, own, 60), name, stamp)
        options = AgentOptions(every_s=0, standard_every_s=0, directory=own, kmsg="/dev/null")
        self.made[name] = NodeAgent(options, node, "boot-1", lambda *_: self.judged(name), lambda: "")

    def judged(self, name):
        why = claim.Claim("xid", "GPU 3", claim.AGENT, "quick", "xid.79", f"kube-{name}").text
        return Judged(NO_GO, why, {}) if name in self.faults else Judged(GO, "", {})

    def judge(self, names=None, blind_to=()):
        """Every agent looks once. blind_to: nodes with a fault that a level quick does not find."""
        sick = {name: one["fault"] for name, one in self.world.state()["nodes"].items() if one["fault"]}
        self.faults = {name: fault for name, fault in sick.items() if name not in blind_to}
        self.each(lambda name: self.made[name].step(), names)


@pytest.fixture(scope="module")
def own_plane(plane, tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("thousand"), FIRST_VERSION) as one:
        one.controllers("node-lifecycle-controller")
        one.kwok()
        fleet.install(one)
        yield one


def standing(plane):
    """Node -> its taints of ours and whether it is cordoned, as the API server has them."""
    return {
        node["metadata"]["name"]: (
            {one["key"] for one in node["spec"].get("taints") or [] if one["key"].startswith("flightline/")},
            bool(node["spec"].get("unschedulable")),
        )
        for node in plane.ask("GET", "/api/v1/nodes")["items"]
    }


def living(plane):
    """Nodes that are ready, by kwok's word and the node lifecycle controller's."""
    return sum(fleet.alive(node) for node in plane.ask("GET", "/api/v1/nodes")["items"])


def test_a_thousand_nodes_with_fifty_faults_are_judged_and_healed_within_the_budget(own_plane, tmp_path, capsys):
    world = World(tmp_path / "world")
    agents = Agents(own_plane, tmp_path, world)
    world.make(agents.names)
    at_join, later = agents.names[::40][:AT_JOIN], agents.names[7::40][:LATER]
    for name in at_join:
        world.set(name, fault=SICK)

    began = time.monotonic()
    agents.each(agents.register)
    own_plane.until(lambda: living(own_plane) == NODES, "kwok has made them ready", 2 * WAIT_S)
    registered = time.monotonic()
    assert all(taints == {contract.KUBE_STARTUP_TAINT} for taints, _ in standing(own_plane).values())
    agents.judge()
    judged = time.monotonic()
    both = {contract.KUBE_STARTUP_TAINT, contract.KUBE_FAULT_TAINT}
    wanted = {name: both if name in at_join else set() for name in agents.names}
    assert {name: taints for name, (taints, _) in standing(own_plane).items()} == wanted

    for name in later:
        world.set(name, fault=SICK)
    rounds, most_out = healed(own_plane, agents, tmp_path / "runs.sqlite", at_join, later)
    done = time.monotonic()
    assert most_out <= MOST_OUT, "never more out of service than the budget"
    assert {name: one for name, one in standing(own_plane).items() if one != (set(), False)} == {}
    effects = [(one["what"], one["host"]) for one in world.effects() if one["what"] == SICK]
    assert sorted(effects) == sorted((SICK, name) for name in (*at_join, *later)), "each repaired, and once"
    with SqliteLedger(tmp_path / "runs.sqlite") as ledger:
        known = ledger.incidents()
    assert len(known) == AT_JOIN + LATER and all(one.closed_at for one in known)
    # A tainted node may be back by its agent's own go before the controller asked for a proof; a cordoned one never.
    assert {one.host for one in known if one.proof} >= set(later)
    own_plane.until(
        lambda: living(own_plane) == NODES, "every node is alive, the API server's upgrade behind it", 2 * WAIT_S
    )
    leases = own_plane.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")["items"]
    assert len(leases) == NODES
    pods = own_plane.ask("GET", f"/api/v1/namespaces/{contract.KUBE_NAMESPACE}/pods")["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"} and len(pods) == NODES
    with capsys.disabled():
        sys.stderr.write(
            f"\n{NODES} nodes: registered and ready in {registered - began:.0f} s, judged at their join in {judged - registered:.0f} s, "
            f"{len(known)} healed in {rounds} rounds and {done - judged:.0f} s, at most {most_out} of {MOST_OUT} out at once\n"
        )


def healed(plane, agents, store, at_join, later):
    """Rounds of the controller until nothing is out, the API server away and upgraded meanwhile; rounds, most out.

    The later faults are those that only the fleet's preflight finds: the budget decides when their nodes leave service.
    """
    clock, world, most, told = Clock(), agents.world, 0, []
    scheduler = KubernetesScheduler(plane.client, timeout_s=120)
    sick = hosts = [*at_join, *later]
    for number in range(1, MOST_ROUNDS):
        clock.forward(60)
        if number == 3:
            plane.api_down()
        with controller(store, world, clock, site=SitePolicy(budget_percent=PERCENT)) as one:
            one.ports.scheduler, one.say = scheduler, told.append
            with SqliteLedger(store) as other:
                assert other.acquire("two", clock.seconds(), 60) is None, "a second controller waits for the lease"
            one.round([sighting(world, clock, host) for host in hosts], groups(world))
        hosts = []
        if number == 3:
            assert any("get nodes" in line for line in told), "nothing is done, and said"
            plane.more = ()  # the next minor version
            plane.api_up()
        agents.judge(sick, blind_to=later)
        seen = standing(plane)
        most = max(most, sum(1 for taints, cordoned in seen.values() if taints or cordoned))
        if not any(taints or cordoned for taints, cordoned in seen.values()):
            return number, most
    raise AssertionError(f"still out after {MOST_ROUNDS} rounds: {told[-20:]}")
