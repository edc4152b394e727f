"""What follows from the list of run inputs (flightline_node/inputs.py), written where Ansible wants it as text.

`python -m tools.inputs` writes the blocks between the marks; with `--check` it only says which are old.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from flightline_node.inputs import INPUTS, Input
from tools.generated import ROOT, differing, only_check, renewed, settled

ROLE = "flightline_node"


def options() -> Iterator[str]:
    """The module's documentation."""
    for one in INPUTS:
        yield f"  {one.name}:"
        yield f"    description: {json.dumps(one.what)}"
        yield from (f"    {key}: {json.dumps(value)}" for key, value in one.argument().items())


def task() -> Iterator[str]:
    """What the preflight hands on of a host's variables; what is not defined is left to the module's default."""
    for one in INPUTS:
        if one.variable and not one.required:
            yield f'        {one.name}: "{{{{ {one.variable} | default(omit) }}}}"'


def _role_default(one: Input) -> str:
    if one.boot_choices:
        return one.boot_choices[0]
    fallback = "" if one.required else f" | default({one.default!r})"
    return f'"{{{{ {one.variable}{fallback} }}}}"'


def _of_role() -> list[Input]:
    return [one for one in INPUTS if one.stored and one.variable]


def defaults() -> Iterator[str]:
    """The role's defaults: what the inventory says of the host."""
    yield from (f"{ROLE}_{one.name}: {_role_default(one)}" for one in _of_role())


def specification() -> Iterator[str]:
    """The role's argument specification."""
    for one in _of_role():
        choices = [f"        choices: [{', '.join(one.boot_choices)}]"] if one.boot_choices else []
        elements = [f"        elements: {one.elements}"] if one.elements else []
        yield from (f"      {ROLE}_{one.name}:", f"        type: {one.kind}", *elements, *choices)
        yield from (f"        default: {_role_default(one)}", f"        description: {json.dumps(one.what)}")


def stored() -> Iterator[str]:
    """What the role writes into the node's settings file."""
    for one in INPUTS:
        if one.stored:
            value = f"{ROLE}_{one.name}" if one.variable else "inventory_hostname"
            yield f'  {one.name}: "{{{{ {value} }}}}"'


def rows() -> Iterator[str]:
    """The table of docs/preflight.md."""
    yield from ("", "| variable of a run | meaning | default |", "|---|---|---|")
    for one in INPUTS:
        if one.variable.startswith("flightline_"):
            default = f"`{json.dumps(one.default)}`" if one.default is not None else ""
            yield f"| `{one.variable}` | {one.what.replace('<', '&lt;').replace('>', '&gt;')} | {default} |"
    yield ""


BLOCKS: Mapping[str, Callable[[], Iterator[str]]] = {
    "library/flightline_node.py": options,
    "playbooks/preflight.yml": task,
    f"roles/{ROLE}/defaults/main.yml": defaults,
    f"roles/{ROLE}/meta/argument_specs.yml": specification,
    f"roles/{ROLE}/vars/main.yml": stored,
    "docs/preflight.md": rows,
}


def old(root: Path = ROOT) -> dict[Path, str]:
    """The files whose block is not what the inputs say -> their new text."""
    texts = {name: (root / name).read_text(encoding="utf-8") for name in BLOCKS}
    return differing({root / name: renewed(name, text, "inputs", BLOCKS[name]()) for name, text in texts.items()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with --check say what is old."""
    check = only_check("inputs", "Write what follows from the list of run inputs.", arguments)
    return settled(old(), check)


if __name__ == "__main__":
    sys.exit(main())
