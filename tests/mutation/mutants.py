"""Changes to a check's judging code, one at a time, each a small lie a test should notice."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

OPPOSITES = ((ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {**dict(OPPOSITES), **{other: one for one, other in OPPOSITES}}
SHIFTED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
BLOCKING_CALLS = {name: f"{name.upper()} answered as PASS" for name in ("fail", "unknown", "warn")}
CONTEXTS = ("context", "one")
"""What a finding is asked of: the check's context, or that of one device."""


@dataclass(frozen=True)
class Mutant:
    """One changed source: kind of change, the line, and the whole module's new text."""

    kind: str
    line: int
    was: str
    source: str


Change = Callable[[Any], None]


def _compare(node: ast.Compare) -> Iterator[tuple[str, Change]]:
    table = (("comparison flipped", FLIPPED), ("off by one", SHIFTED))
    for kind, choices in table:
        swap = choices.get(type(node.ops[0]))
        if swap is not None:

            def swapped(found: Any, swap: type[ast.cmpop] = swap) -> None:
                found.ops[0] = swap()

            yield kind, swapped


def _call(node: ast.Call) -> Iterator[tuple[str, Change]]:
    asked = ast.unparse(node.func).split(".")
    if len(asked) == 2 and asked[0] in CONTEXTS and asked[1] in BLOCKING_CALLS:

        def answer_ok(found: Any) -> None:
            found.func.attr = "ok"
            del found.args[1:]  # the remedy
            found.keywords = [keyword for keyword in found.keywords if keyword.arg != "remedy"]

        yield BLOCKING_CALLS[asked[1]], answer_ok
    if isinstance(node.func, ast.Name) and node.func.id == "Threshold" and isinstance(node.args[1], ast.Constant):

        def one_more(found: Any) -> None:
            found.args[1] = ast.Constant(found.args[1].value + 1)

        yield "threshold off by one", one_more


def _changes(node: ast.expr | ast.If) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Compare):
        yield from _compare(node)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, (ast.If, ast.IfExp)):
        yield "condition negated", lambda found: setattr(found, "test", ast.UnaryOp(ast.Not(), found.test))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and/or exchanged", lambda found: setattr(found, "op", other())


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a check's source, in the order of its lines."""
    tree = ast.parse(source)
    lines, found = source.splitlines(), []
    nodes = [(number, one) for number, one in enumerate(ast.walk(tree)) if isinstance(one, (ast.expr, ast.If))]
    for number, node in nodes:
        for kind, change in _changes(node):
            changed = copy.deepcopy(tree)
            change(next(twin for index, twin in enumerate(ast.walk(changed)) if index == number))
            text = ast.unparse(ast.fix_missing_locations(changed))
            found.append(Mutant(kind, node.lineno, lines[node.lineno - 1].strip(), text))
    return sorted(found, key=lambda mutant: (mutant.line, mutant.kind))
