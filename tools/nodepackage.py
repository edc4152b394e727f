"""The node package: the node library as one file that Python runs, the same bytes on every build.

python -m tools.nodepackage dist/flightline-node.pyz
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from flightline.node_package import contents
from tools.generated import ROOT, packed

LIBRARY = ROOT / "module_utils" / "flightline_node"


@dataclass(frozen=True)
class NodePackage:
    """A node package on disk and its checksum."""

    path: Path
    sha256: str


def build(out: Path, library: Path = LIBRARY) -> NodePackage:
    """Write the package; a file that already has these bytes is left alone. Raises OSError."""
    data = contents(library)
    return NodePackage(packed(out, data), hashlib.sha256(data).hexdigest())


def existing(path: Path) -> NodePackage:
    """A package made elsewhere. Raises ValueError when it is none."""
    if not path.is_file():
        raise ValueError(f"no node package at {path}; make one: python -m tools.nodepackage {path}")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a node package (a zip archive); python -m tools.nodepackage makes one")
    return NodePackage(path, hashlib.sha256(path.read_bytes()).hexdigest())


def main() -> int:
    """Build the package where the command line says."""
    reader = argparse.ArgumentParser(
        "python -m tools.nodepackage",
        description="Build the node library as one file that Python runs.",
        epilog="Example: python -m tools.nodepackage flightline-node.pyz",
    )
    reader.add_argument("out", metavar="OUT.pyz", type=Path, help="the file to write")
    package = build(reader.parse_args().out)
    sys.stdout.write(f"{package.sha256}  {package.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
