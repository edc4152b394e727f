"""One meaning per class name: a name that stands twice makes a reader guess which of the two is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRODUCT = ("flightline", "infra", "library", "module_utils", "plugins", "roles", "tools", "training")
DEMANDED = {"ActionModule", "CallbackModule", "FilterModule"}
"""Ansible finds a plugin of each kind by this name of its class."""


def places(files: list[Path]) -> dict[str, list[str]]:
    """Where each name of a class stands."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(f"{path}:{node.lineno}")
    return found


def sources() -> list[Path]:
    return [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if not path.is_symlink()]


def test_no_class_name_of_the_product_stands_twice():
    found = places(sources())
    assert len(found) > 400
    assert {name: where for name, where in found.items() if len(where) > 1 and name not in DEMANDED} == {}
    assert all(len(found[name]) > 1 for name in DEMANDED), "an exception that nothing needs"


def test_a_second_meaning_would_be_seen(tmp_path):
    (tmp_path / "one.py").write_text("class Answer:\n    pass\n")
    (tmp_path / "two.py").write_text("def make():\n    class _Answer:\n        pass\n")
    assert [len(where) for where in places(sorted(tmp_path.glob("*.py"))).values()] == [2]
