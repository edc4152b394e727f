"""What every check must have, as data: `gaps` names what a check lacks, `undrawn` what its own tests never saw."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from flightline_node.model import LEVELS, Check, Status

ROOT = Path(__file__).parents[1]
CHECKS_DIR = ROOT / "module_utils" / "flightline_node" / "judge" / "checks"
TESTS_DIR = ROOT / "tests" / "unit" / "checks"
NOT_CHECKS = frozenset({"__init__", "common", "neuron_common"})

MAX_LINES = 145
LONGER: Mapping[str, int] = {
    "dcgm_diag": 185,
    "fabric_state": 160,
    "fabric_manager": 150,
    "gpu_bandwidth": 205,
    "gpu_lost": 170,
    "kernel_errors": 245,
    "lustre": 200,
    "nccl_busbw": 235,
    "nccl_transport": 250,
    "nvlink_errors": 155,
    "xid": 255,
}
"""Checks allowed to be longer: they weigh several sources (lines in doubt, matrices of GPU pairs, a job's last words)."""

INFORM_ONLY = frozenset({"efa_counters"})
"""Checks that by design never warn or fail on a value: one sample proves nothing."""

DRAWN = (
    frozenset({Status.PASS, Status.INFO}),
    frozenset({Status.WARN, Status.FAIL}),
    frozenset({Status.UNKNOWN}),
)
"""Of each of these one: a check that its tests never saw pass, fire and stay without an answer is not tested."""


@dataclass(frozen=True)
class House:
    """Everything outside the checks that must know of them: ids, file names (without suffix), headings."""

    registered: Mapping[str, Check]
    check_files: Mapping[str, int]
    test_files: frozenset[str]
    catalogue: frozenset[str]


def headings(page: Path) -> frozenset[str]:
    """The second-level headings of a Markdown page."""
    return frozenset(line[3:].strip() for line in page.read_text().splitlines() if line.startswith("## "))


def house(registered: Mapping[str, Check]) -> House:
    """The house as it stands on disk."""
    return House(
        registered,
        {path.stem: len(path.read_text().splitlines()) for path in CHECKS_DIR.glob("*.py")},
        frozenset(path.stem for path in TESTS_DIR.glob("test_*.py")),
        headings(ROOT / "docs" / "checks.md"),
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


def undrawn(check_id: str, answers: Set[Status]) -> list[str]:
    """The answers that a check's test file must draw from it and did not."""
    wanted = [one for one in DRAWN if not (check_id in INFORM_ONLY and Status.FAIL in one)]
    return [" or ".join(sorted(map(str, one))) for one in wanted if not one & answers]


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
    if check_id not in found.catalogue:
        yield "no heading in catalogue"


def gaps(found: House) -> list[str]:
    """`<check>: <what it lacks>`, for every check that has a file or is registered."""
    ids = sorted((set(found.check_files) - NOT_CHECKS) | set(found.registered))
    return [f"{check_id}: {gap}" for check_id in ids for gap in _gaps(check_id, found)]
