"""The node library as the bytes of one file that Python runs, the same on every build.

Standard library only, and the library itself is not imported: a node that configures itself builds it with its own
Python.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

SHEBANG = b"#!/usr/bin/env python3\n"
MAIN = "import sys\n\nfrom flightline_node.__main__ import main\n\nsys.exit(main())\n"
SHIPPED = (".py", ".j2", ".service", ".sh")
# The oldest time a zip archive can hold: a build's clock must not change its checksum.
STAMP = (1980, 1, 1, 0, 0, 0)


def contents(library: Path) -> bytes:
    """The package's bytes. library: the directory flightline_node."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", MAIN.encode())
        # What an adoption writes on a node (adopt/files) goes with the sources.
        for path in sorted(path for path in library.rglob("*") if path.suffix in SHIPPED):
            _add(archive, f"flightline_node/{path.relative_to(library).as_posix()}", path.read_bytes())
    return SHEBANG + stream.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, STAMP)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)
