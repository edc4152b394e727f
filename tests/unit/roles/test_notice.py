"""The checkpoint signal of roles/flightline_notice, against a local stand-in of the instance metadata service.

What the service says is written by hand after the EC2 user guide (spot interruption notices, rebalance recommendations,
scheduled events). systemctl is simulated: it writes down what it is asked.
"""

import json
import os
import signal
import subprocess
import time

import pytest

from flightline_node.act import notice
from flightline_node.ask.metadata import MAINTENANCE, REBALANCE, SPOT, MetadataSession
from tests.imds import serving
from tests.node_programs import NOTICE

SPOT_NOTICE = json.dumps({"action": "terminate", "time": "2026-11-22T12:02:00Z"})
ADVICE = json.dumps({"noticeTime": "2026-11-22T12:00:00Z"})
NOON = 1795348800.0
"""2026-11-22 12:00 UTC."""


def event(before="22 Nov 2026 12:05:00 GMT", state="active", **more):
    one = {"Code": "system-reboot", "EventId": "instance-event-0d59937288b749b32", "NotBefore": before, "State": state}
    return json.dumps([{**one, **more}])


@pytest.fixture
def service():
    with serving() as made:
        yield made


@pytest.fixture
def watch(service):
    """The watch on the stand-in; answers what was signalled and said."""
    told, said = [], []

    def tell(one):
        told.append((one.kind, one.key))
        return True

    made = notice.NoticeWatch(MetadataSession(service.url, 60, 2.0), tell, said.append)
    return made, told, said


def test_without_a_notice_nothing_is_signalled(watch, service):
    made, told, said = watch
    made.look(NOON)
    assert (told, said, service.tokenless) == ([], [], 0)


def test_a_spot_notice_signals_once(watch, service):
    made, told, _ = watch
    service.values[SPOT] = SPOT_NOTICE
    for _ in range(3):
        made.look(NOON)
    assert told == [("spot", "2026-11-22T12:02:00Z")]


def test_a_second_notice_signals_again(watch, service):
    made, told, _ = watch
    service.values[REBALANCE] = ADVICE
    made.look(NOON)
    service.values[SPOT] = SPOT_NOTICE
    made.look(NOON)
    assert [kind for kind, _ in told] == ["rebalance", "spot"]


@pytest.mark.parametrize(("before", "signalled"), [("22 Nov 2026 12:05:00 GMT", 1), ("29 Nov 2026 12:00:00 GMT", 0)])
def test_maintenance_signals_shortly_before(watch, service, before, signalled):
    made, told, _ = watch
    service.values[MAINTENANCE] = event(before)
    made.look(NOON)
    assert len(told) == signalled


@pytest.mark.parametrize("text", ["[]", event(state="completed"), event(state="canceled")])
def test_maintenance_that_is_over_is_none(watch, service, text):
    made, told, _ = watch
    service.values[MAINTENANCE] = text
    made.look(NOON)
    assert told == []


@pytest.mark.parametrize("path", [SPOT, REBALANCE, MAINTENANCE])
@pytest.mark.parametrize("text", ["", "{", "null", '"soon"', "<html>", "{}", "\x00", "{" * 9000])
def test_a_notice_that_cannot_be_read_is_one(watch, service, path, text):
    made, told, _ = watch
    service.values[path] = text
    made.look(NOON)
    made.look(NOON)
    assert len(told) == 1


def test_a_token_that_is_no_longer_taken_is_replaced(watch, service):
    made, told, said = watch
    made.look(NOON)
    service.token = "t-2"
    service.values[SPOT] = SPOT_NOTICE
    made.look(NOON)
    assert len(told) == 1 and said == []


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_service_that_does_not_answer_is_said_once_and_asked_again(watch, service, status):
    made, told, said = watch
    service.status = status
    made.look(NOON)
    made.look(NOON)
    assert len(said) == 1 and "does not answer" in said[0]
    service.status, service.values[SPOT] = 200, SPOT_NOTICE
    made.look(NOON)
    assert len(told) == 1 and "answers again" in said[-1]


def test_a_signal_that_failed_is_sent_again(service):
    outcomes = [False, True, True]
    tell = lambda one: outcomes.pop(0)  # noqa: E731
    made = notice.NoticeWatch(MetadataSession(service.url, 60, 2.0), tell, lambda line: None)
    service.values[SPOT] = SPOT_NOTICE
    for _ in range(3):
        made.look(NOON)
    assert outcomes == [True]


def test_the_program_signals_the_units_well_within_the_notice(service, tmp_path):
    (tmp_path / "systemctl").write_text('#!/bin/sh\necho "$*" >>"$CALLS"\n')
    (tmp_path / "systemctl").chmod(0o755)
    calls = tmp_path / "calls"
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls)}
    argv = [*NOTICE, f"--endpoint={service.url}", "--every-s=0.2"]
    running = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    service.values[SPOT] = SPOT_NOTICE
    assert running.stderr is not None
    line = running.stderr.readline()
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130
    assert "SIGUSR1 to flightline-train@*.service sent" in line
    assert calls.read_text() == "kill --kill-who=main --signal=SIGUSR1 flightline-train@*.service\n"


def test_no_service_at_all_is_said_and_not_fatal():
    said = []
    made = notice.NoticeWatch(MetadataSession("http://127.0.0.1:9", 60, 2.0), lambda one: True, said.append)
    made.look(NOON)
    assert len(said) == 1 and "no session token" in said[0]
