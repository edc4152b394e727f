"""What follows from the declarations of a stack's settings: python -m tools.stack_settings writes it.

The `config` part of Pulumi.yaml and docs/settings.md, from infra/config/model.py. A test compares both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from infra.config.declare import ARRAY, Key, Value
from infra.config.model import KEYS
from tools.words import only_check

ROOT = Path(__file__).resolve().parents[1]
PROJECT, PAGE = ROOT / "Pulumi.yaml", ROOT / "docs" / "settings.md"
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
    """The page of all settings."""
    return HEAD + "".join(map(_row, keys))


def _row(key: Key) -> str:
    cells = (f"`{key.name}`", f"`{_default(key.default)}`", key.accepted or key.kind, key.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write both files, or with --check name those that are old."""
    check = only_check("stack_settings", "Write Pulumi.yaml's settings and docs/settings.md.", arguments)
    wanted = {PROJECT: project(PROJECT.read_text(encoding="utf-8")), PAGE: page()}
    old = {path: text for path, text in wanted.items() if path.read_text(encoding="utf-8") != text}
    for path, text in old.items():
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
