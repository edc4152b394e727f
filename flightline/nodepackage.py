"""The node package: the node library as one file that Python runs, the same bytes on every build.

python -m flightline.nodepackage dist/flightline-node.pyz
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "module_utils" / "flightline_node"
SHEBANG = b"#!/usr/bin/env python3\n"
MAIN = "import sys\n\nfrom flightline_node.selfrun import main\n\nsys.exit(main())\n"
# The oldest time a zip archive can hold: a build's clock must not change its checksum.
STAMP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Package:
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


def build(out: Path, library: Path = LIBRARY) -> Package:
    """Write the package; a file that already has these bytes is left alone. Raises OSError."""
    data = contents(library)
    if not out.is_file() or out.read_bytes() != data:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: somebody may be reading the file that is there.
        draft = out.with_name(f"{out.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(out)
    return Package(out, hashlib.sha256(data).hexdigest())


def existing(path: Path) -> Package:
    """A package made elsewhere. Raises ValueError when it is none."""
    if not path.is_file():
        raise ValueError(f"no node package at {path}; make one: python -m flightline.nodepackage {path}")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a node package (a zip archive); python -m flightline.nodepackage makes one")
    return Package(path, hashlib.sha256(path.read_bytes()).hexdigest())


def main() -> int:
    """Build the package where the command line says."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m flightline.nodepackage OUT.pyz\n")
        return 2
    package = build(Path(sys.argv[1]))
    sys.stdout.write(f"{package.sha256}  {package.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
