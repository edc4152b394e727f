"""fs-io.json: what became of each file system."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.unit.parsers.hosttools import read


def parse(document):
    return PARSERS["fs_io"].parse({"fs-io.json": json.dumps(document).encode()})


def test_recorded():
    scratch, fsx = read("fs_io", "fs_io/debian12.json")["targets"]
    assert (scratch["mount"], scratch["kind"], scratch["verified"], scratch["direct"]) == (
        "/opt/dlami/nvme", "instance-store", True, True,
    )  # fmt: skip
    assert (scratch["write_mb_s"], scratch["read_mb_s"], scratch["read_bytes"]) == (545.1, 672.3, 256 << 20)
    assert fsx["fstype"] == "lustre"


def test_what_went_wrong():
    wrong, error, missing, full, read_only = read("fs_io", "fs_io/bad.json")["targets"]
    assert (wrong["verified"], wrong["wrong"]) == (False, "byte 8388612: wrote 0x5b, read 0x1b")
    assert error["error"] == "Input/output error (errno 5)"
    assert missing["error"] == "not mounted"
    assert "MiB free" in full["refused"]
    assert read_only["refused"] == "mounted read-only"


def test_nothing_to_test_is_not_an_error():
    assert parse({"targets": []}) == {"targets": []}


def test_odd_values_are_left_out():
    (target,) = parse({"targets": [{"mount": "/a", "write_mb_s": "fast", "verified": "yes", "error": []}, "x"]})[
        "targets"
    ]
    assert target == {"mount": "/a", "write_mb_s": None, "verified": False}


@pytest.mark.parametrize("document", [{}, {"targets": {}}, {"targets": [{}] * 65}, []])
def test_anything_else_is_refused(document):
    with pytest.raises(ParseError):
        parse(document)
