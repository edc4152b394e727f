"""What every check must have, as data: `gaps` names what a check lacks.

Loaded as a pytest plugin (`-p tests.gatekeeper`) this module also records which answers each test file draws from each
check, into the file named by FLIGHTLINE_OUTCOMES.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flightline_node.judge import judgement as judging
from flightline_node.model import LEVELS, Check, Status

ROOT = Path(__file__).parents[1]
CHECKS_DIR = ROOT / "module_utils" / "flightline_node" / "judge" / "checks"
TESTS_DIR = ROOT / "tests" / "unit" / "checks"
OUTCOMES = "FLIGHTLINE_OUTCOMES"
NOT_CHECKS = frozenset({"__init__", "common", "neuron_common"})

MAX_LINES = 140
LONGER: Mapping[str, int] = {
    "dcgm_diag": 150,
    "gpu_bandwidth": 170,
    "gpu_lost": 165,
    "kernel_errors": 200,
    "nccl_transport": 200,
    "nvlink_errors": 145,
    "xid": 230,
}
"""Checks allowed to be longer: they weigh several sources (lines in doubt, matrices of GPU pairs, a job's last words)."""

INFORM_ONLY = frozenset({"efa_counters"})
"""Checks that by design never warn or fail on a value: one sample proves nothing."""

GO = frozenset({"PASS", "INFO"})
FIRES = frozenset({"WARN", "FAIL"})
NO_ANSWER = frozenset({"UNKNOWN"})


@dataclass(frozen=True)
class House:
    """Everything outside the checks that must know of them: ids, file names (without suffix), headings, answers."""

    registered: Mapping[str, Check]
    check_files: Mapping[str, int]
    test_files: frozenset[str]
    catalogue: frozenset[str]
    outcomes: Mapping[str, frozenset[str]]


def headings(page: Path) -> frozenset[str]:
    """The second-level headings of a Markdown page."""
    return frozenset(line[3:].strip() for line in page.read_text().splitlines() if line.startswith("## "))


def house(registered: Mapping[str, Check], outcomes: Mapping[str, frozenset[str]]) -> House:
    """The house as it stands on disk."""
    return House(
        registered,
        {path.stem: len(path.read_text().splitlines()) for path in CHECKS_DIR.glob("*.py")},
        frozenset(path.stem for path in TESTS_DIR.glob("test_*.py")),
        headings(ROOT / "docs" / "checks.md"),
        outcomes,
    )


def _texts(check: Check) -> Iterator[str]:
    for name in ("title", "what", "why", "remedy", "out_of_service", "source"):
        if not getattr(check, name).strip():
            yield f"no {name}"
    if not (check.evaluate.__doc__ or "").strip():
        yield "no word on how it judges"
    if not check.tags or not all(check.tags):
        yield "no tag"
    if check.level not in LEVELS:
        yield f"unknown level {check.level}"


def _thresholds(check: Check) -> Iterator[str]:
    for threshold in check.thresholds:
        for name in ("unit", "what", "source"):
            if not getattr(threshold, name).strip():
                yield f"threshold {threshold.name} without {name}"
        if not threshold.minimum <= threshold.default <= threshold.maximum:
            yield f"threshold {threshold.name}: default outside its bounds"


def _tested(check_id: str, outcomes: frozenset[str]) -> Iterator[str]:
    if not outcomes & GO:
        yield "its tests draw no PASS or INFO"
    if not outcomes & FIRES and check_id not in INFORM_ONLY:
        yield "its tests draw no WARN or FAIL"
    if not outcomes & NO_ANSWER:
        yield "its tests draw no UNKNOWN"


def _gaps(check_id: str, found: House) -> Iterator[str]:
    check = found.registered.get(check_id)
    if check is None:
        yield "not registered"
        return
    if check.id != check_id:
        yield f"registered as {check_id}, its id is {check.id}"
    yield from _texts(check)
    yield from _thresholds(check)
    lines, most = found.check_files.get(check_id), LONGER.get(check_id, MAX_LINES)
    if lines is None:
        yield "no file of its name"
    elif lines > most:
        yield f"{lines} lines, at most {most}"
    if f"test_{check_id}" not in found.test_files:
        yield "no test file of its name"
    yield from _tested(check_id, found.outcomes.get(check_id, frozenset()))
    if check_id not in found.catalogue:
        yield "no heading in catalogue"


def gaps(found: House) -> list[str]:
    """`<check>: <what it lacks>`, for every check that has a file or is registered."""
    ids = sorted((set(found.check_files) - NOT_CHECKS) | set(found.registered))
    return [f"{check_id}: {gap}" for check_id in ids for gap in _gaps(check_id, found)]


_seen: dict[str, set[str]] = {}


def _record(findings: list[Any]) -> None:
    """Keep the answers a check gives in the test file that is named after it."""
    test = Path(os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[0]).stem
    for finding in findings:
        if test == f"test_{finding.check}":
            _seen.setdefault(finding.check, set()).add(str(finding.status))


def pytest_configure(config: Any) -> None:
    """Listen to every judgement of the run."""
    if OUTCOMES not in os.environ:
        return
    original = judging._judge_check

    def listening(*arguments: Any) -> list[Any]:
        findings = original(*arguments)
        _record(findings)
        return findings

    judging._judge_check = listening


def pytest_sessionfinish(session: Any) -> None:
    """Write down what was heard."""
    if OUTCOMES in os.environ:
        Path(os.environ[OUTCOMES]).write_text(json.dumps({check: sorted(seen) for check, seen in _seen.items()}))


def read_outcomes(path: Path) -> dict[str, frozenset[str]]:
    """What a recorded run heard."""
    known = {str(status) for status in Status}
    return {check: frozenset(seen) & known for check, seen in json.loads(path.read_text()).items()}
