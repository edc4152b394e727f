"""What follows from the declarations of a stack's settings: python -m tools.stack_settings writes it.

From infra/config/model.py: the `config` part of Pulumi.yaml, docs/settings.md, and of settings that reach a role the
outputs in flightline/contract.py and the role's variable in the inventory; their types. A test compares them.
"""

import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from flightline import contract
from infra.config.declare import ARRAY, BOOLEAN, INTEGER, WANTED, Key, Value
from infra.config.model import KEYS
from tools.generated import ROOT, generate, renewed

PROJECT, PAGE = ROOT / "Pulumi.yaml", ROOT / "docs" / "settings.md"
TYPED = ROOT / "flightline_pulumi" / "settings.py"
CONTRACT, VARIABLES = ROOT / "flightline" / "contract.py", ROOT / "inventory" / "group_vars" / "aws_ec2" / "roles.yml"
PYTHON = {BOOLEAN: "bool", INTEGER: "int", ARRAY: "Sequence[str]"}
TYPED_HEAD = '''\
"""What a program may say to `plan`; made from infra/config/model.py by `python -m tools.stack_settings`."""

from collections.abc import Sequence
from typing import TypedDict

Settings = TypedDict(  # noqa: UP013  # a field on each line would be a page
    "Settings",
    {
'''
PATTERNS = {BOOLEAN: r"true|false", INTEGER: r"-?\d+"}
CONFIG = "config:\n"
MADE = "  # Made from infra/config/model.py by: python -m tools.stack_settings\n"
ENCRYPTED = """\
  # Not `secret: true`: the CLI then refuses the plain default, so every stack would have to set a value.
  # infra/settings.py refuses one that is not encrypted.
"""
HEAD = """\
# Settings of a stack

Made from `infra/config/model.py` by `python -m tools.stack_settings`. Set one with `pulumi config set KEY VALUE`;
mistakes are refused all at once, before any resource is made.

| key | default | accepted | what it is |
|---|---|---|---|
"""
OUTPUTS = """
# Outputs of a stack

What `make outputs` hands to Ansible as `flightline_stack`, from `flightline/contract.py`; empty where the stack lacks
the thing. `pulumi stack output NAME` prints one.

| output | what it is | read by |
|---|---|---|
"""


def entry(key: Key) -> str:
    """A key's lines in Pulumi.yaml."""
    lines = [f"{key.name}:", f"  type: {key.kind}"]
    if key.kind == ARRAY:
        lines.append("  items: {type: string}")
    lines += [f"  description: {_scalar(key.description)}", f"  default: {_default(key.default)}"]
    return (ENCRYPTED if key.secret else "") + "".join(f"  {line}\n" for line in lines)


def project(text: str, keys: Sequence[Key] = KEYS) -> str:
    """Pulumi.yaml with the declarations of these keys."""
    head, _, _ = text.partition(CONFIG)
    return head + CONFIG + MADE + "".join(map(entry, keys))


def page(keys: Sequence[Key] = KEYS) -> str:
    """The page of all settings and outputs."""
    made = {key.output: (f"`{key.output}`", _wanted(key), f"`{_reader(key)}`") for key in keys if key.variable}
    by_hand = ((f"`{one.name}`", one.wanted, f"people: {one.people}" if one.people else f"`{one.read_by}`")
               for one in contract.OUTPUTS if one.name not in made)  # fmt: skip
    return HEAD + "".join(map(_row, keys)) + OUTPUTS + "".join(map(_cells, (*by_hand, *made.values())))


def typed(keys: Sequence[Key] = KEYS) -> str:
    """The type of the settings that a program gives: a secret comes from the stack's configuration alone."""
    fields = " ".join(f'"{key.name}":~{PYTHON.get(key.kind, "str")},' for key in keys if not key.secret)
    lines = textwrap.wrap(fields, 110, break_on_hyphens=False)
    body = "".join(f"        {line}\n" for line in lines).replace("~", " ")
    return f"{TYPED_HEAD}{body}    }},\n    total=False,\n)  # fmt: skip\n"


def _row(key: Key) -> str:
    reaches = f" Reaches `{key.variable}`." if key.variable else ""
    return _cells((f"`{key.name}`", f"`{_default(key.default)}`", key.accepted or key.kind, key.description + reaches))


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def outputs(keys: Sequence[Key] = KEYS) -> Iterator[str]:
    """What `flightline.contract` promises of the settings that reach a role."""
    for key in keys:
        if key.variable:
            pattern = "|".join(map(str, key.choices)) or key.pattern or PATTERNS.get(key.kind, ".*")
            words = [f'"{key.output}"', json.dumps(_wanted(key)), f'r"{pattern}"', f'read_by="{_reader(key)}"']
            words += ["optional=True"] * (key.optional or key.kind == ARRAY) + ["many=True"] * (key.kind == ARRAY)
            yield from ("    Output(", *(f"        {word}," for word in words), "    ),")


def variables(keys: Sequence[Key] = KEYS) -> Iterator[str]:
    """The roles' variables in the inventory of a stack's nodes."""
    yield from (f'{key.variable}: "{{{{ flightline_stack.{key.output} }}}}"' for key in keys if key.variable)


def _wanted(key: Key) -> str:
    return key.accepted or WANTED[key.kind]


def _reader(key: Key) -> str:
    """The role whose variable it is. Raises ValueError when no role has it."""
    roles = [path.name for path in (ROOT / "roles").iterdir() if key.variable.startswith(f"{path.name}_")]
    if not roles:
        raise ValueError(f"saw {key.name} reach {key.variable}; wanted a variable of a role, ROLE_...; do: mend it")
    return f"roles/{max(roles, key=len)}"


def _scalar(text: str) -> str:
    """Text as YAML: plain where every reader takes it for the same text."""
    try:
        plain = text[:1].isalpha() and yaml.safe_load(f"x: {text}") == {"x": text}
    except yaml.YAMLError:
        plain = False
    return text if plain else json.dumps(text)


def _default(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(list(value))
    if isinstance(value, int):
        return str(value)
    return _scalar(value)


def texts() -> dict[Path, str]:
    """Each file with what it should say."""
    blocks = {CONTRACT: outputs(), VARIABLES: variables()}
    made = {path: renewed(path, path.read_text(encoding="utf-8"), "stack_settings", of) for path, of in blocks.items()}
    return {**made, TYPED: typed(), PROJECT: project(PROJECT.read_text(encoding="utf-8")), PAGE: page()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with --check name those that are old."""
    return generate("stack_settings", "Write what follows from a stack's settings.", arguments, texts)


if __name__ == "__main__":
    sys.exit(main())
