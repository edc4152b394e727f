"""What srun and sinfo print, and what a task may say: torn, forged, endless, twice."""

import base64
import io
import json
import sys
import threading
import time
import zlib
from dataclasses import replace

import pytest

from flightline.record.outputs import BEGUN, ENDED
from flightline.run import calls as asking
from flightline.run.launchers import slurm
from flightline.run.validation import HostVars
from flightline_node import answer
from flightline_node.inputs import defaults
from flightline_node.tell.frames import MARK, FrameError, frames, join
from tests.unit.made import program

MANY = 1 << 20


def call(host: str, name: str) -> asking.Call:
    return asking.Call(host, name, {**defaults(), "host": host, "instance_id": "", "timeout_s": 60})


@pytest.fixture
def told():
    return []


@pytest.fixture
def listening(told):
    return slurm._Listening([call("gpu-01", "n1"), call("gpu-02", "n2")], told.append)


@pytest.fixture
def launched(tmp_path, monkeypatch, told):
    """Ask two idle nodes by an srun that is a script of the test; stop_after: seconds, None for never."""

    def ask(script, seconds, stop_after=None):
        program(tmp_path / "srun", script)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        launcher, began = slurm.SlurmLauncher(), time.monotonic()
        launcher._states = {"n1": slurm.SinfoState("idle"), "n2": slurm.SinfoState("idle")}
        if stop_after:
            threading.Timer(stop_after, launcher.stop).start()
        launcher.ask([call("gpu-01", "n1"), call("gpu-02", "n2")], "r1", began + seconds, told.append)
        assert time.monotonic() - began < 30

    return ask


def say(listening, rank: int, name: str, text: str, status: int = 0) -> None:
    for line in (f"{BEGUN} {name}", *frames(text), f"{ENDED} {status}"):
        listening.take(f"{rank}: {line}\n")


def test_each_task_is_the_node_where_srun_started_it(listening, told):
    say(listening, 1, "n2", '{"record": 2}')
    say(listening, 0, "n1", '{"record": 1}')
    assert told == [], "what comes before the end of the step may still be a doubt"
    listening.close("")
    assert [(one.host, one.answer) for one in told] == [("gpu-01", {"record": 1}), ("gpu-02", {"record": 2})]


def test_a_task_that_says_another_name_is_not_believed_and_the_other_node_has_its_own_word(listening, told):
    say(listening, 1, "n1", '{"record": "go"}')
    say(listening, 0, "n1", '{"record": "sick"}')
    listening.close("")
    by_host = {one.host: one for one in told}
    assert by_host["gpu-01"].answer == {"record": "sick"} and by_host["gpu-02"].answer is None
    assert by_host["gpu-02"].trouble == "task 1 of srun runs on n2 and answered as 'n1'"


@pytest.mark.parametrize("second", ["n1", "n2"])
def test_a_task_begins_once(listening, told, second):
    say(listening, 0, "n1", '{"record": "go"}')
    say(listening, 0, second, '{"record": "go"}')
    listening.close("no word")
    assert [one.answer for one in told] == [None, None]
    assert "answered" in told[0].trouble and told[1].trouble == "srun started nothing on n2: no word"


@pytest.mark.parametrize("label", ["2", "99", "1" * 4000, "-1", "0x0"])
def test_the_label_of_no_task_is_passed_over(listening, told, label):
    listening.take(f"{label}: {BEGUN} n1\n")
    listening.close("no word")
    assert all(one.lost for one in told)


def test_the_rest_of_a_long_line_is_no_line(tmp_path, launched, told):
    """Where srun's label would be it has what a task has printed."""
    path = tmp_path / "said"
    lines = [f"{BEGUN} n1", *frames('{"record": "go"}'), f"{ENDED} 0"]
    path.write_text("".join(f"1: {'x' * (slurm.LINE_BYTES - 3)}0: {line}\n" for line in lines))
    launched(f"cat {path}", 9)
    assert [one.lost for one in told] == [True, True]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda lines: lines[:-1], "0 of 1 parts|damaged|refused|status"),
        (lambda lines: [lines[0][:-9]], "refused"),
        (lambda lines: [lines[0].replace(" 1 1 ", " 1 2 ")], "1 of 2 parts"),
        (lambda lines: [*lines, *frames("another")], "parts of 2 answers"),
    ],
    ids=["missing", "torn", "part", "two answers"],
)
def test_what_is_no_whole_answer_is_no_record(listening, told, spoil, said):
    import re

    lines = spoil(frames('{"record": 1}'))
    for line in (f"{BEGUN} n1", *lines, f"{ENDED} 0"):
        listening.take(f"0: {line}\n")
    listening.close("")
    assert told[0].host == "gpu-01" and told[0].answer is None and re.search(said, told[0].trouble), told


