"""Whether a run hangs: the rule against a simulated clock, and the watch over real processes that print, spin, write and stop."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from flightline_node.ask import processes
from flightline_node.model import SettingsError
from flightline_node.train import stall, watching
from flightline_node.train.plan import plan
from flightline_node.train.pulse import Beats, Pulse, RankPulse
from flightline_node.train.starts import StartEvidence

from .test_launcher import SETTINGS, Site

DAY = 24 * 3600.0


class Fleet:
    """A simulated program of four ranks on one node; each act moves the clock and what it would move."""

    def __init__(self, together=False, gpus=True, seed=1):
        self.rule, self.gpus, self.chance = stall.StallRule(together), gpus, random.Random(seed)
        self.at, self.output, self.steps = 0.0, 0, 0.0
        self.cpu, self.io, self.faults = ([0.0] * 4 for _ in range(3))
        self.pids, self.alarms = frozenset(range(10, 14)), []

    def act(
        self,
        seconds,
        output_each=0.0,
        cpu=1.0,
        io=0.0,
        faults=0.0,
        watts=250.0,
        state="S",
        who=range(4),
        pids=0,
        step_s=0.0,
        saving=False,
    ):
        """For so long; io and faults a second, of the ranks in who, the others wait (spinning where there are GPUs)."""
        until, printed = self.at + seconds, self.at
        while self.at < until:
            self.at += watching.PULSE_S
            for rank in range(4):
                works = rank in who
                self.cpu[rank] += watching.PULSE_S * (cpu if works else float(self.gpus))
                self.io[rank] += watching.PULSE_S * io * works * self.chance.uniform(0.5, 1.5)
                self.faults[rank] += watching.PULSE_S * faults * works * self.chance.uniform(0.5, 1.5)
            if output_each and self.at - printed >= output_each:
                self.output, printed = self.output + 80, self.at
            self.steps += watching.PULSE_S / step_s if step_s else 0
            found = self.look(watts, state, pids, saving)
            if found:
                self.alarms.append((self.at, found))
                return found
        return None

    def look(self, watts, state, pids, saving):
        ranks = [RankPulse(r, 10 + r, state if r == 1 else "S", self.cpu[r], int(self.io[r]), int(self.faults[r])) for r in range(4)]  # fmt: skip
        new = {1000 + int(self.at)} if pids else set()
        beats = Beats(4 * int(self.steps), saving)
        given = watts if self.gpus else None
        return self.rule.look(Pulse(self.at, self.output, tuple(ranks), self.pids | new, given, beats))

    def train(self, seconds, each, step_s=0.0):
        """Steps: little I/O, faults of the loader, full power. step_s: they are counted by the contract."""
        return self.act(seconds, output_each=each, io=200_000, faults=300, watts=2600, step_s=step_s)


def start(fleet):
    """Imports, the meeting in NCCL, a compile without output and the first step."""
    fleet.act(40, output_each=9, io=9e6, faults=9000, watts=300)
    fleet.act(120, cpu=0.0, watts=300)
    fleet.act(400, cpu=1.0, faults=500, watts=300, pids=1)


@pytest.mark.parametrize(
    ("gpus", "each", "step_s"),
    [*((gpus, each, 0) for gpus in (True, False) for each in (1.0, 10.0, 120.0)),
     (True, 10.0, 0.1), (False, 600.0, 1.0), (False, 60.0, 12.0)],
)  # fmt: skip
def test_no_false_alarm_in_a_day_of_checkpoints_evaluations_and_compiles(gpus, each, step_s):
    fleet = Fleet(gpus=gpus, seed=int(each))
    start(fleet)
    while fleet.at < DAY:
        fleet.train(1800, each, step_s)
        if step_s:
            fleet.act(200, cpu=0.0, saving=True, watts=400)
            fleet.act(120, cpu=1.0, faults=200, who=[0], watts=400)
        fleet.act(90, cpu=0.1, io=4e8, who=[0], watts=800)
        fleet.act(60, cpu=0.0, state="D", watts=800)
        fleet.train(600, each, step_s)
        fleet.act(240, cpu=1.0, watts=2400)
        fleet.act(180, cpu=1.0, faults=400, watts=400, pids=1)
        fleet.act(8, cpu=0.0, watts=400)
    assert fleet.alarms == []


@pytest.mark.parametrize(
    ("gpus", "each", "hang", "most_s", "says"),
    [
        (False, 1.0, {"cpu": 0.0}, 16, "rank 0, 1, 2, 3 asleep"),
        (True, 1.0, {"cpu": 1.0, "watts": 1100.0}, 30, "rank 0, 1, 2, 3 busy"),
        (True, 1.0, {"cpu": 0.0, "who": [2], "watts": 1100.0}, 30, "rank 2 asleep; rank 0, 1, 3 busy"),
        (False, 1.0, {"cpu": 0.0, "faults": 2.0, "io": 100.0}, 16, "nothing moves"),
        (False, 60.0, {"cpu": 0.0}, 190, "usual is an output each 60.0 s"),
        (True, 1.0, {"state": "T"}, 14, "rank 1 is stopped by a signal"),
    ],
    ids=["asleep", "spinning", "one asleep", "threads that only look", "slow rhythm", "stopped"],
)
def test_a_hang_is_noticed(gpus, each, hang, most_s, says):
    fleet = Fleet(gpus=gpus)
    start(fleet)
    assert fleet.train(600, each) is None
    began = fleet.at
    found = fleet.act(600, **hang)
    assert found is not None and says in found.text and fleet.at - began <= most_s


@pytest.mark.parametrize(
    ("gpus", "watts", "step_s", "seconds", "hang", "most_s"),
    [
        (False, 0.0, 0.1, 2, {"cpu": 0.0}, 15),
        (False, 0.0, 4.0, 60, {"cpu": 0.0}, 15),
        (False, 0.0, 0.1, 60, {"cpu": 1.0, "who": [2]}, 16),
        (True, 75.0, 0.1, 60, {"cpu": 0.0, "watts": 75.0}, 15),
        (True, 2600.0, 0.5, 60, {"cpu": 0.0, "who": [2], "watts": 1100.0}, 26),
        (False, 0.0, 12.0, 200, {"cpu": 0.0}, 37),
    ],
    ids=["soon after the first steps", "asleep", "one spins", "gloo beside idle GPUs", "NCCL spins", "slow steps"],
)
def test_a_hang_of_a_program_that_prints_nothing_is_noticed_by_its_steps(gpus, watts, step_s, seconds, hang, most_s):
    fleet = Fleet(gpus=gpus)
    fleet.act(40, output_each=9, io=9e6, faults=9000, watts=75.0)
    assert fleet.act(seconds, io=200_000, faults=300, watts=watts, step_s=step_s) is None
    began = fleet.at
    found = fleet.act(600, **hang)
    assert found is not None and fleet.at - began <= most_s
    assert fleet.act(3, io=200_000, faults=300, watts=watts, step_s=1.0) is None, "it goes on"


@pytest.mark.parametrize(
    ("fault", "says"), [("spin", "rank 2 busy; rank 0, 1, 3 asleep"), ("loader", "rank 0, 1, 2, 3 asleep")]
)
def test_pulses_recorded_of_real_hangs(fault, says):
    """Of accelerate on PyTorch 2.9.1 over gloo, from 25 s before the first step to the notice (tests/training/foreign.py)."""
    recorded = json.loads(Path(__file__).with_name("pulses.json").read_text())[fault]
    for counted in (1, 0):
        rule, found = stall.StallRule(False), []
        for at, output, pids, steps, ranks in recorded:
            seen = tuple(RankPulse(rank, rank, *one) for rank, one in enumerate(ranks))
            found.append(rule.look(Pulse(at, output, seen, frozenset([pids]), None, Beats(steps * counted))))
        assert found[:-1] == [None] * (len(found) - 1)
        assert (found[-1] is not None and says in found[-1].text) == bool(counted), "without steps it was not noticed"


def test_a_hang_before_the_first_step_is_noticed_late_and_beside_other_nodes_later():
    early = Fleet(gpus=False)
    early.act(40, output_each=30, io=9e6)
    assert early.act(600, cpu=0.0) is None and early.act(600, cpu=0.0) is not None
    together = Fleet(together=True, gpus=False)
    start(together)
    together.train(600, 1.0)
    assert together.act(50, cpu=0.0) is None, "another node may write a checkpoint"
    assert together.act(20, cpu=0.0) is not None


def test_a_pause_that_ended_by_itself_is_learned():
    fleet = Fleet(gpus=False)
    start(fleet)
    fleet.train(60, 1.0)
    assert fleet.act(40, cpu=0.0) is not None
    for _ in range(30):
        fleet.act(watching.PULSE_S, cpu=0.0)
    fleet.train(120, 1.0)
    assert fleet.act(40, cpu=0.0) is None


def test_a_disk_is_not_waited_for_for_ever():
    fleet = Fleet(gpus=False)
    start(fleet)
    fleet.train(300, 1.0)
    assert fleet.act(250, cpu=0.0, state="D") is None
    found = fleet.act(200, cpu=0.0, state="D")
    assert found is not None and "rank 1 waits for a disk" in found.text


PROGRAM = """
import os, sys, time
kind, rank = sys.argv[1], os.environ["RANK"]
log = open(sys.argv[2], "a", buffering=1)
for step in range(40):
    log.write(f"step: {step} loss: 3\\n"); time.sleep(0.25)
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    if kind == "sleep": time.sleep(1)
    elif kind == "spin": sum(range(1000))
    elif kind == "write": open(sys.argv[2] + ".ck", "wb").write(b"x" * 500_000); time.sleep(0.5)
    elif kind == "children": os.system("sleep 0.3")
