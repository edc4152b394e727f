"""Who held a hang up: by the launcher's start.json, and what the ranks wrote when they were asked. All written by hand."""

import json

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command

from .test_blame import entry

AT = 1_795_000_000.0
WAITS = '/opt/lib/torch/autograd/graph.py", line 841, in _engine_run_backward'
GATHERS = '/opt/lib/torch/distributed/distributed_c10d.py", line 4100, in all_gather'
LOADS = '/home/me/train.py", line 30, in __getitem__'


def start(place, states="SSSS", stacks=(), dumps=(), world=4, ranks=None, **about):
    """A start's folder: states of the ranks when the hang was seen, their stacks and newest collectives (None: none)."""
    folder = place / "starts/00000"
    contract = folder / "contract"
    contract.mkdir(parents=True)
    numbers = range(len(states)) if ranks is None else ranks
    seen = [{"rank": rank, "state": state} for rank, state in zip(numbers, states, strict=True)]
    stall = {"at": AT, "text": "nothing moves for 13 s", "ranks": seen}
    made = {"start": 0, "host": "gpu-01", "ranks": {str(one["rank"]): one["rank"] for one in seen}, "stall": stall}
    (folder / "start.json").write_text(json.dumps({**made, **about}))
    for rank, last in enumerate(stacks):
        if last:
            text = f'Thread 1 (main)\n  File "/home/me/train.py", line 9, in <module>\n  File "{last}\n\nThread 2\n  File "x.py", line 1, in y\n'
            (contract / f"stack-{rank:06d}.txt").write_text(text)
    for rank, entries in enumerate(dumps):
        if entries:
            (contract / f"flight-stall-{rank:06d}.json").write_text(json.dumps({"entries": entries}))
    for one in seen:
        line = {"event": "start", "time": AT - 60, "rank": one["rank"], "attempt": 0, "host": "gpu-01", "by": "contract",
                "world": world, "device": one["rank"]}  # fmt: skip
        (contract / f"rank-{one['rank']:06d}.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def blamed(place):
    said = json.loads(CliRunner().invoke(command, [str(place), "--json"]).output)
    return [(one["kind"], one["rank"], one["cause"]) for one in said["blames"]]


UNKNOWN = [("unknown", None, "not known")]
SHORT = [entry(1), entry(2)]
LONG = [*SHORT, entry(3)]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"states": "SSTS"}, [("hung", 2, "stopped")]),
        ({"states": "SSTS", "status": 75}, [("hung", 2, "stopped")]),
        ({"states": "SSTS", "status": 0}, []),
        ({"states": "TTTT"}, UNKNOWN),
        ({}, UNKNOWN),
        ({"stacks": [WAITS, WAITS, LOADS, WAITS]}, [("hung", 2, "stopped")]),
        ({"stacks": [WAITS, WAITS, None, GATHERS]}, [("hung", 2, "stopped")]),
        ({"stacks": [WAITS, LOADS, LOADS, WAITS]}, UNKNOWN),
        ({"stacks": [WAITS, WAITS, GATHERS, WAITS]}, UNKNOWN),
        ({"stacks": [LOADS] * 4}, UNKNOWN),
        ({"stacks": [WAITS, LOADS], "states": "SS"}, UNKNOWN),
        ({"stacks": [WAITS, LOADS], "states": "SS", "world": 2}, [("hung", 1, "stopped")]),
        ({"dumps": [LONG, LONG, SHORT, LONG]}, [("hung", 2, "stopped")]),
        ({"dumps": [LONG, LONG, [*SHORT, entry(3, "all_gather")], LONG]}, [("hung", 2, "mismatch")]),
        ({"dumps": [LONG, LONG, SHORT, LONG], "stacks": [WAITS, WAITS, LOADS, WAITS]}, [("hung", 2, "stopped")]),
        ({"dumps": [LONG, LONG, SHORT, LONG], "stacks": [WAITS, LOADS, WAITS, WAITS]}, UNKNOWN),
        ({"dumps": [LONG, LONG, None, LONG], "stacks": [WAITS] * 4}, UNKNOWN),
        ({"dumps": [LONG, None], "states": "SS", "ranks": [0, 1], "world": 4}, UNKNOWN),
    ],
)
def test_who_is_named_for_a_hang(tmp_path, given, wanted):
    start(tmp_path, **given)
    assert blamed(tmp_path) == wanted


@pytest.mark.parametrize(("at", "wanted"), [(AT - 5, ("failed", 1, "software")), (AT + 5, ("hung", 2, "stopped"))])
def test_what_a_rank_raised_before_comes_first_and_after_may_follow_from_the_end(tmp_path, at, wanted):
    folder = start(tmp_path, stacks=[WAITS, WAITS, LOADS, WAITS])
    said = {"event": "exception", "time": at, "rank": 1, "attempt": 0, "type": "ValueError", "text": "bad sample"}
    with (folder / "contract/rank-000001.jsonl").open("a") as file:
        file.write(json.dumps(said) + "\n")
    assert blamed(tmp_path) == [wanted]


def test_ranks_that_the_launcher_aborted_are_not_to_blame(tmp_path):
    folder = start(tmp_path, stacks=[WAITS, LOADS, LOADS, WAITS], status=1)
    (folder / "x_1/attempt_0/0").mkdir(parents=True)
    (folder / "x_1/attempt_0/0/stderr.log").write_text("Fatal Python error: Aborted\n")
    (tmp_path / "slurm.out").write_text("failed (exitcode: -6) local_rank: 0 (pid: 70) of binary: python\n")
    assert blamed(tmp_path) == UNKNOWN


def test_the_launchers_own_lines_are_no_evidence_of_a_rank(tmp_path):
    said = "start 0 ended with 1: what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes"
    (tmp_path / "out.txt").write_text(f"flightline-train: {said}\n")
    assert blamed(tmp_path) == []
