"""A remedy is a row: its order, texts, schemas, ladder and docs follow, and nothing else is edited for a new one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flightline.fleet.checks import FLEET_CHECKS
from flightline.fleet.remedies import advice
from flightline.healing.plan.ladder import AUTOMATIC
from flightline_node.act.repair import CHANGING
from flightline_node.judge.checks import CHECKS
from flightline_node.know.remedies import EC2, NODE, REPLACE_INSTANCE
from flightline_node.model import Remedy, Status

ROOT = Path(__file__).parents[3]
TITLE, ADVICE = "Cut the node's power", "Drain the node, cut its power for a minute and judge it again."
ROW = f"""\
    POWER_CYCLE = RemedyRow(
        "POWER_CYCLE", 25, "{TITLE}", "{ADVICE}", rung=35, by=NODE, action="reboot", proof=BOOT
    )
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What each place says of a remedy that came by one row in a copy of the tree."""
    copy = tmp_path_factory.mktemp("copy")
    for folder in ("flightline", "tools", "module_utils/flightline_node"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    rows = copy / "module_utils/flightline_node/know/remedies.py"
    rows.write_text(rows.read_text().rstrip("\n") + "\n" + ROW)
    homes = os.pathsep.join(map(str, (copy, copy / "module_utils", ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.house.new_remedy", "POWER_CYCLE", str(copy)],
        cwd=copy, env={**os.environ, "PYTHONPATH": homes, "COLUMNS": "200"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("place", ["terminal", "html", "json", "alert", "judge"])
def test_a_new_remedy_s_advice_stands_in(said, place):
    assert "POWER_CYCLE" in said[place] and ADVICE in said[place].replace("&#39;", "'")


def test_a_new_remedy_has_its_place_everywhere_else(said):
    assert said["first"] == "POWER_CYCLE", "its rank is above RESET_GPU's"
    assert TITLE in said["html"].replace("&#39;", "'")
    assert "POWER_CYCLE" in said["junit"] and "POWER_CYCLE" in said["function"]
    assert "POWER_CYCLE, and back only when" in said["plan"], "its rung is above RESET_GPU's"
    assert said["taken"] == ["reboot"]
    assert f"| POWER_CYCLE | {ADVICE} | 4 | healing, on the node |" in said["docs"]


def test_rows_are_told_apart_and_can_be_taken():
    rows = [remedy.row for remedy in Remedy]
    assert [remedy.name for remedy in Remedy] == [row.word for row in rows]
    assert len({row.rank for row in rows}) == len(rows)
    rungs = [row.rung for row in rows if row.rung]
    assert len(set(rungs)) == len(rungs)
    assert {row.action for row in rows if row.by == NODE} <= CHANGING
    assert {row.action for row in rows if row.by == EC2} == {REPLACE_INSTANCE}
    assert {row.word for row in rows if row.action} == {str(remedy) for remedy in AUTOMATIC}


def test_rewording_the_docs_of_a_check_that_says_what_to_do_changes_no_advice(monkeypatch):
    does = [name for known in (CHECKS, FLEET_CHECKS) for name, check in known.items() if check.do is not None]
    before = {name: advice(name, Remedy.FIX_CONFIG, Status.FAIL) for name in does}
    assert len(before) > 50
    for check in (*CHECKS.values(), *FLEET_CHECKS.values()):
        monkeypatch.setitem(check.__dict__, "remedy", "Reworded: reboot. Do what it says; else replace it.")
    assert {name: advice(name, Remedy.FIX_CONFIG, Status.FAIL) for name in before} == before
