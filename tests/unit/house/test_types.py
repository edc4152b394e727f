"""The static types cover what the code calls: mypy takes a module that it does not read for Any, and says nothing."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[3]


def test_mypy_reads_every_part_of_the_providers_that_the_stack_uses():
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    read = {module for one in overrides if one.get("follow_imports") == "normal" for module in one["module"]}
    code = "\n".join(path.read_text() for path in (ROOT / "infra").rglob("*.py"))
    home = Path(importlib.util.find_spec("pulumi_aws").origin).parent
    named = set(re.findall(r"\baws\.([a-z_][a-z0-9_]*)", code))
    used = {f"pulumi_aws.{name}.*" for name in named if (home / name).is_dir()}
    used |= {f"pulumi_aws.{name}" for name in named if (home / f"{name}.py").is_file()}
    used |= {f"{name}.*" for name in re.findall(r"from (pulumi_kubernetes\.[\w.]+) import", code)}
    assert "pulumi_aws.ec2.*" in used and "pulumi_kubernetes.helm.v3.*" in used
    assert used - read == set()
