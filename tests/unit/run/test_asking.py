"""What a launcher tells of its hosts, also when it tells too late, twice or of nobody's host."""

import threading
from datetime import datetime, timedelta, timezone

import pytest

from flightline.record.answers import asked_of
from flightline.record.outputs import HostReply
from flightline.run.asking import PreparedRun, ask
from flightline.run.calls import Call
from flightline.run.launchers import Launcher
from flightline.run.live import RunObserver
from flightline.run.play import Follow
from flightline.store.replies import record_of
from flightline.store.run_rows import RunRows
from flightline.store.sqlite import ExpectedHost, SqliteStore
from flightline_node.inputs import defaults
from tests.unit.made import a_run, finding, record

LATER = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat(timespec="seconds")


def params(host):
    return {**defaults(), "host": host, "instance_id": f"i-{host}", "call_id": "c1", "timeout_s": 1}


def answer(of, **rest):
    asked = asked_of(params(of))
    findings = [finding(check) for check in sorted(asked.checks)]
    made = {**record(of, *findings), "flightline": "1", "call_id": "c1", "probes": [], **rest}
    made.pop("admitted")
    return {"record": made}


class Watcher(RunObserver):
    def __init__(self):
        self.on_reply = []

    def answer(self, one):
        self.on_reply.append(one.host)


@pytest.fixture
def rows(tmp_path):
    made = RunRows(tmp_path / "runs.sqlite", a_run("a", "b"))
    made.open()
    yield made
    made.close()


class Silent(Launcher):
    """A launcher that hears of a only; b answers when everybody has gone."""

    how = "srun"

    def __init__(self):
        self.stopped = threading.Event()

    def ask(self, calls, run_id, until, told):
        told(HostReply("a", answer=answer("a")))
        told(HostReply("a", answer=answer("a")))
        self.on_reply = told

    def stop(self):
        self.stopped.set()


def test_who_is_silent_is_unreachable_and_its_later_answer_is_kept(rows):
    launcher, watcher = Silent(), Watcher()
    hosts = {name: ExpectedHost(name, "p5.48xlarge", f"i-{name}") for name in "ab"}
    made = PreparedRun(rows.run, [Call(name, name, params(name)) for name in "ab"], hosts, [])
    state = ask(made, rows, Follow(watcher), launcher)
    assert not state.broken and not state.interrupted and launcher.stopped.is_set()
    launcher.on_reply(HostReply("b", answer=answer("b")))
    launcher.on_reply(HostReply("b", answer=answer("b")))
    launcher.on_reply(HostReply("a", answer=answer("a")))
    with SqliteStore(rows.path) as store:
        found = {one["host"]: one for one in store.records("r1")}
        assert found["b"]["findings"][0]["status"] == "UNREACHABLE"
        assert "asked: srun" in found["b"]["findings"][0]["message"]
        assert [one["host"] for one in store.late("r1")] == ["b"]
    assert watcher.on_reply == ["a", "b"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ({"started_at": LATER}, "set the node's clock"),
        ({"started_at": "2026-13-41T00:00:00Z"}, "set the node's clock"),
        ({"call_id": "c0"}, "wanted 'c1', as asked"),
        ({"host": "b"}, "wanted 'a', as asked"),
    ],
    ids=["tomorrow", "no calendar's day", "another run", "another node"],
)
def test_an_answer_that_is_not_this_calls_is_that_nodes_unknown(spoil, words):
    found = record_of(ExpectedHost("a", "", "i-a"), params("a"), HostReply("a", answer=answer("a", **spoil)))
    assert found["findings"][0]["status"] == "UNKNOWN" and words in found["findings"][0]["message"]


def test_an_answer_of_now_is_taken():
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    taken = record_of(ExpectedHost("a", "", "i-a"), params("a"), HostReply("a", answer=answer("a", started_at=now)))
    assert taken["verdict"] == "go"
