"""Answers that reach the bucket when the run is over: who may speak late, and what says nothing."""

import io
import json
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from flightline.contract import CALLS_PREFIX
from flightline.record.outputs import BEGUN, ENDED
from flightline.run import late_answers
from flightline.run.calls import Call
from flightline.run.launchers.ssm import SsmLauncher
from flightline.store.rows import unreachable_record
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore, now_stamp
from flightline_node.tell.frames import frames

from .test_asking import answer, params

AT = {"region": "eu-west-1", "results_bucket": "b", "cluster_name": "demo", "results_table": "t"}
COMMAND, OTHER = "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666"
HOSTS = tuple(ExpectedHost(name, "p5.48xlarge", f"i-{name}") for name in "abc")
RUN = Run("r1", now_stamp(), "quick", "here", HOSTS)


class AskedSsm(SsmLauncher):
    """It has looked for its stack."""

    name, answers_at = "ssm", AT


class Bucket:
    """What is asked of S3 and of Systems Manager. objects: key -> text. own: what an instance itself has printed."""

    def __init__(self, objects, own=None):
        self.objects, self.asked, self.own = objects, [], own or {}

    def get_paginator(self, _):
        return self

    def paginate(self, Prefix="", CommandId="", InstanceId="", **_):
        if CommandId:
            if CommandId not in (COMMAND, OTHER):
                raise ClientError({"Error": {"Code": "InvalidCommandId", "Message": ""}}, "ListCommandInvocations")
            text = self.own.get(InstanceId) or self.objects.get(key(InstanceId, CommandId), "")
            return [{"CommandInvocations": [{"InstanceId": InstanceId, "CommandPlugins": [{"Output": text[:2500]}]}]}]
        self.asked.append(Prefix)
        found = [{"Key": key, "Size": len(text)} for key, text in self.objects.items() if key.startswith(Prefix)]
        return [{"Contents": found}, {}]

    def get_object(self, Key, **_):
        self.asked.append(Key)
        body = self.objects[Key].encode()
        return {"Body": io.BytesIO(body), "ContentLength": len(body)}


def key(name, command=COMMAND):
    return f"{CALLS_PREFIX}r1/{command}/{name}/awsrunShellScript/ask/stdout"


def output(host, name=""):
    return "\n".join([f"{BEGUN} {name or f'i-{host}'}", *frames(json.dumps(answer(host))), f"{ENDED} 0", ""])


@pytest.fixture
def store(tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as made:
        made.start(RUN)
        for host in HOSTS:
            made.save("r1", unreachable_record(host, "no answer before the deadline"))
        yield made


def fetched(store, monkeypatch, objects, run=RUN, given_up="ab", own=None):
    late_answers.leave_note(store.path, run, [Call(name, f"i-{name}", params(name)) for name in given_up], AskedSsm())
    bucket = Bucket(objects, own)
    monkeypatch.setattr("flightline.cloud.clients.Clients.get", lambda *_: bucket)
    assert late_answers.fetch(store, "r1") == []
    return [record["host"] for record in store.late("r1")], bucket


def test_an_answer_that_came_afterwards_is_kept_as_late_once(store, monkeypatch):
    objects = {key("i-a"): output("a"), key("i-c"): output("c"), key("i-b", OTHER) + ".part": output("b")}
    found, bucket = fetched(store, monkeypatch, objects)
    assert found == ["a"], "c was not given up, b's is no output"
    bucket.asked.clear()
    assert late_answers.fetch(store, "r1") == [] and bucket.asked == [f"{CALLS_PREFIX}r1/"], "a's is not read again"
    objects[key("i-b")] = output("b")
    (note,) = (store.path.parent / "late").iterdir()
    note.write_text(json.dumps({key: value for key, value in json.loads(note.read_text()).items() if key != "via"}))
    late_answers.fetch(store, "r1")
    bucket.asked.clear()
    late_answers.fetch(store, "r1")
    assert bucket.asked == [], "nobody is left to be asked for, also where an earlier version wrote the note"


@pytest.mark.parametrize(
    "text", ["", output("a")[:200], output("a", "i-b"), output("a").replace(f"{ENDED} 0", ""), "A" * 40_000_000]
)
def test_what_is_no_whole_answer_of_the_node_says_nothing(store, monkeypatch, text):
    assert fetched(store, monkeypatch, {key("i-a"): text})[0] == []


@pytest.mark.parametrize("command", [COMMAND, "99999999-2222-3333-4444-555555555555", "c-1"])
def test_an_answer_that_another_node_wrote_says_nothing(store, monkeypatch, command):
    """Whole, and with the call id, which all nodes of the command can read."""
    own = {"i-a": "" if command != COMMAND else output("b")}
    assert fetched(store, monkeypatch, {key("i-a", command): output("a"), key("i-b"): output("b")}, own=own)[0] == ["b"]


def test_after_a_day_nobody_asks_any_more(store, monkeypatch):
    old = replace(RUN, started_at="2026-01-01T00:00:00+00:00")
    found, bucket = fetched(store, monkeypatch, {key("i-a"): output("a")}, run=old)
    assert found == [] and bucket.asked == []


def test_without_a_stack_or_without_silent_hosts_nothing_is_noted(store):
    late_answers.leave_note(store.path, RUN, [], AskedSsm())
    late_answers.leave_note(store.path, RUN, [Call("a", "i-a", params("a"))], SsmLauncher())
    assert not (store.path.parent / "late").exists() and late_answers.fetch(store, "r1") == []


def test_a_damaged_note_and_an_aws_that_refuses_are_said(store, monkeypatch):
    from botocore.exceptions import NoCredentialsError

    def refused(*_):
        raise NoCredentialsError

    late_answers.leave_note(store.path, RUN, [Call("a", "i-a", params("a"))], AskedSsm())
    monkeypatch.setattr("flightline.cloud.clients.Clients.get", refused)
    (said,) = late_answers.fetch(store, "r1")
    assert "came late could not be fetched" in said and "credentials" in said
    next((store.path.parent / "late").iterdir()).write_text("{")
    (said,) = late_answers.fetch(store, "r1")
    assert "saw" in said and "wanted" in said
