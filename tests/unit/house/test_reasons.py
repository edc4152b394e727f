"""A reason is a name that others match: declared beside its check, used there, and known wherever it is matched."""

import ast
import re
from pathlib import Path

import pytest

from flightline.fleet.cause_table import CAUSES
from flightline.record import reasons as control
from flightline_node.judge import checks, reasons, skips
from flightline_node.judge.checks import CHECKS, reasons_of
from flightline_node.model import Reason, SkipReason
from tests.gatekeeper import CHECKS_DIR

COMMON = {one.id for one in reasons.COMMON}
SKIPS = {one.id for one in vars(skips).values() if isinstance(one, SkipReason)}


def own(check: str) -> set[str]:
    """The reasons of a check's findings: its own, and those that the control side makes."""
    made = {one.id for one in reasons_of(check)} if check in CHECKS else set()
    return (
        made
        | {one.id for one in control.OF_CHECK.get(check, ())}
        | ({"differs"} if check.startswith("uniform") else set())
    )


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_s_reasons_are_well_formed_and_told_apart(check):
    found = reasons_of(check)
    assert len({one.id for one in found}) == len(found)
    assert not {one.id for one in found} & (COMMON | SKIPS), "a reason that all checks have is in judge/reasons.py"
    for one in found:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", one.id) and one.says and not one.says.endswith("."), one


@pytest.mark.parametrize("file", sorted(CHECKS_DIR.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_a_reason_that_is_declared_is_given(file: Path):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    declared = [name for name, value in vars(getattr(checks, file.stem)).items() if isinstance(value, Reason)]
    assert [name for name in declared if name not in names] == []


def test_what_the_causes_match_is_what_the_checks_say():
    matched = {
        (check, reason)
        for cause in CAUSES
        for says in (*cause.roots, *(effect.says for effect in cause.effects))
        for check in says.checks or ("*",)
        for reason in says.reasons
    }
    assert len(matched) > 60
    every = {*COMMON}.union(*(own(check) for check in CHECKS))
    unknown = {
        (check, reason)
        for check, reason in matched
        if reason.partition(".")[0] not in (every if check == "*" else own(check) | COMMON)
    }
    of_several = {
        (check, reason) for check, reason in unknown if any((other, reason) in matched - unknown for other in CHECKS)
    }
    assert unknown - of_several == set()
