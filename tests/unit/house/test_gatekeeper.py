"""No check without its texts, sources, tests and catalogue entry; and the gatekeeper notices each that is taken away."""

from dataclasses import replace

import pytest

from flightline_node.judge.checks import CHECKS
from flightline_node.model import Status
from tests.gatekeeper import INFORM_ONLY, MAX_LINES, gaps, house, undrawn


@pytest.fixture(scope="module")
def found():
    return house(CHECKS)


def test_every_check_is_complete(found):
    assert gaps(found) == []


def test_it_looks_at_every_check(found):
    assert set(CHECKS) <= set(found.check_files)


def changed(check, part):
    """The check less one of its own elements; None when the part is not the check's own."""
    if part in ("title", "what", "why", "remedy", "out_of_service", "source"):
        return replace(check, **{part: " "})
    if part.startswith("threshold"):
        lacking: dict[str, dict] = {
            "threshold source": {"source": ""},
            "threshold unit": {"unit": ""},
            "threshold what": {"what": " "},
            "threshold bounds": {"minimum": 1e18},
        }
        return replace(check, thresholds=(replace(check.thresholds[0], **lacking[part]), *check.thresholds[1:]))
    fields: dict[str, dict] = {
        "how it judges": {"evaluate": lambda context: []},
        "tags": {"tags": ()},
        "level": {"level": "sometimes"},
    }
    return replace(check, **fields[part]) if part in fields else None


def without(found, part, check_id):
    """The house, less one element of one check."""
    lacking = changed(found.registered[check_id], part)
    if lacking:
        return replace(found, registered={**found.registered, check_id: lacking})
    others = {name: one for name, one in found.registered.items() if name != check_id}
    files = {name: lines for name, lines in found.check_files.items() if name != check_id}
    fields: dict[str, dict] = {
        "registration": {"registered": others},
        "file": {"check_files": files},
        "short file": {"check_files": {**files, check_id: 10 * MAX_LINES}},
        "test file": {"test_files": found.test_files - {f"test_{check_id}"}},
    }
    return replace(found, **fields.get(part, {part: getattr(found, part, frozenset()) - {check_id}}))


PARTS = (
    *("title", "what", "why", "remedy", "out_of_service", "source", "how it judges", "tags", "level"),
    *("threshold source", "threshold unit", "threshold what", "threshold bounds"),
    *("registration", "file", "short file", "test file", "catalogue"),
)


@pytest.mark.parametrize("part", PARTS)
def test_an_element_taken_away_of_any_check_is_noticed(found, part):
    """A mutation of each check in turn: exactly one complaint more, and it names the check."""
    before = set(gaps(found))
    for check_id, check in found.registered.items():
        if part.startswith("threshold") and not check.thresholds:
            continue
        noticed = set(gaps(without(found, part, check_id))) - before
        assert len(noticed) == 1, f"{check_id} without {part}: {noticed}"
        assert noticed.pop().startswith(f"{check_id}: ")


def test_answers_that_a_check_s_tests_never_draw_are_named():
    """tests/unit/checks/conftest.py asks so of every file there."""
    assert undrawn("xid", {Status.INFO, Status.WARN, Status.UNKNOWN}) == []
    assert undrawn("xid", {Status.SKIP}) == ["INFO or PASS", "FAIL or WARN", "UNKNOWN"]
    for informs in INFORM_ONLY:
        assert undrawn(informs, {Status.INFO}) == ["UNKNOWN"]


def test_there_are_thresholds_to_take_away(found):
    assert sum(bool(check.thresholds) for check in found.registered.values()) > 20
