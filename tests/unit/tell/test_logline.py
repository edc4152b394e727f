"""Records travel through log lines whole, or the reader says what is wrong."""

import base64
import json
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightline_node.tell import logline

RECORD = {"schema": "flightline-node/1", "host": "gpu-01", "findings": [{"check": "xid", "status": "PASS"}], "é": "ü€"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def _large(words: int = 60_000) -> dict:
    """A record that compression does not make small: 1 MB of it takes several lines."""
    source = random.Random(7)
    return {**RECORD, "noise": [source.random() for _ in range(words)]}


def _pieces(lines: list[str]) -> list[logline.Piece]:
    found = [logline.parse(line) for line in lines]
    assert all(piece is not None for piece in found)
    return [piece for piece in found if piece is not None]


def test_a_usual_record_is_one_readable_line():
    (line,) = logline.lines("node", "run-1", RECORD)
    assert "\n" not in line and line.isascii()
    assert json.loads(line)["data"]["host"] == "gpu-01", "Logs Insights can query it"
    assert logline.join(_pieces([line])) == RECORD


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=12), VALUES, max_size=6), st.integers(min_value=400, max_value=3000))
def test_every_record_comes_back_as_it_went(record, limit):
    lines = logline.lines("node", "run-1", record, limit)
    assert all(len(line.encode()) <= limit for line in lines)
    assert logline.join(_pieces(lines)) == record


def test_a_large_record_is_cut_into_lines_below_the_limit_and_joined_in_any_order():
    record = _large()
    lines = logline.lines("node", "run-1", record)
    assert len(lines) > 1
    # PutLogEvents counts 26 bytes for each event on top of its text, of at most 256 KiB.
    assert all(len(line.encode()) + 26 <= 256 * 1024 for line in lines)
    assert logline.join(list(reversed(_pieces(lines)))) == record


def test_a_record_that_compresses_well_is_one_line():
    (line,) = logline.lines("node", "run-1", {**RECORD, "evidence": ["the same line"] * 100_000})
    assert json.loads(line)["encoding"] == "zlib+base64"


def test_a_missing_part_is_named():
    pieces = _pieces(logline.lines("node", "run-1", _large()))
    with pytest.raises(logline.LineError, match=r"parts 2 of \d+ are missing"):
        logline.join([piece for piece in pieces if piece.part != 2])


def test_the_same_record_has_the_same_id_and_another_run_another():
    (first,), (again,) = logline.lines("node", "a", RECORD), logline.lines("node", "a", dict(reversed(RECORD.items())))
    assert json.loads(first)["id"] == json.loads(again)["id"]
    assert json.loads(first)["id"] != json.loads(logline.lines("node", "b", RECORD)[0])["id"]


@pytest.mark.parametrize("text", ["", "hello", '{"level":"info"}', "{", "null"])
def test_lines_of_others_are_not_ours(text):
    assert logline.parse(text) is None


def _changed(**changes) -> str:
    return json.dumps({**json.loads(logline.lines("node", "run-1", RECORD)[0]), **changes}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (logline.lines("node", "r", RECORD)[0][:-20], "cut off"),
        (_changed(format="flightline-log/2"), "format"),
        (_changed(kind="other"), "kind"),
        (_changed(part=2), "part"),
        (_changed(parts=65), "part"),
        (_changed(parts=True, part="1"), "part"),
        (_changed(id=""), "id"),
        (_changed(run=None), "run"),
        (_changed(data=[1]), "data of list"),
        (_changed(encoding="gzip"), "encoding"),
        ('{"format":"flightline-log/1","x":' + "[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_line_is_refused_with_the_reason(line, wrong):
    with pytest.raises(logline.LineError, match=wrong):
        logline.parse(line)


def test_a_changed_record_is_found_out():
    piece = _pieces([_changed(data={**RECORD, "host": "other"})])
    with pytest.raises(logline.LineError, match="changed on the way"):
        logline.join(piece)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ("no base64!", "cannot be read"),
        (base64.b64encode(b"no zlib").decode(), "cannot be read"),
        (base64.b64encode(zlib.compress(b"{}" * 100)[:-6]).decode(), "cut off"),
        (base64.b64encode(zlib.compress(b" " * (logline.MAX_RECORD_BYTES + 1))).decode(), "unpacks to more"),
    ],
)
def test_damaged_and_oversized_compression_is_refused(data, wrong):
    with pytest.raises(logline.LineError, match=wrong):
        logline.join(_pieces([_changed(encoding="zlib+base64", data=data)]))


def test_what_is_beyond_all_limits_is_refused_by_the_writer():
    with pytest.raises(logline.LineError, match="at most"):
        logline.lines("node", "r", {"x": "y" * (logline.MAX_RECORD_BYTES + 1)})
    with pytest.raises(logline.LineError, match="does not fit"):
        logline.lines("node", "r", _large(), limit=400)
    with pytest.raises(logline.LineError, match="kind"):
        logline.lines("fleet", "r", RECORD)
