"""The checkpoint signal of roles/flightline_notice, against a local stand-in of the instance metadata service.

What the service says is written by hand after the EC2 user guide (spot interruption notices, rebalance recommendations,
scheduled events). systemctl is simulated: it writes down what it is asked.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from flightline_node.act import notice
from flightline_node.ask.metadata import MAINTENANCE, REBALANCE, SPOT, MetadataSession
from tests.node_programs import NOTICE

SPOT_NOTICE = json.dumps({"action": "terminate", "time": "2026-11-22T12:02:00Z"})
ADVICE = json.dumps({"noticeTime": "2026-11-22T12:00:00Z"})
NOON = 1795348800.0
"""2026-11-22 12:00 UTC."""


def event(before="22 Nov 2026 12:05:00 GMT", state="active", **more):
    one = {"Code": "system-reboot", "EventId": "instance-event-0d59937288b749b32", "NotBefore": before, "State": state}
    return json.dumps([{**one, **more}])


class Service:
    """The stand-in: paths to text, tokens only, and how often it was asked without one."""

    def __init__(self):
        self.paths, self.tokens, self.naked, self.broken = {}, ["t-1"], 0, None
        service = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, status, text=""):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_PUT(self):
                self.answer(200, service.tokens[-1]) if not service.broken else self.answer(service.broken)

            def do_GET(self):
                if self.headers.get("X-aws-ec2-metadata-token") != service.tokens[-1]:
                    service.naked += self.headers.get("X-aws-ec2-metadata-token") is None
                    return self.answer(401)
                if service.broken:
                    return self.answer(service.broken)
                text = service.paths.get(self.path.removeprefix("/latest/"))
                return self.answer(404) if text is None else self.answer(200, text)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def service():
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def watch(service):
    """The watch on the stand-in; answers what was signalled and said."""
    told, said = [], []

    def tell(one):
        told.append((one.kind, one.key))
        return True

    made = notice.NoticeWatch(MetadataSession(service.url, 60), tell, said.append)
    return made, told, said


def test_without_a_notice_nothing_is_signalled(watch, service):
    made, told, said = watch
    made.look(NOON)
    assert (told, said, service.naked) == ([], [], 0)


def test_a_spot_notice_signals_once(watch, service):
    made, told, _ = watch
    service.paths[SPOT] = SPOT_NOTICE
    for _ in range(3):
        made.look(NOON)
    assert told == [("spot", "2026-11-22T12:02:00Z")]


def test_a_second_notice_signals_again(watch, service):
    made, told, _ = watch
    service.paths[REBALANCE] = ADVICE
    made.look(NOON)
    service.paths[SPOT] = SPOT_NOTICE
    made.look(NOON)
    assert [kind for kind, _ in told] == ["rebalance", "spot"]


@pytest.mark.parametrize(("before", "signalled"), [("22 Nov 2026 12:05:00 GMT", 1), ("29 Nov 2026 12:00:00 GMT", 0)])
def test_maintenance_signals_shortly_before(watch, service, before, signalled):
    made, told, _ = watch
    service.paths[MAINTENANCE] = event(before)
    made.look(NOON)
    assert len(told) == signalled


@pytest.mark.parametrize("text", ["[]", event(state="completed"), event(state="canceled")])
def test_maintenance_that_is_over_is_none(watch, service, text):
    made, told, _ = watch
    service.paths[MAINTENANCE] = text
    made.look(NOON)
    assert told == []


@pytest.mark.parametrize("path", [SPOT, REBALANCE, MAINTENANCE])
@pytest.mark.parametrize("text", ["", "{", "null", '"soon"', "<html>", "{}", "\x00", "{" * 9000])
def test_a_notice_that_cannot_be_read_is_one(watch, service, path, text):
    made, told, _ = watch
    service.paths[path] = text
    made.look(NOON)
    made.look(NOON)
    assert len(told) == 1


def test_a_token_that_is_no_longer_taken_is_replaced(watch, service):
    made, told, said = watch
    made.look(NOON)
    service.tokens.append("t-2")
    service.paths[SPOT] = SPOT_NOTICE
    made.look(NOON)
    assert len(told) == 1 and said == []


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_service_that_does_not_answer_is_said_once_and_asked_again(watch, service, status):
    made, told, said = watch
    service.broken = status
    made.look(NOON)
    made.look(NOON)
    assert len(said) == 1 and "does not answer" in said[0]
    service.broken, service.paths[SPOT] = None, SPOT
    made.look(NOON)
    assert len(told) == 1 and "answers again" in said[-1]


def test_a_signal_that_failed_is_sent_again(service):
    outcomes = [False, True, True]
    tell = lambda one: outcomes.pop(0)  # noqa: E731
    made = notice.NoticeWatch(MetadataSession(service.url, 60), tell, lambda line: None)
    service.paths[SPOT] = SPOT_NOTICE
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
    service.paths[SPOT] = SPOT_NOTICE
    assert running.stderr is not None
    line = running.stderr.readline()
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130
    assert "SIGUSR1 to flightline-train@*.service sent" in line
    assert calls.read_text() == "kill --kill-who=main --signal=SIGUSR1 flightline-train@*.service\n"


def test_no_service_at_all_is_said_and_not_fatal():
    said = []
    made = notice.NoticeWatch(MetadataSession("http://127.0.0.1:9", 60), lambda one: True, said.append)
    made.look(NOON)
    assert len(said) == 1 and "no session token" in said[0]
