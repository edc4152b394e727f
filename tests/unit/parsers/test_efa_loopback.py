"""The loopback probe's text: tables of fi_pingpong and fi_rdm_bw by device, and what they say instead."""

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.harness import sample
from tests.unit.parsers.hosttools import read


def parse(text):
    return PARSERS["efa_loopback"].parse({"efa-loopback.txt": text if isinstance(text, bytes) else text.encode()})


def test_each_device_by_its_largest_message():
    runs = read("efa_loopback", "efa_loopback/p4d-pingpong.txt")["runs"]
    assert [run["domain"] for run in runs] == [f"rdmap{bus}s27-rdm" for bus in (144, 16, 160, 32)]
    assert {(run["tool"], run["rc"]) for run in runs} == {("fi_pingpong", 0)}
    assert [run["rows"] for run in runs] == [6, 3, 3, 3]
    assert runs[0]["largest"] == {"bytes": 1048576, "mb_s": 2571.01, "usec": 407.85}
    assert all(run["said"] == [] for run in runs)


def test_both_tools_and_a_device_that_is_silent():
    runs = read("efa_loopback", "efa_loopback/p5en-deep-one-silent.txt")["runs"]
    assert [(run["tool"], run["rc"]) for run in runs] == [
        ("fi_pingpong", 0),
        ("fi_rdm_bw", 0),
        ("fi_pingpong", 1),
        ("fi_rdm_bw", 124),
    ]
    assert runs[1]["largest"] == {"bytes": 1048576, "mb_s": 11650.84, "usec": 90.0}
    assert runs[2]["said"] == ["fi_cq_readerr: 4113 (Unreachable remote)"]
    assert "largest" not in runs[3]


def test_text_cut_short_has_no_exit():
    text = sample("efa_loopback/p4d-pingpong.txt")
    runs = parse(text[: text.index(b"# exit")])["runs"]
    assert [(run["rc"], run["rows"]) for run in runs] == [(None, 6)]


def test_a_row_cut_in_the_middle_is_not_a_measurement():
    text = sample("efa_loopback/p4d-pingpong.txt").decode()
    (run,) = parse(text[: text.index("407.85") - 12])["runs"]
    assert run["largest"]["bytes"] == 65536


@pytest.mark.parametrize("text", ["", "Segmentation fault\n", "bytes #sent\n64 100\n", "# exit 0\n"])
def test_anything_else_is_refused(text):
    with pytest.raises(ParseError):
        parse(text)


def test_many_runs_are_refused():
    with pytest.raises(ParseError):
        parse("# fi_pingpong a-rdm\n# exit 0\n" * 600)
