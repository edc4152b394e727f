"""docs/architecture.md says what each room is for and what it may import; this holds both to the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UTILS = ROOT / "module_utils"
HOMES = {
    "flightline": ROOT / "flightline",
    "flightline_host": UTILS / "flightline_host",
    "flightline_node": UTILS / "flightline_node",
}
HOST = {f"flightline_host/{name}" for name in ("host", "outcome", "releases", "version")}
"""What every room of the modules' code shares."""
ROW = re.compile(
    r"^\| `(?P<room>(?:flightline|flightline_host|flightline_node)/[a-z/]+)` \| (?P<purpose>.+) \| (?P<imports>.+) \|$",
    re.M,
)
ROOMS = {row["room"]: row for row in ROW.finditer((ROOT / "docs" / "architecture.md").read_text())}
FUNCTIONS = "flightline/cloud/functions"


def folder(room: str) -> Path:
    home, _, rest = room.partition("/")
    return HOMES[home] / rest


def room_of(parts: list[str]) -> str:
    name = "/".join(parts)
    return FUNCTIONS if name.startswith(FUNCTIONS) else "/".join(parts[:2])


def imported(path: Path, home: str) -> set[str]:
    """Rooms that a file names in its imports."""
    inside = [home, *path.relative_to(HOMES[home]).with_suffix("").parts][:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            names = [[*module, alias.name] for alias in node.names] if len(module) == 1 else [module]
        else:
            continue
        found |= {room_of(parts) for parts in names if parts[0] in (*HOMES, "infra", "tools")}
    return found


def test_every_folder_of_the_packages_is_a_room_of_the_picture():
    folders = {f"{home}/{path.parent.name}" for home, root in HOMES.items() for path in root.glob("*/__init__.py")}
    assert folders | {FUNCTIONS} == set(ROOMS), "wanted a row in docs/architecture.md for each folder"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_for_what_its_docstring_says(room):
    first = (ast.get_docstring(ast.parse((folder(room) / "__init__.py").read_text())) or "").split("\n")[0]
    assert ROOMS[room]["purpose"] == first


@pytest.mark.parametrize("room", [room for room in ROOMS if not room.startswith("flightline_node/")])
def test_a_room_imports_what_the_table_lets_it(room):
    home = room.partition("/")[0]
    allowed = {
        room,
        "flightline/console",
        *HOST,
        *(f"{home}/{name}" for name in re.findall(r"`([a-z_/]+)`", ROOMS[room]["imports"])),
    }
    files = [path for path in folder(room).rglob("*.py") if room == FUNCTIONS or FUNCTIONS not in path.as_posix()]
    found = {(path.name, other) for path in files for other in imported(path, home)}
    inside = {(name, other) for name, other in found if other.partition("/")[0] in (home, "infra", "tools")}
    assert not {(name, other) for name, other in inside if other not in allowed}