"""
RANKS = """
mkdir -p $d/x_1/attempt_0/0 $d/x_1/attempt_0/1
RANK=0 LOCAL_RANK=0 {python} -c '{program}' {kind} $d/x_1/attempt_0/0/stdout.log {seconds} 2> $d/x_1/attempt_0/0/stderr.log & a=$!
RANK=1 LOCAL_RANK=1 {python} -c '{program}' {kind} $d/x_1/attempt_0/1/stdout.log {seconds} & echo $! > {root}/pid
wait $a
"""


def watched(tmp_path, kind, seconds, policy="tell", then=""):
    """A launcher over two real processes, which train for 10 s and then do so."""
    where = 'for w in "$@"; do case $w in --log-dir=*) d=${w#*=};; esac; done\n'
    script = RANKS.format(
        python=sys.executable, program=PROGRAM.replace("'", '"'), kind=kind, seconds=seconds, root=tmp_path
    )
    site = Site(tmp_path, f"[ $start -lt 2 ] || exit 0\n{where}{script}{then}", restarts=1)
    (tmp_path / "jobs/demo.json").write_text(json.dumps({"command": ["x.py"], "on_stall": policy}))
    return site


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Four runs beside one another: status, what was said, and what the launcher wrote of the first start."""
    sites = {kind: watched(tmp_path_factory.mktemp(kind), kind, 20) for kind in ("spin", "write", "children", "sleep")}
    started = {kind: site.popen() for kind, site in sites.items()}
    said = {kind: process.communicate(timeout=120)[1] for kind, process in started.items()}
    return {kind: (process.returncode, said[kind], sites[kind]) for kind, process in started.items()}


