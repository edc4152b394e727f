"""Whatever happens to a cluster in whatever order: faults, jobs, operators, a scheduler that is down, controllers cut off."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.site import SitePolicy
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.rules import DESTRUCTIVE, check_returns
from tests.healing.world import World

HOSTS = [f"n{number}" for number in range(1, 13)]
SICK = st.sampled_from(HOSTS[:4])
MOST_OUT = 1


class Cut(BaseException):
    """The controller dies here."""


class Cluster(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.place = Path(tempfile.mkdtemp(prefix="flightline-machine-"))
        self.world, self.clock = World(self.place / "world"), Clock()
        self.world.make(HOSTS)
        self.foreign = set()

    def teardown(self):
        shutil.rmtree(self.place, ignore_errors=True)

    @rule(host=SICK, fault=st.sampled_from(["RESTART_APP", "RESET_GPU", "REBOOT", "BROKEN", "FIX_CONFIG"]))
    def falls_sick(self, host, fault):
        self.world.set(host, fault=fault)

    @rule(host=SICK, jobs=st.lists(st.sampled_from(["71", "72"]), unique=True))
    def jobs_change(self, host, jobs):
        if not self.world.node(host)["out"]:
            self.world.set(host, jobs=jobs)

    @rule(host=SICK)
    def jobs_end(self, host):
        self.world.set(host, jobs=[])

    @rule(host=SICK)
    def operator_takes(self, host):
        self.world.set(host, out=True, reason="ada: mine")
        self.foreign.add(host)

    @rule(host=SICK)
    def operator_returns(self, host):
        self.world.set(host, out=False, reason="")
        self.world._log("operator", host)
        self.foreign.discard(host)

    @rule(up=st.booleans())
    def scheduler(self, up):
        self.world.set_up(up)

    @rule(host=SICK, up=st.booleans())
    def node(self, host, up):
        self.world.set(host, up=up)

    @rule(seconds=st.sampled_from([60, 1900, 11_000]))
    def time_passes(self, seconds):
        self.clock.forward(seconds)

    @rule(cut=st.integers(0, 12), looked=st.booleans())
    def round(self, cut, looked):
        self.clock.forward(70)
        left = [cut]

        def pause(*_):
            left[0] -= 1
            if left[0] == 0:
                raise Cut

        before = len(self.world.effects())
        self.world.pause = pause if cut else (lambda *_: None)
        seen = (
            [sighting(self.world, self.clock, host) for host in HOSTS if self.world.node(host)["up"]] if looked else []
        )
        try:
            with controller(self.place / "runs.sqlite", self.world, self.clock, SitePolicy()) as one:
                one.round(seen, groups(self.world))
        except Cut:
            self.clock.forward(70)
        touched = {line["host"] for line in self.world.effects()[before:] if line["what"] not in ("judged", "release")}
        assert not touched & self.foreign

    @rule(
        host=SICK,
        fault=st.sampled_from(["RESTART_APP", "RESET_GPU", "REBOOT"]),
        cuts=st.lists(st.integers(0, 9), min_size=4),
    )
    def healing_is_left_alone_but_for_cuts(self, host, fault, cuts):
        """Without this a node rarely comes as far as its repair."""
        self.world.set_up(True)
        self.world.set(host, fault=fault, up=True, jobs=[])
        for number, cut in enumerate(cuts):
            self.round(cut, number == 0)

    @invariant()
    def no_destructive_step_twice_and_none_under_a_job(self):
        found = [line for line in self.world.effects() if line["what"] in DESTRUCTIVE] if hasattr(self, "world") else []
        assert max(Counter(line["id"] for line in found).values(), default=0) <= 1
        assert all(line["out"] and not line["jobs"] for line in found)

    @invariant()
    def no_return_without_a_go(self):
        if hasattr(self, "world"):
            check_returns(self.world.effects())

    @invariant()
    def no_more_than_the_budget(self):
        out = set()
        for line in self.world.effects() if hasattr(self, "world") else []:
            if line["what"] == "drain":
                out.add(line["host"])
            elif line["what"] in ("resume", "operator"):
                out.discard(line["host"])
            assert len(out) <= MOST_OUT + len(HOSTS[:4]) * bool(self.foreign)

    @invariant()
    def every_node_that_is_out_has_a_reason_and_every_incident_one_too(self):
        if not hasattr(self, "world"):
            return
        for node in self.world.state()["nodes"].values():
            assert not node["out"] or node["reason"]
        path = self.place / "runs.sqlite"
        if path.exists():
            with SqliteLedger(path) as ledger:
                assert all(one.troubles and one.events for one in ledger.incidents())


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
