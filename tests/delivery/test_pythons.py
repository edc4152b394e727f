"""The node library on every Python that a node may have: it imports, probes, and judges as this one does, byte by byte."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pythons
from tests.corpus.cases import load
from tests.harness import NOW
from tools import nodepackage

EVERY = 30
"""Every 30th of the corpus's cases, of every family and most parsers."""

JUDGE = """\
import json, pathlib, sys
from datetime import datetime
from flightline_node import settings
from flightline_node.judge import judgement
from flightline_node.know.expected import resolve
from flightline_node.read import bundle
place = pathlib.Path(sys.argv[1])
now = datetime.strptime(sys.argv[2], "%Y-%m-%dT%H:%M:%S%z")
site = settings.build(level="deep")
for case in json.loads((place / "cases.json").read_text(encoding="utf-8")):
    expected = resolve(case["instance_type"], case["expected"])
    answer = judgement.judge(bundle.load(place / case["id"]), expected, site, now, required=False)
    text = judgement.to_json(answer, case["instance_type"])
    print(case["id"], json.dumps(text, sort_keys=True))
"""
IMPORT = """\
import importlib, pkgutil, sys, warnings
import flightline_node
warnings.simplefilter("error")
for found in pkgutil.walk_packages(flightline_node.__path__, "flightline_node."):
    if not found.name.endswith("__main__"):  # it would run
        importlib.import_module(found.name)
foreign = {name.split(".")[0] for name, module in sys.modules.items() if "site-packages" in str(getattr(module, "__file__", ""))}
assert not foreign, foreign
"""


def run(python: str, *argv: object) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env.update(PYTHONPATH=str(nodepackage.LIBRARY.parent), LC_ALL="C.UTF-8")
    command = [python, "-S", *map(str, argv)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module", params=pythons.VERSIONS)
def python(request):
    found = pythons.find(request.param)
    if not found:
        pytest.skip(f"no Python {request.param} on this machine; {pythons.HOW.format(request.param)}")
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A part of the corpus as files, and what this Python answers."""
    place = tmp_path_factory.mktemp("corpus")
    cases = load()[::EVERY]
    listed = []
    for number, case in enumerate(cases):
        name = f"{number:04d}"
        (place / name).mkdir()
        for file, content in case.material().items():
            (place / name / file).write_bytes(content)
        listed.append({"id": name, "instance_type": case.instance_type, "expected": dict(case.expected)})
    (place / "cases.json").write_text(json.dumps(listed, default=str), encoding="utf-8")
    answer = run(sys.executable, "-c", JUDGE, place, NOW.strftime("%Y-%m-%dT%H:%M:%S+0000"))
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == len(cases) > 50
    return place, answer.stdout


def test_every_module_imports_without_a_warning_and_nothing_foreign(python):
    done = run(python, "-c", IMPORT)
    assert done.returncode == 0, done.stderr


def test_the_corpus_is_judged_the_same(python, corpus):
    place, wanted = corpus
    done = run(python, "-c", JUDGE, place, NOW.strftime("%Y-%m-%dT%H:%M:%S+0000"))
    assert done.returncode == 0, done.stderr
    differ = [a[:200] for a, b in zip(wanted.splitlines(), done.stdout.splitlines(), strict=True) if a != b]
    assert not differ


def test_the_node_package_probes_this_machine(python, tmp_path):
    package = nodepackage.build(tmp_path / "flightline-node.pyz")
    record = tmp_path / "record.json"
    done = run(python, package.path, "check", "--instance-type", "p5.48xlarge", "--record", record)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr  # no GPU is here: no-go
    kept = json.loads(Path(record).read_text())
    assert kept["verdict"] == "no-go" and not any("internal error" in one["message"] for one in kept["findings"])
