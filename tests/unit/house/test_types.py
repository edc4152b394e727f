"""The static types cover what the code calls: mypy takes a module that it does not read for Any, and says nothing."""

import importlib.util
import re
import subprocess
from pathlib import Path

import tomllib
from mypy import config_parser
from mypy.find_sources import create_source_list
from mypy.options import Options

ROOT = Path(__file__).parents[3]


def test_mypy_reads_every_part_of_the_providers_that_the_stack_uses():
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    read = {module for one in overrides if one.get("follow_imports") == "normal" for module in one["module"]}
    code = "\n".join(path.read_text() for path in (ROOT / "infra").rglob("*.py"))
    home = Path(str(importlib.util.find_spec("pulumi_aws").origin)).parent
    named = set(re.findall(r"\baws\.([a-z_][a-z0-9_]*)", code))
    used = {f"pulumi_aws.{name}.*" for name in named if (home / name).is_dir()}
    used |= {f"pulumi_aws.{name}" for name in named if (home / f"{name}.py").is_file()}
    used |= {f"{name}.*" for name in re.findall(r"from (pulumi_kubernetes\.[\w.]+) import", code)}
    assert "pulumi_aws.ec2.*" in used and "pulumi_kubernetes.helm.v3.*" in used
    assert used - read == set()


def test_mypy_checks_every_python_file(monkeypatch):
    monkeypatch.chdir(ROOT)
    options = Options()
    config_parser.parse_config_file(options, lambda: None, "pyproject.toml")
    checked = {(ROOT / str(source.path)).resolve() for source in create_source_list(options.files or [], options)}
    tracked = subprocess.check_output(["git", "ls-files", "-z"], text=True).split("\0")
    files = [ROOT / name for name in tracked if name and Path(name).is_file()]
    python = {path for path in files if path.suffix == ".py" or re.match(rb"#!.*python", path.read_bytes()[:80])}
    templates = {path for path in python if path.suffix == ".j2"}
    assert all(len(path.read_text().splitlines()) <= 30 for path in templates), "a program starts what is typed"
    python -= templates
    assert len(python) > 1400
    assert sorted(path.relative_to(ROOT).as_posix() for path in python if path.resolve() not in checked) == []
    tests = options.clone_for_module("tests.unit.house.test_types")
    assert tests.check_untyped_defs and tests.follow_imports == "normal", (
        "few tests have types: their bodies are read too"
    )
