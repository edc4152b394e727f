"""The node library must reach the node whole: static imports, complete registries, old Pythons."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flightline.demo import prepare
from flightline_node.checks import CHECKS
from flightline_node.model import LEVELS
from flightline_node.parsers import PARSERS

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "module_utils" / "flightline_node"
HELPERS = {"__init__", "common"}
OLDEST_PYTHON = (3, 8)


def test_every_check_file_is_in_the_catalogue_under_its_own_name():
    files = {path.stem for path in (LIBRARY / "checks").glob("*.py")} - HELPERS
    helpers = {name for name in files if "CHECK = Check(" not in (LIBRARY / "checks" / f"{name}.py").read_text()}
    assert files - helpers == set(CHECKS), "a check file that is not registered never runs"


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


def _old_pythons() -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    wanted = ["3.8", "3.9", "3.10", "3.12", "3.13"]
    found = [str(next(iter(sorted(pyenv.glob(f"{v}.*/bin/python"))), shutil.which(f"python{v}") or "")) for v in wanted]
    return [path for path in found if path and path != "."]


@pytest.mark.skipif(not _old_pythons(), reason="no other Python of 3.8 to 3.13 on this machine")
@pytest.mark.parametrize("python", _old_pythons() or ["none"])
def test_other_pythons_judge_the_same(python, tmp_path):
    (tmp_path / "meminfo.txt").write_text("MemTotal: 1000 kB\nMemAvailable: 900 kB\n")
    code = (
        "import json, sys, pathlib; from datetime import datetime, timezone\n"
        "from flightline_node import bundle, judge, settings, expected\n"
        "j = judge.judge(bundle.load(pathlib.Path(sys.argv[1])), expected.resolve('p5.48xlarge'), settings.build(),\n"
        "    datetime(2026, 11, 21, tzinfo=timezone.utc), required=True)\n"
        "print(json.dumps(judge.to_json(j, 'p5.48xlarge'), sort_keys=True))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "module_utils")}
    outputs = {
        subprocess.run([exe, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True, check=True).stdout
        for exe in (python, sys.executable)
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop())["verdict"] == "no-go"


def test_ansible_ships_every_check_and_check_mode_gives_the_same_answer(tmp_path):
    """AnsiballZ follows static imports only: a check that is not imported by name stays behind."""
    # A simulated node answers alike twice; a live machine's load and processes change between two runs.
    prepare({"n": {"demo_dir": tmp_path / "n", "instance_type": "p5.48xlarge", "demo_faults": ["gpu_fallen_off_bus"]}})
    node = f"root: {tmp_path}/n/root, tool_path: [{tmp_path}/n/tools]"
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        + "".join(
            f"    - flightline_node: {{instance_type: p5.48xlarge, {node}}}\n"
            f"      check_mode: {mode}\n      register: answer\n"
            f"    - copy: {{content: '{{{{ answer | to_json }}}}', dest: {tmp_path}/{mode}.json}}\n"
            for mode in ("true", "false")
        )
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE")}
    env.update(ANSIBLE_LIBRARY=str(ROOT / "library"))
    env.update(ANSIBLE_MODULE_UTILS=str(ROOT / "module_utils"), ANSIBLE_LOCAL_TEMP=str(tmp_path / "local"))
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local"]
    command += ["-e", f"ansible_python_interpreter={sys.executable}", str(play)]
    run = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    answers = [json.loads((tmp_path / f"{mode}.json").read_text()) for mode in ("true", "false")]
    found = [{f["check"]: f["status"] for f in answer["record"]["findings"]} for answer in answers]
    assert set(found[0]) == {check.id for check in CHECKS.values() if check.level == "quick"}
    assert found[0]["gpu_lost"] == "FAIL" and found[0] == found[1]
    assert not any(answer["changed"] for answer in answers)
