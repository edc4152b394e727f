"""Variables of the roles that an inventory misspells. Ansible ignores a variable that nobody reads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

LIKENESS = 0.85
"""Of difflib's ratio. A site's own variables may begin like a role's; one that is nearly a role's is a slip."""
_NAME = re.compile(r"^([a-z][a-z0-9_]*):", re.MULTILINE)


def known(roles: Path) -> dict[str, set[str]]:
    """Each role's variables: what its defaults name."""
    return {path.parts[-3]: set(_NAME.findall(path.read_text())) for path in roles.glob("*/defaults/main.yml")}


def mistakes(names: Iterable[str], variables: Mapping[str, set[str]]) -> list[str]:
    """One sentence for each name that begins with a role's name and is nearly, and not quite, a variable of it."""
    found = []
    for name in sorted(set(names)):
        role = max((role for role in variables if name.startswith(f"{role}_")), key=len, default="")
        near = difflib.get_close_matches(name, variables.get(role, ()), 1, LIKENESS)
        if near and near[0] != name:
            found.append(
                f"seen: the variable {name}, which no role reads; wanted: {near[0]}; do: correct the inventory"
            )
    return found
