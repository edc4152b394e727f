"""imex: the node's own state, its domain and who is missing from it; both forms of nvidia-imex-ctl -N."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import imex
from tests.harness import BROKEN, only, status

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table

RACK = "p6e-gb200.36xlarge"


def domain(status_="UP", **states):
    """By hand after published outputs of nvidia-imex-ctl -N -j."""
    nodes = {
        str(n): {"status": state, "host": f"10.0.0.{n}", "connections": {"0": {"host": "10.0.0.0", "status": link}}}
        for n, (state, link) in enumerate(states.values())
    }
    return json.dumps({"nodes": nodes, "timestamp": "9/4/2026 00:00:00.000", "status": status_})


UP = domain(a=("READY", "CONNECTED"), b=("READY", "CONNECTED"))
ONE_GONE = domain("DEGRADED", a=("READY", "CONNECTED"), b=("UNAVAILABLE", "INVALID"))


def judge(text, instance_type=RACK):
    return judging("imex", {"imex": imex.parse({"imex.json": text.encode()})}, instance_type)


test_imex = table(
    row("who is missing is named", judge("READY\n" + ONE_GONE), WARN, says="10.0.0.1: UNAVAILABLE"),
    row("unreadable and missing", [judging("imex", {"imex": BROKEN}, RACK), judging("imex", {}, RACK)], UNKNOWN),
    row("unreadable and missing", judging("imex", {}, "none"), SKIP),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("READY\n" + UP, PASS),
        (UP, PASS),
        ("READY\n" + ONE_GONE, WARN),
        ("UNAVAILABLE\n" + ONE_GONE, FAIL),
        ("WAITING_FOR_PEERS\n" + ONE_GONE, FAIL),
        (domain("DOWN", a=("UNAVAILABLE", "INVALID")), FAIL),
        ("READY\n" + domain("UP", a=("READY", "VERSION_MISMATCH")), WARN),
        ("READY\n", UNKNOWN),
        ("Failed to connect to the IMEX service\n", WARN),
        ("nvidia-imex-ctl: not installed\n", WARN),
    ],
)
def test_states(text, wanted):
    finding = only(judge(text), wanted)
    if wanted is FAIL:
        assert finding.remedy is FIX_CONFIG
    assert status(judge(text, "p5.48xlarge")) is SKIP


def test_the_table_for_people():
    text = "Connectivity Table Legend:\nC - Connected - Ready for operation\n\n5/4/2026 06:08:10.580\nNodes:\n"
    text += "Node #0   - 10.0.0.1    - READY                - Version: 570.172\n"
    text += "Node #1   - 10.0.0.2    - READY                - Version: 570.172\n\n"
    text += " Nodes From\\To  0   1\n       0        C   C\n       1        C   C\n\nDomain State: UP\n"
    facts = imex.parse({"imex.txt": text.encode()})
    assert (facts["domain"], len(facts["nodes"]), facts["broken"]) == ("UP", 2, [])
    assert status(judge(text)) is PASS
    mismatch = text.replace("0        C   C", "0        C  !V!").replace("State: UP", "State: DEGRADED")
    assert "node 0 to node 1: version mismatch" in only(judge(mismatch), WARN).message


@pytest.mark.parametrize("data", [b"", b"hello\n", b"[]", b'{"x": 1}'])
def test_what_is_no_answer_is_refused(data):
    with pytest.raises(ParseError):
        imex.parse({"imex.json": data})
