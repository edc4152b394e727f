"""What a role lacks, and docs/roles.md from the roles' own argument specifications.

`python -m tools.roledocs` writes the page; with `--check` it only says what is wrong. A variable has its meaning
in meta/argument_specs.yml and its value in defaults/main.yml; both name the same variables with the same values.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.generated import ROOT, generate

ROLES, PAGE = ROOT / "roles", ROOT / "docs" / "roles.md"
MAX_TASK_LINES = 60
FILES = ("defaults/main.yml", "meta/argument_specs.yml", "tasks/main.yml", "vars/main.yml")


@dataclass(frozen=True)
class Role:
    """A role as its files describe it."""

    name: str
    spec: Mapping[str, Any]
    defaults: Mapping[str, Any]
    private: Mapping[str, Any]
    contents: tuple[Mapping[str, Any], ...]
    task_lines: Mapping[str, int]

    @property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """The variables of the specification."""
        found: Mapping[str, Mapping[str, Any]] = self.spec.get("options") or {}
        return found

    @property
    def supported(self) -> list[str]:
        """The systems the role is for, as the role itself asserts them."""
        return list(self.private.get(f"_{self.name}_supported") or [])


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text()) or {}


def read(directory: Path) -> Role:
    """A role from its directory. Raises OSError when a file is missing, YAMLError when one cannot be read."""
    return Role(
        name=directory.name,
        spec=_yaml(directory / "meta/argument_specs.yml").get("argument_specs", {}).get("main", {}),
        defaults=_yaml(directory / "defaults/main.yml"),
        private=_yaml(directory / "vars/main.yml"),
        contents=tuple(_yaml(directory / "tasks/main.yml")),
        task_lines={path.name: len(path.read_text().splitlines()) for path in directory.glob("tasks/*.yml")},
    )


def _paragraphs(text: Any) -> list[str]:
    return [str(part).strip() for part in (text if isinstance(text, list) else [text]) if part]


_HEAD = """\
# Roles

Generated from each role's `meta/argument_specs.yml` by `python -m tools.roledocs`; edit there. A role's variables with
their defaults: `ansible-doc -t role -r roles NAME`. What it does, in order: its `tasks/main.yml`. Where the site's
playbook runs it, and after which role: its `meta/site.yml`, from which `make generate` writes playbook and groups.

| role | what it does | systems | variables |
|---|---|---|--:|
"""


def render(roles: Iterable[Role]) -> str:
    """The page: what each role is for, on which systems, and how many variables it has."""
    return _HEAD + "".join(map(_row, roles))


def _row(role: Role) -> str:
    told = " ".join([f"{role.spec.get('short_description', '')}.", *_paragraphs(role.spec.get("description"))])
    cells = (role.name, told.replace("|", "\\|"), ", ".join(role.supported), str(len(role.options)))
    return f"| {' | '.join(cells)} |\n"


def _same(left: Any, right: Any) -> bool:
    """Equal in value and type: yes is not 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _variables(role: Role) -> Iterator[str]:
    for name, option in role.options.items():
        if not name.startswith(f"{role.name}_"):
            yield f"{name}: does not begin with {role.name}_"
        if not _paragraphs(option.get("description")):
            yield f"{name}: no description"
        if option.get("required"):
            if name in role.defaults or "default" in option:
                yield f"{name}: required, so it has no default"
        elif "default" not in option or name not in role.defaults:
            yield f"{name}: wanted a default in both meta/argument_specs.yml and defaults/main.yml"
        elif not _same(option["default"], role.defaults[name]):
            yield f"{name}: {option['default']!r} in the specification, {role.defaults[name]!r} in defaults"
    yield from (f"{name}: not in meta/argument_specs.yml" for name in role.defaults if name not in role.options)


def _contents(role: Role) -> Iterator[str]:
    for entry in role.contents:
        if not entry.keys() & {"ansible.builtin.import_tasks", "ansible.builtin.include_tasks"}:
            yield f"tasks/main.yml: {entry.get('name')!r} is no import; the file is a table of contents"
    for file, lines in role.task_lines.items():
        if lines > MAX_TASK_LINES:
            yield f"tasks/{file}: {lines} lines, at most {MAX_TASK_LINES}"
    if not role.supported:
        yield f"vars/main.yml: no _{role.name}_supported"


def gaps(directory: Path) -> list[str]:
    """What a role lacks, one line each."""
    missing = [f"no {file}" for file in FILES if not (directory / file).is_file()]
    if missing:
        return [f"{directory.name}: {gap}" for gap in missing]
    role = read(directory)
    return [f"{role.name}: {gap}" for gap in (*_variables(role), *_contents(role))]


def directories(roles: Path = ROLES) -> list[Path]:
    """Every role's directory."""
    return sorted(path for path in roles.iterdir() if path.is_dir())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page (unless --check) and print what is wrong."""
    found = [gap for directory in directories() for gap in gaps(directory)]
    sys.stdout.write("".join(f"{gap}\n" for gap in found))
    does = "Write docs/roles.md and say what a role lacks."
    return generate("roledocs", does, arguments, lambda: {PAGE: render(map(read, directories()))}) or int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