def test_an_endless_answer_is_refused_while_it_comes(listening, told, monkeypatch):
    monkeypatch.setattr(slurm, "most_bytes", lambda with_bundle: 1000)
    listening.take(f"0: {BEGUN} n1")
    for number in range(10):
        listening.take(f"0: {MARK} {number} 99 abc {'A' * 800}")
    assert listening._tasks[0][1].lines == []
    listening.close("")
    assert "endless" in told[0].trouble and not told[0].lost


@pytest.mark.parametrize(("status", "said"), [(97, "flightline_node"), (96, "cannot be started"), (137, "status 137")])
def test_a_task_without_an_answer_says_how_it_ended(listening, told, status, said):
    listening.take(f"0: {BEGUN} n1")
    listening.take(f"0: {ENDED} {status}")
    listening.close("")
    assert said in told[0].trouble and not told[0].lost


def test_noise_between_the_lines_changes_nothing(listening, told):
    for line in ("", "srun: job 3 queued", "7: ", "0: motd of the site", "0: flightline-answer", "x: y"):
        listening.take(line)
    say(listening, 0, "n1", '{"record": 1}')
    listening.close("")
    assert told[0].answer == {"record": 1}


def test_long_answers_come_back_whole_and_no_line_is_longer_than_srun_takes():
    text = json.dumps({"noise": [f"{number * 7919 % 10007:x}" for number in range(40000)]})
    lines = frames(text)
    assert len(lines) > 50 and max(map(len, lines)) < 1000
    assert join(list(reversed(lines)), MANY) == text
    with pytest.raises(FrameError, match="longer than"):
        join(lines, 1000)


def test_a_node_of_two_partitions_and_the_signs_of_states():
    found = slurm.read_states(
        "n1|idle|a1|none\nn1|idle|a1|none\nn2|idle*|a2|none\nn3|drained|a3|bad gpu\nn4|mixed~|a4|none\nbad line\n|idle|\n"
    )
    assert found == {
        "n1": slurm.SinfoState("idle", "none", "a1"),
        "n2": slurm.SinfoState("not responding", "none", "a2"),
        "n3": slurm.SinfoState("drained", "bad gpu", "a3"),
        "n4": slurm.SinfoState("mixed", "none", "a4"),
    }
    assert slurm._unfit("n1", found["n1"]) == slurm._unfit("n4", found["n4"]) == ""
    assert "bad gpu" in slurm._unfit("n3", found["n3"]) and "none" not in slurm._unfit("n2", found["n2"])


def test_a_host_that_slurm_knows_by_another_name_is_found_by_its_address():
    known = {"n1": slurm.SinfoState("idle", "", "10.0.0.1"), "n2": slurm.SinfoState("idle", "", "10.0.0.2")}
    asked = [("gpu-01", "ip-10-0-0-1", "10.0.0.1"), ("gpu-02", "n2", "10.0.0.2"), ("gpu-03", "x", "10.0.0.2")]
    calls = [asking.Call(host, name, {}, address=where) for host, name, where in asked]
    assert [call.name for call in slurm._by_slurms_names(calls, known)] == ["n1", "n2", "x"]


def test_hosts_that_are_asked_alike_travel_once():
    common = {"instance_type": "p5.48xlarge", "flightline_checks": "memory, load"}
    hosts = {f"gpu-{n}": HostVars({**common, "instance_id": f"i-{n}", "slurm_node_name": f"n{n}"}) for n in range(3)}
    hosts["other"] = HostVars({"instance_type": "p4d.24xlarge", "flightline_level": "standard"})
    groups = asking.of_hosts(hosts)
    assert [len(group["hosts"]) for group in groups] == [3, 1]
    calls = asking.read(json.loads(json.dumps(groups)), "k1")
    assert calls[0].name == "n0" and calls[0].params["instance_id"] == "i-0"
    assert [one.strip() for one in calls[0].params["checks"]] == ["memory", "load"]
    assert calls[3].params["timeout_s"] == 6000 and calls[3].name == "other"
    sent = asking.packed(calls)
    own = {"host": "gpu-2", "instance_id": "i-2", "call_id": calls[2].params["call_id"]}
    assert len(sent["calls"]) == 2 and sent["nodes"]["n2"][1] == own


