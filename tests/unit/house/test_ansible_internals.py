"""What the plugins use of Ansible beyond its public names is what docs/decisions/ansible-internals.md defends, and is there."""

import ast
import re
from pathlib import Path

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.playbook import Playbook
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "docs" / "decisions" / "ansible-internals.md"
PLUGINS = sorted(path for path in (ROOT / "plugins").rglob("*.py") if not path.is_symlink())
PLUGINS.append(ROOT / "flightline" / "run" / "exit_status.py")


class Action(ActionBase):
    def run(self, tmp=None, task_vars=None):
        """Nothing."""


def used(path: Path) -> set[str]:
    """Names with one leading underscore that a file takes from an object and does not define itself."""
    tree = ast.parse(path.read_text())
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    seen = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)]
    own |= {node.attr for node in seen if isinstance(node.ctx, ast.Store)}
    return {node.attr for node in seen} - own


def defended() -> set[str]:
    return {name for line in RECORD.read_text().splitlines() if line.startswith("| `_") for name in
            re.findall(r"`(_\w+)", line.split("|")[1])}  # fmt: skip


def test_every_private_name_is_defended_and_none_in_vain():
    assert set().union(*map(used, PLUGINS)) == defended()


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (ActionBase, ["_execute_module", "_low_level_execute_command", "_compute_environment_string"]),
        (Action(None, None, None, None, None, None), ["_task", "_connection", "_templar"]),
        (CallbackBase(), ["_display"]),
        (InventoryManager(None, sources="localhost,", parse=False), ["_subset", "_sources", "_inventory"]),
        (Playbook(None), ["_file_name"]),
    ],
)
def test_ansible_still_has_them(owner, names):
    assert [name for name in names if not hasattr(owner, name)] == []
