"""What the last release's stacks hold, by place, and how Pulumi's engine finds it again in this program.

A place is a URN without its stack and project: the types that a resource lies in, its own, its name. At a release:
`python -m tests.infra.release` writes release.json; between releases it stays, and every place in it must be reached.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from tests.infra import program
from tests.infra.engine import Request

RECORDED = Path(__file__).with_name("release.json")
EXAMPLES = ("full", "eks")
"""Every component but those of Kubernetes, and those."""

Places = frozenset[str]


def _inside(parent: str, type_: str, name: str) -> str:
    above = parent.split("::")[0]
    return "::".join((f"{above}${type_}" if above else type_, name))


def places(requests: Iterable[Request]) -> dict[str, str]:
    """URN -> place, in the order of registration: a parent comes before its children."""
    found: dict[str, str] = {}
    for one in requests:
        found[one.urn] = _inside(found.get(one.parent, ""), one.type_, one.name)
    return found


def taken(requests: Iterable[Request], state: Places) -> dict[str, str]:
    """Place -> the place in the state that the engine takes for the same resource; those without one are made anew.

    The rules are those of its step generator (pulumi/pulumi, pkg/resource/deploy/step_generator.go, generateAliases):
    its own URN first, then its aliases, then each of those under the place that its parent was found at.
    """
    requests, here = list(requests), {}
    now, found = places(requests), dict[str, str]()
    for one in requests:
        parent = now.get(one.parent, "")
        own = [
            _inside("" if alias.no_parent else parent, alias.type_ or one.type_, alias.name or one.name)
            for alias in one.aliased
        ]
        tried = [now[one.urn], *own]
        if here.get(parent, parent) != parent:
            tried += [_inherited(place, parent, here[parent]) for place in tried]
        place = next((one for one in tried if one in state), None)
        if place is not None:
            assert place not in found.values(), f"{now[one.urn]} and another claim {place}"
            found[now[one.urn]] = here[now[one.urn]] = place
    return found


def _inherited(place: str, parent: str, was: str) -> str:
    """A child's place under its parent's earlier one; a name that begins with the parent's changes with it."""
    (types, name), parent_name, was_name = place.split("::", 1), parent.split("::", 1)[1], was.split("::", 1)[1]
    renamed = was_name + name.removeprefix(parent_name) if name.startswith(parent_name) else name
    return _inside(was, types.rsplit("$", 1)[-1], renamed)


def recorded() -> dict[str, Places]:
    """Example -> the places of the last release."""
    return {
        example: frozenset(f"{types}::{name}" for types, names in held.items() for name in names)
        for example, held in json.loads(RECORDED.read_text()).items()
    }


def main() -> None:
    """Write what this program's stacks hold, a stack on a line."""
    lines = []
    for example in EXAMPLES:
        held: dict[str, list[str]] = {}
        for place in sorted(places(program.example(example).requests).values()):
            types, name = place.split("::", 1)
            held.setdefault(types, []).append(name)
        lines.append(f"{json.dumps(example)}: {json.dumps(held)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