def alike(count: int, key: str = "k1") -> list[asking.Call]:
    """Calls of hosts that are named by their instance ids."""
    names = [f"i-{number * 0x9E3779B97F4A7C15 & (1 << 68) - 1:017x}" for number in range(count)]
    hosts = {name: HostVars({"instance_id": name, "instance_type": "p5.48xlarge"}) for name in names}
    return [replace(call, name=call.host) for call in asking.read(asking.of_hosts(hosts), key)]


def test_each_node_has_a_call_id_of_its_own_and_of_this_run():
    ids = [call.params["call_id"] for key in ("k1", "k2") for call in alike(50, key)]
    assert len(set(ids)) == 100 and {len(one) for one in ids} == {16}
    first, second = alike(2)
    told = json.dumps(asking.packed([first]))
    assert first.params["call_id"] in told and second.params["call_id"] not in told and "k1" not in told


def test_what_all_nodes_of_a_fleet_are_told_does_not_grow_with_it():
    """50 nodes are as many as one command of Systems Manager may name."""
    some, many = alike(50), alike(10_000)

    def size(asked):
        return len(base64.b64encode(zlib.compress(json.dumps(asked).encode(), 9)))

    assert size(asking.packed(some)) < 6000 and size(asking.broadcast(many)) < 3000
    assert asking.broadcast([*many, call("gpu-01", "n1")]) is None
    assert asking.broadcast([*alike(2), *alike(1, "k2")]) is None


def test_each_node_makes_its_own_call_id_of_what_all_are_told(monkeypatch, capsys):
    monkeypatch.setattr(answer, "answer", dict)
    calls = alike(3)
    told = base64.b64encode(zlib.compress(json.dumps(asking.broadcast(calls)).encode()))
    for one in calls:
        answer.call_of_many(one.name, told)
        found = json.loads(join(capsys.readouterr().out.splitlines(), MANY))
        assert {name: found[name] for name in asking.OF_A_HOST} == {name: one.params[name] for name in asking.OF_A_HOST}
        assert "call_key" not in found


@pytest.mark.parametrize(("name", "host"), [("n1", "gpu-01"), ("stranger", None)])
def test_a_node_answers_only_its_own_part(name, host, monkeypatch, capsys):
    monkeypatch.setattr(answer, "answer", lambda params: {"record": {"host": params["host"], "id": params["call_id"]}})
    one = call("gpu-01", "n1")
    asked = asking.packed([asking.Call(one.host, one.name, {**one.params, "call_id": "c1"})])
    answer.call_of_many(name, base64.b64encode(zlib.compress(json.dumps(asked).encode())))
    found = json.loads(join(capsys.readouterr().out.splitlines(), MANY))
    assert found == {"record": {"host": host, "id": "c1"}} if host else found["failed"] and "stranger" in found["msg"]


def test_the_entry_point_reads_a_call_to_many_from_its_standard_input(monkeypatch, capsys):
    from flightline_node.__main__ import main

    given = base64.b64encode(zlib.compress(json.dumps({"calls": [], "nodes": {}}).encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert main(["call", "-", "n7"]) == 0
    assert json.loads(join(capsys.readouterr().out.splitlines(), MANY))["failed"]


def test_an_srun_that_hangs_is_ended_at_its_deadline(launched, told):
    launched("echo '0: flightline-begin n1'\nsleep 100 & wait", 1)
    assert {one.host for one in told} == {"gpu-01", "gpu-02"} and all(one.lost for one in told)


@pytest.mark.parametrize(("seconds", "stop_after"), [(1, None), (60, 1)], ids=["at the deadline", "when stopped"])
def test_what_was_measured_before_the_end_is_told(tmp_path, launched, told, seconds, stop_after):
    """Of one srun, in which another task hangs."""
    (tmp_path / "said").write_text("".join(f"1: {one}\n" for one in (f"{BEGUN} n2", *frames("{}"), f"{ENDED} 0")))
    launched(f"cat {tmp_path}/said\necho '0: {BEGUN} n1'\nsleep 100 & wait", seconds, stop_after)
    assert [(one.host, one.answer) for one in told] == [("gpu-01", None), ("gpu-02", {})]
