"""Probes: a deadline holds whatever the tool does, and none delays the others."""

import os
import stat
import time
from pathlib import Path

import pytest

from flightline_node.ask.probes import PROBES, Probe, plan
from flightline_node.ask.runner import NOT_FOUND_RC, Node, run_probes
from flightline_node.model import LEVELS
from tests.unit.made import program


@pytest.fixture
def tools(tmp_path: Path):
    """Write simulated tools and return a function that runs probes against them."""
    directory, out = tmp_path / "tools", tmp_path / "out"
    directory.mkdir()
    out.mkdir()

    def run(probes, readers=None, **scripts):
        for name, body in scripts.items():
            tool = directory / name
            tool.write_text(f"#!/bin/sh\n{body}\n")
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        return {r.id: r for r in run_probes(probes, Node("/", (str(directory),)), out, readers or {})}, out

    return run


def probe(name, *commands, **rest):
    return Probe(name, f"{name}.txt", commands or ((name,),), **rest)


def gone(pid):
    """Is the process dead (a zombie of an absent reaper counts)?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_output_and_exit_status(tools):
    results, out = tools([probe("speak")], speak="echo hello; echo trouble >&2; exit 3")
    assert (out / "speak.txt").read_text() == "hello\n"
    assert (results["speak"].rc, results["speak"].stderr, results["speak"].timed_out) == (3, "trouble\n", False)


def test_a_hung_tool_is_reported_after_its_deadline_and_the_others_finish(tools):
    started = time.monotonic()
    results, out = tools(
        [probe("hang", deadline_s=0.5), probe("quick")],
        hang="trap '' TERM INT; echo half; sleep 60 & wait",
        quick="echo done",
    )
    assert time.monotonic() - started < 30
    assert results["hang"].timed_out and "0.5 s" in results["hang"].note
    assert results["quick"].rc == 0 and (out / "quick.txt").read_text() == "done\n"


def test_a_child_that_holds_the_output_open_does_not_hold_the_run(tools, tmp_path):
    started = time.monotonic()
    results, _ = tools([probe("daemon")], daemon=f"sleep 60 & echo $! > {tmp_path}/child; echo ok")
    assert time.monotonic() - started < 30
    assert results["daemon"].rc == 0
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 60
    while not gone(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert gone(child)


def test_a_missing_tool_says_what_was_looked_for(tools):
    results, _ = tools([probe("absent", ("no-such-tool-x", "-q"))])
    assert results["absent"].rc == NOT_FOUND_RC
    assert "not installed: no-such-tool-x" in results["absent"].note


def test_a_tool_that_cannot_be_executed(tools, tmp_path):
    tool = tmp_path / "tools" / "binary"
    tool.write_bytes(b"\x7fELF\x00\x00")
    tool.chmod(0o755)
    results, _ = tools([probe("binary")])
    assert results["binary"].rc is None and "could not start" in results["binary"].note


def test_the_second_command_is_tried_when_the_first_fails_or_is_absent(tools):
    results, out = tools(
        [probe("a", ("absent-1",), ("second",)), probe("b", ("first",), ("second",))],
        first="exit 1",
        second="echo second",
    )
    assert [results[name].argv for name in "ab"] == [["second"], ["second"]]
    assert (out / "a.txt").read_text() == (out / "b.txt").read_text() == "second\n"


def test_exclusive_probes_run_alone(tools, tmp_path):
    log = tmp_path / "log"
    body = f"echo start >> {log}; sleep 0.1; echo end >> {log}"
    tools([probe("x", exclusive=True), probe("y", exclusive=True), probe("z")], x=body, y=body, z=body)
    assert log.read_text().split() == ["start", "end"] * 3


def test_readers_run_in_a_process_of_their_own(tools):
    def broken(root):
        raise RuntimeError("no such bus")

    probes = [Probe("good", "g.json", reader="good"), Probe("bad", "b.json", reader="bad")]
    probes.append(Probe("slow", "s.json", reader="slow", deadline_s=0.3))
    readers = {"good": lambda root: f"root {root}", "bad": broken, "slow": lambda root: time.sleep(30)}
    results, out = tools(probes, readers)
    assert (out / "g.json").read_text() == "root /"
    assert results["bad"].rc == 1 and "RuntimeError: no such bus" in results["bad"].stderr
    assert results["slow"].timed_out


def test_probes_speak_c_and_find_the_node_s_tools_first(tools):
    _, out = tools([probe("env-of-probe")], **{"env-of-probe": 'echo "$LC_ALL"; echo "${PATH%%:*}"'})
    language, first = (out / "env-of-probe.txt").read_text().split()
    assert language == "C" and first.endswith("tools")


def test_no_secret_of_the_caller_reaches_a_probe(tools, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-probes")
    _, out = tools([probe("dump")], dump="env")
    assert "not-for-probes" not in (out / "dump.txt").read_text()


def test_ids_and_files_are_unique_and_levels_grow():
    assert len({p.id for p in PROBES}) == len(PROBES)
    files = [[p.file for p in plan(level)] for level in LEVELS]
    assert all(len(set(names)) == len(names) for names in files), "a later probe must not overwrite an earlier one"
    assert set(files[0]) <= set(files[1]) <= set(files[2])
    assert all(not p.exclusive for p in plan("quick")), "quick must be safe beside a running job"


def test_interrupt_leaves_nothing_running(tools, tmp_path, monkeypatch):
    def stop(result):
        raise KeyboardInterrupt

    directory = tmp_path / "tools"
    for name, body in (("long", f"echo $$ > {tmp_path}/pid; exec sleep 60"), ("short", "sleep 0.3")):
        program(directory / name, body)
    with pytest.raises(KeyboardInterrupt):
        run_probes([probe("long"), probe("short")], Node("/", (str(directory),)), tmp_path / "out", {}, stop)
    pid = int((tmp_path / "pid").read_text())
    os.waitpid(pid, 0)
    assert gone(pid)


def test_a_silent_tool_is_not_an_answer_while_another_can_be_asked(tools):
    results, out = tools([probe("log", ("mute",), ("speaks",))], mute="exit 0", speaks="echo line")
    assert results["log"].argv == ["speaks"] and (out / "log.txt").read_text() == "line\n"


def test_when_every_alternative_fails_the_first_tool_s_words_stand(tools):
    results, out = tools(
        [probe("clock", ("asked",), ("other",))],
        asked="echo 506 Cannot talk to daemon; exit 1",
        other="echo no; exit 1",
    )
    assert results["clock"].argv == ["asked"] and "506" in (out / "clock.txt").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["clock.txt"]


def test_a_probe_that_survives_every_signal_is_left_behind_and_said_so(tools, monkeypatch):
    """Uninterruptible sleep cannot be made at will: here the signals are held back instead."""
    from flightline_node.ask import runner

    sent = []
    monkeypatch.setattr(runner, "_signal_group", lambda pid, which: sent.append((pid, which)))
    monkeypatch.setattr(runner, "KILL_GRACE_S", 0.2)
    results, out = tools([probe("stuck", deadline_s=0.3), probe("quick")], stuck="exec sleep 60", quick="echo done")
    assert results["stuck"].abandoned and "left behind" in results["stuck"].note
    assert results["stuck"].rc is None and (out / "quick.txt").read_text() == "done\n"
    os.kill(sent[0][0], 9)
    os.waitpid(sent[0][0], 0)
