"""What srun and sinfo print, and what a task may say: torn, forged, endless, twice."""

from __future__ import annotations

import base64
import io
import json
import sys
import time
import zlib

import pytest

from flightline.record.outputs import BEGUN, ENDED
from flightline.run import calls as asking
from flightline.run.launchers import slurm
from flightline.run.validation import HostVars
from flightline_node import answer
from flightline_node.inputs import defaults
from flightline_node.tell.frames import FrameError, frames, join

MANY = 1 << 20


def call(host: str, name: str) -> asking.Call:
    return asking.Call(host, name, {**defaults(), "host": host, "instance_id": "", "timeout_s": 60})


@pytest.fixture
def told():
    return []


@pytest.fixture
def listening(told):
    return slurm._Listening([call("gpu-01", "n1"), call("gpu-02", "n2")], told.append)


def say(listening, rank: int, name: str, text: str, status: int = 0) -> None:
    for line in (f"{BEGUN} {name}", *frames(text), f"{ENDED} {status}"):
        listening.take(f"{rank}: {line}\n")


def test_each_task_is_the_node_it_says_it_is(listening, told):
    say(listening, 1, "n1", '{"record": 1}')
    say(listening, 0, "n2", '{"record": 2}')
    listening.close("")
    assert [(one.host, one.answer) for one in told] == [("gpu-01", {"record": 1}), ("gpu-02", {"record": 2})]


def test_two_tasks_of_one_name_are_both_not_believed(listening, told):
    listening.take(f"0: {BEGUN} n1")
    say(listening, 1, "n1", '{"record": "go"}')
    listening.close("srun: error: n2: task 1")
    by_host = {one.host: one for one in told}
    assert len(told) == 2 and by_host["gpu-01"].answer is None and "two tasks" in by_host["gpu-01"].trouble
    assert by_host["gpu-02"].lost


def test_a_task_cannot_rename_itself(listening, told):
    listening.take(f"0: {BEGUN} n1")
    say(listening, 0, "n2", '{"record": "go"}')
    listening.close("")
    assert {one.host: bool(one.answer) for one in told} == {"gpu-01": True, "gpu-02": False}


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
    assert told[0].host == "gpu-01" and told[0].answer is None and re.search(said, told[0].trouble), told


def test_an_endless_answer_is_refused_while_it_comes(listening, told, monkeypatch):
    monkeypatch.setattr(slurm, "most_bytes", lambda with_bundle: 1000)
    listening.take(f"0: {BEGUN} n1")
    for number in range(10):
        listening.take(f"0: {slurm.MARK} {number} 99 abc {'A' * 800}")
    assert [one.host for one in told] == ["gpu-01"] and "endless" in told[0].trouble


@pytest.mark.parametrize(("status", "said"), [(97, "flightline_node"), (96, "cannot be started"), (137, "status 137")])
def test_a_task_without_an_answer_says_how_it_ended(listening, told, status, said):
    listening.take(f"0: {BEGUN} n1")
    listening.take(f"0: {ENDED} {status}")
    assert said in told[0].trouble and not told[0].lost


def test_noise_between_the_lines_changes_nothing(listening, told):
    for line in ("", "srun: job 3 queued", "7: ", "0: motd of the site", "0: flightline-answer", "x: y"):
        listening.take(line)
    say(listening, 0, "n1", '{"record": 1}')
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
    calls = asking.read(json.loads(json.dumps(groups)), "call-1")
    assert calls[0].name == "n0" and calls[0].params["instance_id"] == "i-0"
    assert [one.strip() for one in calls[0].params["checks"]] == ["memory", "load"]
    assert calls[3].params["timeout_s"] == 6000 and calls[3].name == "other"
    sent = asking.packed(calls)
    assert len(sent["calls"]) == 2 and sent["nodes"]["n2"][1] == {"host": "gpu-2", "instance_id": "i-2"}


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


def test_an_srun_that_hangs_is_ended_at_its_deadline(tmp_path, monkeypatch, told):
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\necho '0: flightline-begin n1'\nsleep 100 & wait\n")
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    launcher = slurm.SlurmLauncher()
    launcher._states = {"n1": slurm.SinfoState("idle"), "n2": slurm.SinfoState("idle")}
    began = time.monotonic()
    launcher.ask([call("gpu-01", "n1"), call("gpu-02", "n2")], "r1", began + 1, told.append)
    assert time.monotonic() - began < 30
    assert {one.host for one in told} == {"gpu-01", "gpu-02"} and all(one.lost for one in told)
