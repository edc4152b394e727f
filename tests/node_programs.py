"""The programs of nodes: called of this tree's node library, or installed as a role does it."""

import sys
from pathlib import Path

from tests.unit.roles.render import Role

LIBRARY = Path(__file__).parents[1] / "module_utils"
TRAIN, NOTICE, PRELOAD, REPAIR = (
    (sys.executable, "-m", "flightline_node", word) for word in ("train", "notice", "preload", "repair")
)
INSTALLERS = {"train": "training", "notice": "flightline_notice", "preload": "lustre_client"}


def installed(word: str, place: Path, library: Path = LIBRARY) -> Path:
    """The file that a role writes, in a directory that has the node package."""
    package, program = place / "flightline-node.pyz", place / f"flightline-{word}"
    if not package.exists():
        package.symlink_to(library)
    role = Role(INSTALLERS[word], "Debian 12", {"flightline_node_directory": str(place)})
    program.write_text(role.file(f"flightline-{word}.j2"))
    program.chmod(0o755)
    return program
