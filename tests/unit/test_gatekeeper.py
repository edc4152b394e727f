"""No check without its texts, sources, tests, catalogue and runbook entry; and the gatekeeper notices each that is taken away."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from flightline_node.checks import CHECKS
from tests.gatekeeper import MAX_LINES, OUTCOMES, ROOT, TESTS_DIR, gaps, house, read_outcomes


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The house, with the answers that the checks' own tests draw: one run of them, in a process of its own."""
    path = tmp_path_factory.mktemp("gatekeeper") / "outcomes.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.gatekeeper",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [*command, str(TESTS_DIR)], cwd=ROOT, env={**environment, OUTCOMES: str(path)}, capture_output=True, text=True
    )
    assert path.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    return house(CHECKS, read_outcomes(path))


def test_every_check_is_complete(found):
    assert gaps(found) == []


def test_it_looks_at_every_check(found):
    assert set(found.outcomes) == set(CHECKS)
    assert set(CHECKS) <= set(found.check_files)


def without(found, part, check_id):
    """The house, less one element of one check."""
    check = found.registered[check_id]
    if part in ("title", "what", "why", "remedy", "source"):
        return replace(found, registered={**found.registered, check_id: replace(check, **{part: " "})})
    if part == "tags":
        return replace(found, registered={**found.registered, check_id: replace(check, tags=())})
    if part == "level":
        return replace(found, registered={**found.registered, check_id: replace(check, level="sometimes")})
    if part.startswith("threshold"):
        change = {
            "threshold source": {"source": ""},
            "threshold unit": {"unit": ""},
            "threshold bounds": {"minimum": 1e18},
        }
        lacking = replace(check.thresholds[0], **change[part])
        return replace(
            found,
            registered={**found.registered, check_id: replace(check, thresholds=(lacking, *check.thresholds[1:]))},
        )
    if part == "registration":
        return replace(found, registered={name: one for name, one in found.registered.items() if name != check_id})
    if part == "short file":
        return replace(found, check_files={**found.check_files, check_id: 10 * MAX_LINES})
    if part == "test file":
        return replace(found, test_files=found.test_files - {f"test_{check_id}"})
    if part in ("PASS", "WARN", "UNKNOWN"):
        kind = {"PASS": {"PASS", "INFO"}, "WARN": {"WARN", "FAIL"}, "UNKNOWN": {"UNKNOWN", "SKIP"}}[part]
        return replace(found, outcomes={**found.outcomes, check_id: found.outcomes[check_id] - kind})
    return replace(found, **{part: getattr(found, part) - {check_id}})


@pytest.mark.parametrize(
    "part",
    [
        *("title", "what", "why", "remedy", "source", "tags", "level"),
        *("threshold source", "threshold unit", "threshold bounds"),
        *("registration", "short file", "test file", "PASS", "WARN", "UNKNOWN", "runbook", "catalogue"),
    ],
)
def test_an_element_taken_away_is_noticed(found, part):
    check_id = "row_remap"
    assert found.registered[check_id].thresholds
    noticed = [gap for gap in gaps(without(found, part, check_id)) if gap not in gaps(found)]
    assert len(noticed) == 1
    assert noticed[0].startswith(f"{check_id}: ")
