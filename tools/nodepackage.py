"""The node package: the node library as one file that Python runs, the same bytes on every build.

python -m tools.nodepackage dist/flightline-node.pyz
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "module_utils" / "flightline_node"
SHEBANG = b"#!/usr/bin/env python3\n"
MAIN = "import sys\n\nfrom flightline_node.__main__ import main\n\nsys.exit(main())\n"
# The oldest time a zip archive can hold: a build's clock must not change its checksum.
STAMP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class NodePackage:
    """A node package on disk and its checksum."""

    path: Path
    sha256: str


def contents(library: Path = LIBRARY) -> bytes:
    """The package's bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", MAIN.encode())
        for path in sorted(library.rglob("*.py")):
            _add(archive, f"flightline_node/{path.relative_to(library).as_posix()}", path.read_bytes())
    return SHEBANG + stream.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, STAMP)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


def build(out: Path, library: Path = LIBRARY) -> NodePackage:
    """Write the package; a file that already has these bytes is left alone. Raises OSError."""
    data = contents(library)
    if not out.is_file() or out.read_bytes() != data:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: somebody may be reading the file that is there.
        draft = out.with_name(f"{out.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(out)
    return NodePackage(out, hashlib.sha256(data).hexdigest())


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
