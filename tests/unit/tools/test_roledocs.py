"""Every role says in its specification what its defaults are, and its page says the same."""

import shutil

import pytest
import yaml

from tools import roledocs

ROLES = roledocs.directories()


@pytest.mark.parametrize("directory", ROLES, ids=lambda path: path.name)
def test_every_role_is_whole(directory):
    assert roledocs.gaps(directory) == []


@pytest.fixture
def role(tmp_path):
    """A copy of a role, to be broken."""
    copy = tmp_path / "base"
    shutil.copytree(roledocs.ROLES / "base", copy)
    return copy


def change(path, edit):
    data = yaml.safe_load(path.read_text())
    edit(data)
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def spec(data):
    return data["argument_specs"]["main"]["options"]


BREAKS = [
    ("defaults", lambda d: d.update(base_governor="powersave"), "'performance' in the specification, 'powersave'"),
    ("defaults", lambda d: d.update(base_swap_off=1), "base_swap_off: True in the specification, 1 in defaults"),
    ("defaults", lambda d: d.update(base_extra=1), "base_extra: not in meta/argument_specs.yml"),
    ("defaults", lambda d: d.pop("base_governor"), "base_governor: wanted a default in both"),
    ("specs", lambda d: spec(d)["base_governor"].pop("default"), "base_governor: wanted a default in both"),
    ("specs", lambda d: spec(d)["base_governor"].pop("description"), "base_governor: no description"),
    (
        "specs",
        lambda d: spec(d)["base_governor"].update(required=True),
        "base_governor: required, so it has no default",
    ),
    (
        "specs",
        lambda d: spec(d).update(other={"type": "str", "description": "x", "required": True}),
        "begin with base_",
    ),
    ("vars", lambda d: d.pop("_base_supported"), "no _base_supported"),
    ("tasks", lambda d: d.append({"name": "Say", "ansible.builtin.debug": {}}), "'Say' is no import"),
]
FILES = {
    "defaults": "defaults/main.yml",
    "specs": "meta/argument_specs.yml",
    "vars": "vars/main.yml",
    "tasks": "tasks/main.yml",
}


@pytest.mark.parametrize(("file", "edit", "said"), BREAKS, ids=[said for _, _, said in BREAKS])
def test_what_is_wrong_is_named(role, file, edit, said):
    change(role / FILES[file], edit)
    assert any(said in gap for gap in roledocs.gaps(role)), roledocs.gaps(role)


def test_a_long_task_file_is_named(role):
    (role / "tasks/long.yml").write_text("# line\n" * 61)
    assert "base: tasks/long.yml: 61 lines, at most 60" in roledocs.gaps(role)


def test_a_page_that_says_something_else_is_named(tmp_path, monkeypatch, capsys):
    page = tmp_path / "roles.md"
    page.write_text("# base\n")
    monkeypatch.setattr(roledocs, "PAGE", page)
    assert roledocs.main(["--check"]) == 1
    assert capsys.readouterr().out.endswith("roles.md\n") and page.read_text() == "# base\n"
    assert (roledocs.main([]), roledocs.main(["--check"])) == (0, 0)


def test_a_missing_file_is_named(role):
    (role / "meta/argument_specs.yml").unlink()
    assert roledocs.gaps(role) == ["base: no meta/argument_specs.yml"]


def test_the_page_is_short_and_says_where_the_variables_are():
    page = roledocs.PAGE.read_text()
    assert page == roledocs.render(map(roledocs.read, ROLES)), "run: .venv/bin/python -m tools.roledocs"
    assert "`ansible-doc -t role -r roles NAME`" in page and len(page.splitlines()) < 10 + len(ROLES)
