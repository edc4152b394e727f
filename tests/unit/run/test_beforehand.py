"""What would spoil a preflight at its end. The whole command is tried in tests/e2e/test_refused_first.py."""

from datetime import date

import pytest

from flightline.run import beforehand
from flightline.run.validation import HostVars, validate

WAIVER = {"check": "memory", "scope": "a", "reason": "x", "owner": "ops", "expiry": "2026-12-01"}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A store that can be, and nothing published."""
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.delenv("FLIGHTLINE_PUBLISH", raising=False)


def found(**hosts):
    variables = {name: HostVars({"instance_type": "none", **given}) for name, given in hosts.items()}
    return beforehand.mistakes(validate(variables))


@pytest.mark.parametrize(("today", "count"), [(date(2026, 12, 1), 0), (date(2026, 12, 2), 1)])
def test_a_waiver_holds_on_its_last_day(today, count):
    said = list(beforehand.expired([WAIVER, {"check": "memory"}, 5], today))
    assert len(said) == count
    for text in said:
        assert "the waiver of memory in scope a, owner ops, expired on 2026-12-01" in text


@pytest.mark.parametrize("given", [None, "", 5, {"check": "memory"}, "memory"])
def test_what_is_no_list_of_waivers_is_told_elsewhere(given):
    assert list(beforehand.expired(given, date(2026, 12, 1))) == []


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, True),
        ({"flightline_checks": "memory"}, True),
        ({"flightline_checks": ["memory"], "flightline_skip": "memory"}, False),
        ({"flightline_checks": ["nccl_busbw"]}, False),
        ({"flightline_checks": ["nccl_busbw"], "flightline_level": "standard"}, True),
        ({"flightline_checks": ["nccl_busbw", "memory"]}, True),
        ({"flightline_checks": ["memry"]}, True),  # told as what it is
    ],
)
def test_checks_of_which_the_level_runs_none(given, left):
    said = found(a=given, b={})
    assert list(said.values()) == ([] if left else [["a"]]), said
