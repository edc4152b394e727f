"""Following a run: what happens to the terminal or to ansible-runner costs neither the run nor its verdict."""

import os
import signal
import threading

import pytest

from flightline.run import background, live
from flightline.run.play import Follow, Play, why_not
from flightline.store.run_rows import RunRows
from tests.unit.made import record


@pytest.fixture
def said(tmp_path, monkeypatch):
    """The file of a run's own lines."""
    path = tmp_path / "live.jsonl"
    monkeypatch.setenv(live.LIVE_ENV, str(path))
    return path


class Deaf(live.RunObserver):
    """A watcher whose terminal is gone."""

    def __init__(self, error):
        self.error, self.on_reply = error, 0

    def expect(self, hosts, ends_at):
        raise self.error

    def begin(self, host):
        raise self.error

    def answer(self, answer):
        self.on_reply += 1
        raise self.error


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "Input/output error"), ValueError("closed file")])
def test_a_terminal_that_is_gone_does_not_end_the_run(said, error):
    watcher = Deaf(error)
    follow = Follow(watcher, live.LiveLines(said))
    follow.hosts = {"a": {}}
    live.answered(record("a"))
    follow.listen()
    live.answered(record("a"))
    follow.listen()
    assert watcher.on_reply == 1 and not follow.trouble, "and nobody is told again"


class Told(live.RunObserver):
    """A watcher that writes down what it is told."""

    def __init__(self):
        self.said = []

    def expect(self, hosts, ends_at):
        self.said.append(("expect", tuple(hosts)))

    def begin(self, host):
        self.said.append(("begin", host))

    def answer(self, answer):
        self.said.append(("answer", answer.host, answer.go))


def test_a_watcher_is_told_who_is_expected_asked_and_answered(said):
    told = Told()
    follow = Follow(told, live.LiveLines(said))
    follow.listen()
    live.say(live.VALIDATED, {"hosts": {"a": {}, "b": {}}, "level": "quick"})
    live.say(live.BEGUN, "a")
    follow.listen()
    live.answered(record("unlisted"))
    live.answered(record("a"))
    follow.listen()
    assert told.said == [("expect", ("a", "b")), ("begin", "a"), ("answer", "a", True)] and not follow.trouble


def test_a_line_that_is_half_written_is_read_when_it_is_whole(said):
    told = Told()
    follow = Follow(told, live.LiveLines(said))
    live.say(live.VALIDATED, {"hosts": {"a": {}}})
    live.say(live.BEGUN, "a")
    whole = said.read_bytes()
    said.write_bytes(whole[:-3])
    follow.listen()
    assert told.said == [("expect", ("a",))]
    said.write_bytes(whole + b"nothing of ours\n")
    follow.listen()
    assert told.said[1:] == [("begin", "a")] and "a line was not understood" in follow.trouble


def test_an_event_of_the_runner_tells_of_no_host():
    told = Told()
    follow = Follow(told)
    data = {"task_action": "flightline_node", "host": "a", "res": {"record": record("a")}}
    assert not follow.event({"event": "runner_on_ok", "pid": 7, "event_data": data}), "and no file of it is kept"
    assert told.said == [] and follow.pid == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_hang_up_ends_the_wait_as_ctrl_c_does(number):
    before = signal.signal(number, signal.SIG_DFL)  # where the tests run under nohup it is ignored
    try:
        with pytest.raises(KeyboardInterrupt), background.ending_as_interrupt():
            os.kill(os.getpid(), number)
            threading.Event().wait(5)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_hang_up_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with background.ending_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_inventory_that_is_not_there_is_named_with_what_would_be_one(tmp_path):
    said = why_not(Play(tmp_path, Follow(Told()), background.Background(), None), ["h1,h2", str(tmp_path), "host1"])
    assert said.startswith("saw no inventory host1; wanted a file, a directory, or a list of hosts with a comma")


def test_a_run_that_no_place_has_is_not_found(tmp_path):
    (tmp_path / "taken").write_text("")
    assert RunRows.find(tmp_path / "taken" / "runs.sqlite", "r1", tmp_path, create=True) is None
