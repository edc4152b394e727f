"""The node package: one file, the same bytes every time, with the exit status that the boot unit relies on."""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile

import pytest

from flightline.node_package import contents
from flightline_node import inputs, selfcheck
from flightline_node.tell.logline import join, parse
from infra.node_package import package
from tools.nodepackage import LIBRARY, build, existing


def run(path, *arguments):
    # -I: nothing of this environment, as on a node.
    return subprocess.run(
        [sys.executable, "-I", str(path), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("package") / "flightline-node.pyz")


def test_the_same_source_gives_the_same_bytes(tmp_path):
    copy = tmp_path / "elsewhere" / "flightline_node"
    shutil.copytree(LIBRARY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert contents(copy) == contents(LIBRARY)
    (copy / "model.py").write_text("")
    assert contents(copy) != contents(LIBRARY)


def test_it_holds_the_library_and_nothing_else(built):
    with zipfile.ZipFile(built.path) as archive:
        names = archive.namelist()
    assert {"__main__.py", "flightline_node/node.py", "flightline_node/judge/checks/xid.py"} <= set(names)
    assert all(name == "__main__.py" or name.startswith("flightline_node/") for name in names)
    assert not [name for name in names if "__pycache__" in name]


def test_a_machine_without_the_hardware_is_a_no_go(built, tmp_path):
    """This machine has no eight H100: the real tools are asked, and what is missing is never a pass."""
    record, log = tmp_path / "record.json", tmp_path / "records.jsonl"
    done = run(
        built.path, "check", "--instance-type", "p5.48xlarge", "--instance-id", "i-0123456789abcdef0", "--run", "boot-1",
        "--record", str(record), "--log", str(log),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    kept = json.loads(record.read_text())
    assert (kept["verdict"], kept["instance_id"]) == ("no-go", "i-0123456789abcdef0")
    pieces = [parse(line) for line in log.read_text().splitlines()]
    assert {piece.run for piece in pieces} == {"boot-1"}
    assert join([one for one in pieces if one]) == kept
    assert "no-go" in done.stdout


def test_what_is_skipped_and_expected_reaches_the_judgement(built, tmp_path):
    record, given = tmp_path / "record.json", tmp_path / "node.json"
    named = {"instance_type": "p5.48xlarge", "skip": ["swap", "hugepages"], "expected": {"efa_count": 0}}
    given.write_text(json.dumps({**inputs.defaults(), **named}))
    run(built.path, "check", "--settings", str(given), "--record", str(record))
    findings = {finding["check"]: finding for finding in json.loads(record.read_text())["findings"]}
    assert {findings["swap"]["status"], findings["hugepages"]["status"]} == {"SKIP"}
    assert findings["efa_count"]["status"] != "FAIL"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--instance-type", "h100"], "unknown instance type"),
        (["--settings", "/nowhere/node.json", "--instance-type", "p5.48xlarge"], "run playbooks/site.yml"),
        (["--instance-type", "p5.48xlarge", "--record", "/proc/nowhere/record"], "a place for the results"),
    ],
)
def test_a_run_that_cannot_be_is_neither_go_nor_no_go(built, arguments, says):
    done = run(built.path, "check", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_of_the_library_is_not_a_no_go(monkeypatch, capsys):
    monkeypatch.setattr(selfcheck, "run", lambda *_: 1 / 0)
    assert selfcheck.check(["--instance-type", "p5.48xlarge"]) == 2
    assert "the node was not judged" in capsys.readouterr().err


def test_a_go_is_exit_status_0(monkeypatch):
    record = {"host": "gpu-01", "verdict": "go", "level": "quick", "seconds": 1.0, "findings": []}
    monkeypatch.setattr(selfcheck, "run", lambda *_: record)
    assert selfcheck.check(["--instance-type", "p5.48xlarge"]) == 0


def test_the_stack_takes_its_own_build_or_the_one_it_names(built, tmp_path):
    own = package(None)
    assert own.path.name == f"flightline-node-{own.sha256}.pyz"
    assert own.path.read_bytes().startswith(b"#!")
    assert own.sha256 == hashlib.sha256(own.path.read_bytes()).hexdigest()
    assert package(str(built.path)) == built
    with pytest.raises(ValueError, match="make one"):
        package(str(tmp_path / "missing.pyz"))
    (tmp_path / "text.pyz").write_text("#!/bin/sh\n")
    with pytest.raises(ValueError, match="not a node package"):
        existing(tmp_path / "text.pyz")


def test_it_says_what_it_can_do(built):
    asked, wrong = run(built.path, "--help"), run(built.path, "chekc")
    assert asked.returncode == 0 and "example: python3 flightline-node.pyz check" in asked.stdout
    assert wrong.returncode == 2 and "usage:" in wrong.stderr
