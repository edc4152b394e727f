"""Numbers, sizes and JSON from untrusted text."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import values


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("12", 12),
        (" -3 ", -3),
        (4.0, 4),
        (True, None),
        ("1e3", None),
        (float("inf"), None),
        ("9" * 19, None),
        ([], None),
    ],
)
def test_integer(given, wanted):
    assert values.integer(given) == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("1.5", 1.5), ("+2e-3", 0.002), ("nan", None), ("1e999", None), (True, None), (7, 7.0), ("", None)],
)
def test_real(given, wanted):
    assert values.real(given) == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("0", 0), ("512", 512), ("1K", 1024), ("1.5G", 1610612736), ("2TiB", 2 << 40), ("x", None), (9, 9)],
)
def test_size(given, wanted):
    assert values.size_bytes(given) == wanted


def test_cpu_list_is_bounded():
    assert values.cpu_list("0-2,8 10") == [0, 1, 2, 8, 10]
    assert values.cpu_list("0-999999", limit=4) == [0, 1, 2, 3]
    assert values.cpu_list("5-1 x 7-") == []


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b"{", b"nothing", b"[" + b"1," * values.MAX_JSON_BYTES, b'{"a": NaN' * 50], ids=range(5)
)
def test_json_refused(data):
    with pytest.raises(ParseError):
        values.json_document(data)


def test_too_many_lines_and_bytes():
    with pytest.raises(ParseError, match="lines"):
        list(values.lines(b"x\n" * (values.MAX_LINES + 1)))
    with pytest.raises(ParseError, match="bytes"):
        list(values.lines(b"x" * (values.MAX_TEXT_BYTES + 1)))
    assert list(values.lines(b"y" * (values.MAX_LINE_CHARS + 1) + b"\nkept\n")) == ["kept"]
