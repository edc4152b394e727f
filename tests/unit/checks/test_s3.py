"""s3: answers of every kind, and the reader against servers on this machine."""

import json
import socket
from contextlib import contextmanager
from functools import partial

import pytest

from flightline_node import node
from flightline_node.ask import reach
from flightline_node.ask.readers import READERS
from flightline_node.read.parsers import s3
from tests.harness import BROKEN
from tests.served import Answering, Serving
from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, SKIP, UNKNOWN, judging, row, table

ASKED = {"s3_endpoints": ["training-data"]}


def judge(**row):
    facts = s3.parse({"s3.json": json.dumps({"endpoints": [{"endpoint": "b", **row}]}).encode()})
    return judging("s3", {"s3": facts}, options=ASKED)


@contextmanager
def server(answer):
    class Handler(Answering):
        def do_HEAD(self):
            self.say(answer, headers={"x-amz-bucket-region": "us-east-2"})

    with Serving(Handler) as one:
        yield f"http://127.0.0.1:{one.port}"


test_s3 = table(
    *(row("statuses", judge(status=answer, seconds=0.1), wanted, measured=answer)
        for answer, wanted in [
            (200, "PASS"), (301, "PASS"), (403, "PASS"), (405, "PASS"), (404, "FAIL"), (500, "WARN"), (503, "WARN"),
        ]),
    row("no answer", judge(error="timed out"), FAIL, remedy=FIX_CONFIG, device={"name": "b"}, says="timed out"),
    row("not asked and not measured", judging("s3", {}), SKIP, says="names no endpoint"),
    row("not asked and not measured",
        [judging("s3", {}, options=ASKED), judging("s3", {"s3": BROKEN}, options=ASKED),
        judging("s3", {"s3": {"endpoints": []}}, options=ASKED)], UNKNOWN),
)  # fmt: skip


def test_fixture():
    findings = judging("s3", {"s3": read("s3", "s3/mixed.json")}, options=ASKED)
    assert [str(finding.status) for finding in findings] == ["PASS", "PASS", "FAIL", "FAIL", "WARN"]


def test_reader_asks():
    with server(403) as url:
        (answer,) = json.loads(reach.s3("/", [url]))["endpoints"]
    assert (answer["status"], answer["region"], answer["url"]) == (403, "us-east-2", url)


def test_reader_tells_of_a_closed_port_and_a_server_that_is_silent(monkeypatch):
    monkeypatch.setattr(reach, "TIMEOUT_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        (answer,) = json.loads(reach.s3("/", [url]))["endpoints"]
        assert "timed out" in answer["error"]
    (answer,) = json.loads(reach.s3("/", [url]))["endpoints"]
    assert "refused" in answer["error"]


def test_reader_keeps_to_its_budget(monkeypatch):
    monkeypatch.setattr(reach, "BUDGET_S", -1.0)
    assert "not asked" in json.loads(reach.s3("/", ["http://127.0.0.1:9"]))["endpoints"][0]["error"]


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("training-data", "https://training-data.s3.amazonaws.com"),
        ("s3.eu-west-1.amazonaws.com", "https://s3.eu-west-1.amazonaws.com"),
        ("http://127.0.0.1:9000/bucket", "http://127.0.0.1:9000/bucket"),
    ],
)
def test_addresses(endpoint, url):
    assert reach.address(endpoint) == url


def test_nobody_is_asked_unless_the_inventory_names_it():
    with pytest.raises(OSError, match="s3_endpoints"):
        READERS["s3"]("/")
    assert node._readers({}) is READERS
    assert node._readers({"s3_endpoints": []}) is READERS
    tests = node._readers({"s3_endpoints": "bucket"})["s3"]
    assert isinstance(tests, partial) and tests.keywords == {"endpoints": ["bucket"]}
