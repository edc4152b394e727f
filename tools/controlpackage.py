"""The control side as one archive for a head node: the same bytes on every build, and what pip must install for it.

python -m tools.controlpackage dist/flightline-control.tar.gz
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import tarfile
from pathlib import Path

from tools.generated import ROOT, packed

FOLDERS = ("flightline", "module_utils", "library", "plugins", "playbooks")
FILES = ("ansible.cfg", "LICENSE")
NOT_THERE = re.compile(r"^(ansible|pulumi(-[a-z]+)?)==")
"""Of requirements.txt: what makes stacks and what configures nodes; runs and remedies need neither."""


def contents(root: Path = ROOT) -> bytes:
    """The archive's bytes."""
    stream = io.BytesIO()
    # A gzip header without a time, and files of one time and owner: a build's clock must not change its checksum.
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(found for folder in FOLDERS for found in (root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_symlink():
                _link(archive, name, str(path.readlink()))
            elif path.is_file() and "__pycache__" not in path.parts:
                _add(archive, name, path.read_bytes(), os.access(path, os.X_OK))
        for name in FILES:
            _add(archive, name, (root / name).read_bytes(), False)
        _add(archive, "requirements.txt", requirements(root).encode(), False)
    return stream.getvalue()


def requirements(root: Path = ROOT) -> str:
    """The pins of requirements.txt that a head node needs."""
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for line in lines if not NOT_THERE.match(line))


def _add(archive: tarfile.TarFile, name: str, data: bytes, runs: bool) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755 if runs else 0o644
    archive.addfile(entry, io.BytesIO(data))


def _link(archive: tarfile.TarFile, name: str, target: str) -> None:
    """Ansible finds modules and plugins beside the playbooks through links."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    archive.addfile(entry)


def build(out: Path, root: Path = ROOT) -> Path:
    """Write the archive; a file that already has these bytes is left alone. Raises OSError."""
    return packed(out, contents(root))


def main() -> int:
    """Build the package where the command line says."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m tools.controlpackage OUT.tar.gz\n")
        return 2
    sys.stdout.write(f"{build(Path(sys.argv[1]))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