@pytest.mark.parametrize("kind", ["spin", "write", "children"])
def test_what_works_is_not_called_hung(ran, kind):
    status, said, _ = ran[kind]
    assert status == 0 and "hangs" not in said


def test_a_run_that_sleeps_is_told_of_once_and_goes_on(ran):
    status, said, site = ran["sleep"]
    assert status == 0 and said.count("the run hangs: nothing moves for") == 1 and "on_stall is tell" in said
    about = json.loads((site.root / "logs/demo/starts/00000/start.json").read_text())
    assert about["ranks"] == {"0": 0, "1": 1} and "nothing moves" in about["stall"]["text"]


@pytest.mark.parametrize(("policy", "wanted", "starts"), [("end", 0, 2), ("requeue", 75, 1)])
def test_a_hung_run_is_ended_with_its_stacks_and_begins_again(tmp_path, policy, wanted, starts):
    site = watched(tmp_path, "sleep", 300, policy)
    process = site.popen()
    time.sleep(8)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGSTOP)
    said = process.communicate(timeout=90)[1]
    assert (process.returncode, site.count("starts")) == (wanted, starts)
    assert "rank 1 is stopped by a signal" in said and f"on_stall is {policy}" in said
    kept = tmp_path / "logs/demo/starts/00000"
    seen = json.loads((kept / "start.json").read_text())["stall"]["ranks"]
    assert {one["rank"]: one["state"] for one in seen}[1] == "T"
    assert "Fatal Python error: Aborted" in (kept / "x_1/attempt_0/0/stderr.log").read_text()
    rank = processes.of("/proc", (tmp_path / "pid").read_text().strip())
    assert rank is None or rank.state == "Z", "killed, and perhaps not reaped yet"


def test_ranks_are_asked_by_their_pipes_and_what_they_wrote_is_forgotten_when_it_goes_on(tmp_path, monkeypatch):
    made = plan("demo", {**SETTINGS, "logs": str(tmp_path)}, {"command": ["x"], "on_stall": "dump"}, {}, "")
    evidence, said = StartEvidence(made), []
    evidence.begin()
    pipes = [
        f"{evidence.environment({})['TORCH_NCCL_DEBUG_INFO_PIPE_FILE']}3.pipe",
        f"{evidence.folder}/contract/ask-000003.pipe",
    ]
    for pipe in pipes:
        os.mkfifo(pipe)
    readers = [os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) for pipe in pipes]
    stack = Path(evidence.folder, "contract/stack-000003.txt")
    watch = watching.StallWatch(made, evidence, os.getpid(), said.append)
    assert watch._found(stall.Stall([], 20.0, 1.0, ["rank 3 asleep"]), Pulse(0.0, 0, (), frozenset())) is False
    assert [os.read(reader, 10) for reader in readers] == [b"1", b"1"] and "rank 3 asleep" in said[0]
    stack.write_text("Thread 1 (main)")
    for forget_s, kept in ((5.0, True), (0.0, False)):
        monkeypatch.setattr(watching, "FORGET_S", forget_s)
        watch.hung, watch._next = "so", 0.0
        watch.look()
        about = json.loads(Path(evidence.folder, "start.json").read_text())
        assert (stack.exists(), bool(about["stall"])) == (kept, kept) and said[-1] == "it goes on"


def test_an_unknown_policy_is_refused():
    with pytest.raises(SettingsError, match="saw on_stall 'panic', wanted tell, dump, requeue, end"):
        plan("demo", SETTINGS, {"command": ["x"], "on_stall": "panic"}, {}, "")
