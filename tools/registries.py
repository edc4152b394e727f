"""The lists of checks, parsers, roles and earlier names, from what stands in their folders.

`python -m tools.registries` writes the blocks between the marks; with `--check` it only says which are old. Ansible
ships only modules that it sees imported and takes its list of roles as text; nobody has to write them.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from graphlib import CycleError, TopologicalSorter

from tools.generated import ROOT, generate, renewed

LIBRARY = ROOT / "module_utils" / "flightline_node"
NAMES = "nccl_files"
"""Names of files that two parsers read, in a module of their own."""


def _constants(path: Path) -> dict[str, ast.expr]:
    """What a module gives names to at its top, unread: a file that does not import yet can be listed."""
    found: dict[str, ast.expr] = {}
    for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node.value for target in targets if isinstance(target, ast.Name)}
    return found


def _modules(folder: str, constant: str) -> dict[str, dict[str, ast.expr]]:
    """The modules of a folder that have the constant, with all of theirs."""
    found = {path.stem: _constants(path) for path in sorted((LIBRARY / folder).glob("*.py"))}
    return {name: constants for name, constants in found.items() if constant in constants}


def _imports(names: Sequence[str], noqa: str = "") -> Iterator[str]:
    yield f"from . import ({noqa}"
    yield from (f"    {name}," for name in names)
    yield ")"


def checks() -> Iterator[str]:
    """Every file with a CHECK."""
    yield from _imports(list(_modules("judge/checks", "CHECK")))


def parsers() -> Iterator[str]:
    """Every file with FILES; those with LATER are compiled when one of their files is there."""
    modules = {name: found for name, found in _modules("read/parsers", "FILES").items() if name != NAMES}
    later = [name for name, constants in modules.items() if "LATER" in constants]
    yield from _imports(sorted({NAMES, *modules} - set(later)))
    yield from ("", "", "def _shipped() -> None:")
    yield from (f"    {line}" for line in _imports(later, "  # noqa: F401"))
    yield from ("", "", "_ALL: Tuple[Parser, ...] = (")
    for name, constants in modules.items():
        files = ast.unparse(constants["FILES"]).replace("'", '"')
        parse = f'_later("{name}")' if name in later else f"{name}.parse"
        yield f'    Parser("{name}", {files}, {parse}),'
    yield ")"


def aliases() -> Iterator[str]:
    """Earlier names of checks, thresholds and reasons -> today's. A reason's is <check>.<id>, a common one's .<id>."""
    tables: dict[str, dict[str, str]] = {"Check": {}, "Threshold": {}, "Reason": {}}
    for path in (LIBRARY / "judge/reasons.py", *sorted((LIBRARY / "judge/checks").glob("*.py"))):
        calls = list(_calls(path, tuple(tables)))
        own = next((values["id"] for kind, values in calls if kind == "Check"), "")
        for kind, values in calls:
            prefix = "" if kind == "Check" else f"{own}."
            for old in values["aliases"]:
                tables[kind][f"{prefix}{old}"] = f"{prefix}{values.get('id') or values['name']}"
    for kind, told in tables.items():
        name = f"{kind.upper()}S"
        lines = [f'    "{old}": "{new}",' for old, new in sorted(told.items())]
        yield from [f"{name}: Dict[str, str] = {{", *lines, "}"] if lines else [f"{name}: Dict[str, str] = {{}}"]


def _calls(path: Path, kinds: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where a module declares such objects: the kind, and the name and aliases that stand there as text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
            given: dict[str, ast.expr] = {}
            if node.args and isinstance(node.args[0], ast.Constant):
                given["name"] = node.args[0]
            given |= {str(one.arg): one.value for one in node.keywords if one.arg in ("id", "name", "aliases")}
            yield node.func.id, {"aliases": (), **{key: ast.literal_eval(value) for key, value in given.items()}}


def _site_roles() -> dict[str, dict[str, Any]]:
    """Roles of the site, in their order -> what each says of it. Raises ValueError where they name no order."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "roles").glob("*/meta/site.yml")):
        found[path.parts[-3]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    order: TopologicalSorter[str] = TopologicalSorter({role: site.get("after", []) for role, site in found.items()})
    try:
        order.prepare()
    except CycleError as error:
        raise ValueError(
            f"roles: saw {error.args[1]} each after the other; wanted an order; do: mend `after`"
        ) from None
    placed: list[str] = []
    while order.is_active():
        ready = sorted(order.get_ready())
        placed += ready
        order.done(*ready)
    if unknown := set(placed) - set(found):
        raise ValueError(
            f"roles: saw `after` name {sorted(unknown)}; wanted roles with meta/site.yml; do: mend `after`"
        )
    return {role: found[role] for role in placed}


_COLLECT = """&collect [
         {name: Go on and remember the refusal, ansible.builtin.set_fact: {
           flightline_refused: "{{ refused + [flightline_role] }}"}}]"""


def roles() -> Iterator[str]:
    """The roles of playbooks/site.yml, each in a block: what one refuses keeps no other from its work."""
    for number, (role, site) in enumerate(_site_roles().items()):
        needs = [f"'{other}' not in refused" for other in site.get("needs", [])]
        when = " and ".join(filter(None, [f"'{role}' in group_names", site.get("when"), *needs]))
        tags = ", ".join([role, *site.get("also", [])])
        yield f"    - {{name: Apply {role}, tags: [{tags}],"
        yield f'       vars: {{flightline_role: {role}}}, when: "{when}",'
        block = f"[{{name: Import it, ansible.builtin.import_role: {{name: {role}}}}}]"
        yield f"       block: {block}, rescue: {'*collect' if number else _COLLECT}}}"


def groups() -> Iterator[str]:
    """The groups of inventory/roles.yml."""
    for role, site in _site_roles().items():
        yield f"    {role}:"
        yield f"      children: {{{', '.join(f'{group}: {{}}' for group in site['hosts'])}}}"


BLOCKS: Mapping[Path, Callable[[], Iterator[str]]] = {
    LIBRARY / "judge/checks/__init__.py": checks,
    LIBRARY / "read/parsers/__init__.py": parsers,
    LIBRARY / "names.py": aliases,
    ROOT / "playbooks/site.yml": roles,
    ROOT / "inventory/roles.yml": groups,
}


def old() -> dict[Path, str]:
    """The registries that are not what their folders say -> their new text."""
    texts = {path: path.read_text(encoding="utf-8") for path in BLOCKS}
    new = {path: renewed(path, text, "registries", BLOCKS[path]()) for path, text in texts.items()}
    return {path: new[path] for path, text in texts.items() if text != new[path]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with --check say what is old."""
    return generate("registries", "Write the lists of checks, parsers, roles and earlier names.", arguments, old)


if __name__ == "__main__":
    sys.exit(main())
