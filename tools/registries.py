"""The lists of checks and parsers, from what stands in their folders.

`python -m tools.registries` writes the blocks between the marks; with `--check` it only says which are old. Ansible
ships only modules that it sees imported, so the lists must be text; nobody has to write them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tools.words import only_check

LIBRARY = Path(__file__).parents[1] / "module_utils" / "flightline_node"
NAMES = "nccl_files"
"""Names of files that two parsers read, in a module of their own."""
BEGIN, END = "# begin: made by python -m tools.registries", "# end: made by python -m tools.registries"


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


BLOCKS: Mapping[str, Callable[[], Iterator[str]]] = {
    "judge/checks/__init__.py": checks,
    "read/parsers/__init__.py": parsers,
}


def renewed(name: str, text: str) -> str:
    """A registry's text with its block made anew."""
    before, _, rest = text.partition(f"{BEGIN}\n")
    return "\n".join([f"{before}{BEGIN}", *BLOCKS[name](), END]) + rest.partition(END)[2]


def old() -> dict[Path, str]:
    """The registries that are not what their folders say -> their new text."""
    texts = {LIBRARY / name: (name, (LIBRARY / name).read_text(encoding="utf-8")) for name in BLOCKS}
    new = {path: (text, renewed(name, text)) for path, (name, text) in texts.items()}
    return {path: after for path, (before, after) in new.items() if before != after}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with --check say what is old."""
    check = only_check("registries", "Write the lists of checks and parsers.", arguments)
    found = old()
    for path, text in found.items():
        sys.stdout.write(f"{path.relative_to(LIBRARY.parents[1])}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(found))


if __name__ == "__main__":
    sys.exit(main())
