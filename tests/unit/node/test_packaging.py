"""The node library must reach the node whole: static imports, complete registries, old Pythons."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flightline.demo import prepare
from flightline_node.judge.checks import CHECKS
from flightline_node.model import LEVELS
from flightline_node.read.parsers import PARSERS

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "module_utils" / "flightline_node"
HELPERS = {"__init__", "common"}
OLDEST_PYTHON = (3, 8)


def test_every_check_file_is_in_the_catalogue_under_its_name_or_an_earlier_one():
    paths = (LIBRARY / "judge" / "checks").glob("*.py")
    files = {path.stem for path in paths if "\nCHECK = " in path.read_text()} - HELPERS
    named = {name: check.id for check in CHECKS.values() for name in (check.id, *check.aliases)}
    assert sorted(named[file] for file in files) == sorted(CHECKS), "a check file that is not registered never runs"


def test_a_name_means_one_thing():
    """Two checks of one order have no order; a name that is also somebody's earlier one would be taken for either."""
    assert [count for count in Counter(check.order for check in CHECKS.values()).most_common(1) if count[1] > 1] == []
    for named in (
        [name for check in CHECKS.values() for name in (check.id, *check.aliases)],
        [f"{c.id}.{name}" for c in CHECKS.values() for t in c.thresholds for name in (t.name, *t.aliases)],
    ):
        assert [count for count in Counter(named).most_common(1) if count[1] > 1] == []


def test_checks_name_parsers_and_levels_that_exist():
    for check in CHECKS.values():
        assert {*check.needs, *check.needs_any, *check.wants} <= set(PARSERS), check.id
        assert check.needs or check.needs_any, f"{check.id} judges without looking"
        assert check.level in LEVELS
        assert all((check.title, check.what, check.why, check.remedy, check.source)), check.id
        assert all(t.source and t.unit is not None and t.what for t in check.thresholds), check.id


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.py")), ids=lambda path: str(path.relative_to(LIBRARY)))
def test_the_library_is_standard_library_and_relative_imports_only(path):
    tree = ast.parse(path.read_text(), feature_version=OLDEST_PYTHON)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        outside = [name for name in names if name.split(".")[0] not in sys.stdlib_module_names]
        assert not outside, f"{outside} would not be on the node"


def test_ansible_ships_every_check_and_check_mode_gives_the_same_answer(tmp_path):
    """AnsiballZ follows static imports only: a check that is not imported by name stays behind."""
    # A simulated node answers alike twice; a live machine's load and processes change between two runs.
    prepare({"n": {"demo_dir": tmp_path / "n", "instance_type": "p5.48xlarge", "demo_faults": ["gpu_fallen_off_bus"]}})
    node = f"root: {tmp_path}/n/root, tool_path: [{tmp_path}/n/tools]"
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        f"    - flightline_node: {{instance_type: p5.48xlarge, {node}}}\n      check_mode: true\n      register: dry\n"
        f"    - flightline_node: {{instance_type: p5.48xlarge, {node}}}\n      register: real\n"
        f"    - copy: {{content: '{{{{ [dry, real] | to_json }}}}', dest: {tmp_path}/answers.json}}\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE")}
    env.update(ANSIBLE_LIBRARY=str(ROOT / "library"))
    env.update(ANSIBLE_MODULE_UTILS=str(ROOT / "module_utils"), ANSIBLE_LOCAL_TEMP=str(tmp_path / "local"))
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local"]
    command += ["-e", f"ansible_python_interpreter={sys.executable}", str(play)]
    run = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    answers = json.loads((tmp_path / "answers.json").read_text())
    found = [{f["check"]: f["status"] for f in answer["record"]["findings"]} for answer in answers]
    assert set(found[0]) == {check.id for check in CHECKS.values() if check.level == "quick"}
    assert found[0]["gpu_lost"] == "FAIL" and found[0] == found[1]
    assert not any(answer["changed"] for answer in answers)
