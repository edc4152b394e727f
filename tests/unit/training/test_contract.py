"""What a program that imports nothing of ours leaves under the launcher. PyTorch and torchrun are stand-ins of a few lines."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline.training.standing import stacks
from flightline_node.train.injected import BEAT, RankJournal
from tests.beds import until

from .test_launcher import Site

TORCH = {
    "torch/__init__.py": "from .serialization import save\nfrom . import optim",
    "torch/serialization.py": "def save(obj, f):\n    open(f, 'w').write('x') if isinstance(f, str) else f.write(b'x')",
    "torch/optim/__init__.py": "from .optimizer import SGD",
    "torch/optim/optimizer.py": """hooks = []
def register_optimizer_step_post_hook(hook): hooks.append(hook)
class SGD:
    def __init__(self): self.state = {}
    def step(self):
        count = self.state.get('p', {'step': 40})['step']
        self.state['p'] = {'step': count + 1}
        for hook in hooks: hook(self, (), {})""",
    "sitecustomize.py": "open('own-sitecustomize', 'w')",
}
# As torchrun starts a rank: its environment, and a folder for what it prints.
TORCHRUN = """for w in "$@"; do case $w in --log-dir=*) d=${{w#*=}};; esac; done; mkdir -p $d/x_1/attempt_0/0
RANK=3 WORLD_SIZE=8 LOCAL_RANK=0 {python} train.py 2> $d/x_1/attempt_0/0/stderr.log"""
LOOP = "import time, torch\na = torch.optim.SGD()\nfor n in range(12):\n    time.sleep(0.1); a.step()\n"
PROGRAMS = {
    "ends well": LOOP + "torch.save({}, 'model.pt')",
    "raises": LOOP + "torch.save({}, 'model.pt')\nraise ValueError('bad sample')",
    "two optimizers": LOOP.replace("; a.step()", "; a.step(); b.step()").replace("for", "b = torch.optim.SGD()\nfor", 1),
    "workers": "import os, subprocess, sys\n" + LOOP + "pid = os.fork()\nif not pid:\n    [a.step() for n in range(9)]; os._exit(0)\nos.waitpid(pid, 0)\n"
    "subprocess.run([sys.executable, '-c', 'import torch; torch.optim.SGD().step()'])\n",
    "no torch": "raise SystemExit(0)",
}  # fmt: skip


def program_site(tmp_path, program, **job):
    site = Site(tmp_path, TORCHRUN.format(python=sys.executable), restarts=0, grace_s=60)
    (tmp_path / "src").mkdir()
    for name, text in {**TORCH, "train.py": program}.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    src = str(tmp_path / "src")
    one = {"command": ["train.py"], "workdir": src, "environment": {"PYTHONPATH": src}, **job}
    (tmp_path / "jobs/demo.json").write_text(json.dumps(one))
    return site


def ran(tmp_path, program):
    status, said = program_site(tmp_path, program).run()
    place = tmp_path / "logs/demo/starts/00000/contract"
    path = place / "rank-000003.jsonl"
    return status, said, [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_leaves_a_journal_and_runs_as_without_it(tmp_path, kind):
    status, said, events = ran(tmp_path, PROGRAMS[kind])
    assert (tmp_path / "src/own-sitecustomize").exists(), "the program's own sitecustomize runs as well"
    assert (status == 0) == (kind != "raises"), said
    names = [one["event"] for one in events]
    if kind == "no torch":
        assert events == []
        return
    assert names[0] == "start" and events[0]["world"] == 8 and {one["rank"] for one in events} == {3}
    step = next(one for one in events if one["event"] == "step")
    assert 0.09 < step["step_s"] < 0.5 and step["step"] == 40 + step["steps"], "the optimizer's own count"
    assert names.count("start") == 1 and names.count("step") <= 3
    if kind in ("ends well", "raises"):
        assert {**next(one for one in events if one["event"] == "checkpoint"), "time": 0, "seconds": 0} == {
            "event": "checkpoint", "time": 0, "seconds": 0, "rank": 3, "attempt": 0, "name": "model.pt", "steps": 12, "step": 52}  # fmt: skip
    if kind == "raises":
        assert (events[-1]["type"], events[-1]["text"], events[-1]["step"]) == ("ValueError", "bad sample", 52)
        (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path / "logs/demo"), "--json"]).output)["blames"]
        assert (one["rank"], one["step"], one["cause"]) == (3, 52, "software")


def test_ranks_of_other_nodes_are_not_missed_in_the_journals_of_one(tmp_path):
    ran(tmp_path, LOOP + "raise ConnectionError('Connection closed by peer')")
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path / "logs/demo"), "--json"]).output)["blames"]
    assert one["cause"] == "not known"


def test_the_hook_costs_less_than_half_a_percent_of_a_step_of_10_ms(tmp_path):
    journal, times = RankJournal(str(tmp_path), 0), []
    journal.begin()
    optimizer = type("SGD", (), {"state": {"p": {"step": 1}}})()
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(1000):
            journal.stepped(optimizer)
        times.append((time.perf_counter() - began) / 1000)
    began = time.perf_counter()
    journal.say("step", step_s=1.0, **journal.where())
    line = time.perf_counter() - began
    # A line comes once a second at most.
    assert median(times) + 0.010 * line < 0.005 * 0.010, (
        f"{median(times) * 1e6:.1f} us a step, {line * 1e6:.0f} us a line"
    )


def test_a_rank_counts_its_steps_and_says_where_it_stands_when_it_is_asked(tmp_path):
    waits = "\nopen('ready', 'w')\ndef load(): time.sleep(60)\nload()"
    site = program_site(tmp_path, LOOP.replace("0.1", "0.25") + waits)
    process, place = site.popen(), tmp_path / "logs/demo/starts/00000/contract"
    until((tmp_path / "src/ready").exists, 60, "the end of the steps")
    assert BEAT.unpack((place / "beat-000003").read_bytes()) == (12, 0)
    pipe = os.open(place / "ask-000003.pipe", os.O_WRONLY | os.O_NONBLOCK)
    os.write(pipe, b"1")
    stack = place / "stack-000003.txt"
    until(lambda: stack.exists() and "(main)" in stack.read_text(), 60, "its stack")
    os.close(pipe)
    assert stacks([stack])[3][-1].endswith("train.py:7 in load")
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 75


def test_the_example_of_the_documentation_runs_and_blame_reads_it(tmp_path):
    text = (Path(__file__).parents[3] / "docs/job-contract.md").read_text()
    example = next(iter(re.findall(r"```python\n(.*?)```", text, re.S)))
    assert len(example.splitlines()) <= 40
    (tmp_path / "mine.py").write_text(example)
    program = "import mine\nj = mine.Journal()\nj.say('step', step=7, local_s=0.5)\nraise KeyError('sample 9')"
    (tmp_path / "train.py").write_text(program)
    environment = {
        **os.environ,
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "FLIGHTLINE_JOURNAL": str(tmp_path / "j"),
        "FLIGHTLINE_START": "4",
    }
    assert (
        subprocess.run(
            [sys.executable, "train.py"], cwd=tmp_path, env=environment, check=False, capture_output=True
        ).returncode
        == 1
    )
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path / "j"), "--json"]).output)["blames"]
    assert (one["rank"], one["step"], one["cause"]) == (1, 7, "software") and "sample 9" in one["why"]


def test_a_notice_has_the_program_save_by_its_own_signal_and_ends_it_once_it_has(tmp_path):
    saves = "signal.signal(signal.SIGUSR2, lambda *_: torch.save({}, 'model.pt'))\nopen('ready', 'w')\ntime.sleep(60)"
    site = program_site(tmp_path, f"import signal, time, torch\na = torch.optim.SGD()\n{saves}", save_signal="USR2")
    process = site.popen()
    while not (tmp_path / "src/ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)
    began, said = time.monotonic(), process.communicate(timeout=60)[1]
    assert process.returncode == 75 and time.monotonic() - began < 15, said
    assert (tmp_path / "src/model.pt").exists() and said.index("SIGUSR2 to 1 ranks") < said.index("SIGTERM to 1 ranks")
