"""What is given on the command line (-e name=false) is text: a role casts it before it decides by it."""

import re

import pytest
import yaml

from tools import roledocs

from .render import Role

DECIDES = re.compile(r"\bwhen:|\bif\b|\bthat:|[<>]=?|^\s+- (?:not )?\w+")
SETTINGS = [
    (role, name, option["type"])
    for role in map(roledocs.read, roledocs.directories())
    for name, option in role.options.items()
    if option.get("type") in ("bool", "int")
]


@pytest.mark.parametrize(("role", "name", "kind"), SETTINGS, ids=[name for _, name, _ in SETTINGS])
def test_a_decision_casts(role, name, kind):
    directory = roledocs.ROLES / role.name
    for path in (*directory.glob("tasks/*.yml"), *directory.glob("templates/*"), directory / "vars/main.yml"):
        for line in path.read_text().splitlines():
            bare = re.search(rf"\b{name}\b(?!\s*\|\s*{kind})(?!:)", line)
            if bare and kind == "bool":
                assert (
                    line.strip().startswith(("tags:", "#")) or "do:" in line or "import_tasks" in line or "set " in line
                ), line
            elif bare and DECIDES.search(line):
                shown = re.search(rf"{{{{ {name} }}}}", line)
                assert shown or line.strip().startswith(("do:", "tags:", "#")), f"{path.name}: {line.strip()}"


def test_text_turns_a_role_off_as_a_boolean_does():
    role = Role("cuda_nccl", "Ubuntu 22.04", {"instance_type": "p5.48xlarge", "cuda_nccl_tests": "false"})
    assert role.evaluate("not cuda_nccl_tests | bool") is True


@pytest.mark.parametrize("path", sorted(roledocs.ROLES.glob("*/vars/main.yml")), ids=lambda path: path.parts[-3])
def test_a_number_inside_a_structure_is_no_template_of_its_own(path):
    """A node applies the roles with ansible-core 2.17 (infra/node-requirements.txt), where it would come out as text."""
    variables = yaml.safe_load(path.read_text()).values()
    inner = [text for value in variables if isinstance(value, (dict, list)) for text in texts(value)]
    assert [text for text in inner if re.search(r"\|\s*(int|float)\b", text)] == []


def texts(value):
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)
    else:
        yield str(value)
