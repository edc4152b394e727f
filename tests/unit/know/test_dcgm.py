"""DCGM's error table: complete, consistent, and its severity numbers of both schemes."""

import pytest

from flightline_node.know.catalog import dcgm
from flightline_node.model import Remedy


def test_table():
    errors = dcgm.errors()
    assert sorted(errors) == list(range(133))
    assert {error.severity for error in errors.values()} == {
        "UNKNOWN",
        "ISOLATE",
        "MONITOR",
        "RESET",
        "TRIAGE",
        "CONFIG",
    }
    assert len({error.name for error in errors.values()}) == 133
    assert set(dcgm.OVERRIDES) <= set(errors)


@pytest.mark.parametrize(
    ("version", "value", "name"),
    [
        ((3, 3, 0), 1, "ISOLATE"),
        ((3, 3, 1), 1, "MONITOR"),
        ((3, 3, 1), 2, "ISOLATE"),
        ((4, 2, 3), 6, "RESET"),
        ((2, 4, 6), 0, "MONITOR"),
        ((2, 4, 6), 5, "5"),
        ((4, 2, 3), -1, "-1"),
    ],
)
def test_severity_by_version(version, value, name):
    assert dcgm.severity_name(value, dcgm.scheme_of(version)) == name


def test_unknown_ids():
    assert dcgm.lookup(9999) is None
    assert dcgm.lookup("4") is None
    assert dcgm.remedy_of(None, None) is Remedy.INVESTIGATE
    assert dcgm.remedy_of(None, "ISOLATE") is Remedy.REPLACE


def test_messages_stand_for_known_errors():
    assert {number for _, number in dcgm.MESSAGES} <= set(dcgm.errors())
    assert all(words == words.lower() for words, _ in dcgm.MESSAGES)
    assert dcgm.id_of(None, "GPU 3 had memory errors and row remappings are pending") == 85
    assert dcgm.id_of(52, "GPU 3 had memory errors and row remappings are pending") == 52
    assert (dcgm.id_of(None, "new"), dcgm.id_of(None, None)) == (None, None)
