"""One shape of an error that a person reads: *saw ..., wanted ..., do ...*.

It walks the sources, because most errors need a broken machine to be raised. What only passes another error on
(`f"{path}: {error}"`) says nothing itself; what a host module says has the shape by its parts (`Problem`).
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flightline_host.host import Problem

ROOT = Path(__file__).parents[3]
PRODUCT = ("flightline", "flightline_pulumi", "infra", "library", "plugins", "module_utils", "roles", "tools")
FOR_PEOPLE = {
    "AnsibleActionFail", "AnsibleFilterError", "BadParameter", "BaselineError", "CannotRunError", "ClickException",
    "FabricError", "LaunchError", "LinkError", "MarkerError", "PreloadError", "PriceError", "RunError", "SecretError",
    "SettingsError", "StoreError", "UsageError", "fail_json",
}  # fmt: skip
"""Exceptions whose text is the last that a command, a play or the stack's program prints."""
SHAPE = re.compile(r"\b(saw|seen)\b.*\bwanted\b", re.I | re.S)
PARTS = {
    "module_utils/flightline_node/know/expected.py": "its converters say what was wanted; _coerce puts the value before it",
}
NOT_ERRORS = re.compile(r"^interrupted before")
"""A person ended the run: nothing was seen that should be otherwise."""


def text(node: ast.expr) -> str | None:
    """A message's own words; {} for what it quotes. None for a name: the message was made elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else _quoted(part) for part in node.values)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "explain":
        return "what AWS said"
    if isinstance(node, ast.BinOp):
        return f"{text(node.left) or '{}'}{text(node.right) or '{}'}"
    return None


def _quoted(part: ast.expr) -> str:
    value = part.value if isinstance(part, ast.FormattedValue) else part
    made = isinstance(value, ast.Call) and ast.unparse(value.func) == "unknown"  # flightline_node/suggest.py
    return "saw {}, wanted {}" if made else "{}"


def raised(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        kind = ast.unparse(call.func).rpartition(".")[2]
        if isinstance(node, ast.Raise) or kind == "fail_json":
            words = [*call.args[:1], *(word.value for word in call.keywords if word.arg in ("msg", "message"))]
            for message in filter(None, map(text, words)):
                yield kind, call.lineno, message


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def told_twice(tree: ast.Module) -> Iterator[str]:
    """Handlers that put *saw* before an error that says it already."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name):
        kinds = {ast.unparse(one) for one in ast.walk(handler.type or handler) if isinstance(one, ast.Name)}
        for node in ast.walk(handler) if kinds <= FOR_PEOPLE else ():
            if isinstance(node, ast.JoinedStr) and re.match(rf"f.saw {{{handler.name}}}", ast.unparse(node)):
                yield ast.unparse(node)


def wrong(path: Path) -> list[str]:
    """Errors of a file that have another shape."""
    found = raised(tree_of(path))
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    return [
        f"{name}:{line}: {message}"
        for kind, line, message in found
        if kind in FOR_PEOPLE and re.search(r"[a-z]{3}", message) and not NOT_ERRORS.match(message)
        if not SHAPE.search(message) and not (name in PARTS and len(message) < 30)
    ]


def sources() -> list[Path]:
    return [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if not path.is_symlink()]


def test_every_error_says_what_was_seen_and_what_was_wanted():
    said = [one for path in sources() for one in raised(tree_of(path))]
    assert sum(kind in FOR_PEOPLE for kind, _, _ in said) > 100
    assert [line for path in sources() for line in wrong(path)] == []


def test_an_error_that_has_the_shape_is_passed_on_as_it_is():
    found = [said for path in sources() for said in told_twice(tree_of(path))]
    assert found == []
    bad = "try: x()\nexcept LaunchError as error: raise CannotRunError(f'saw {error}, wanted y') from error"
    assert len(list(told_twice(ast.parse(bad)))) == 1


def refusals() -> Iterator[tuple[str, str]]:
    """What the assertions of roles and playbooks say."""
    for path in sorted([*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")]):
        for task in every_task(yaml.safe_load(path.read_text(encoding="utf-8")) or []):
            for module, argument in (("assert", "fail_msg"), ("fail", "msg")):
                given = task.get(f"ansible.builtin.{module}")
                if isinstance(given, dict) and argument in given:
                    yield str(path.relative_to(ROOT)), str(given[argument])


def every_task(given: list[dict]) -> Iterator[dict]:
    for one in given:
        yield one
        for inner in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
            yield from every_task(one.get(inner) or [])


def test_what_a_role_refuses_says_the_same():
    found = list(refusals())
    assert len(found) > 15
    own = [
        (path, said) for path, said in found if re.search(r"[a-z]{3}", re.sub(r"{[{%].*?[%}]}", "", said, flags=re.S))
    ]
    assert [(path, said) for path, said in own if not SHAPE.search(said)] == []


def test_a_module_s_problem_has_the_shape_by_its_parts():
    assert str(Problem("no file x", "one", "make it")) == "saw: no file x; wanted: one; do: make it"


@pytest.mark.parametrize("line", ['raise StoreError("no such run")', 'module.fail_json(msg=f"{x} is bad")'])
def test_another_shape_would_be_seen(tmp_path, line):
    (tmp_path / "one.py").write_text(line)
    assert len(wrong(tmp_path / "one.py")) == 1
    (tmp_path / "two.py").write_text(
        line.replace("no such", "saw no such run, wanted a").replace(" is bad", ": saw, wanted")
    )
    assert wrong(tmp_path / "two.py") == []
