"""Which Pythons of the node library's range are on this machine: python -m tests.pythons says it, one line each.

Looked for where pyenv and uv keep theirs, then on the PATH; Debian 12 itself has 3.11 only.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
"""What nodes have, oldest and newest: requires-python of the node library (docs/architecture.md)."""
HOW = "do: pyenv install {0}, or uv python install {0}, or apt-get install python{0}"


def _places(version: str) -> Iterator[Path]:
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    yield from sorted(pyenv.glob(f"{version}.*/bin/python"))
    yield from sorted(uv.glob(f"cpython-{version}.*/bin/python{version}"))
    on_path = shutil.which(f"python{version}")
    if on_path:  # a shim of pyenv is there also when its Python is not
        yield Path(on_path)


def find(version: str) -> str:
    """The interpreter of a version that really runs; empty when there is none."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in _places(version):
        try:
            done = subprocess.run([path, "-c", ask], capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.stdout.strip() == version:
            return str(path)
    return ""


def main() -> None:
    """Say what is here and what is not."""
    for version in VERSIONS:
        found = find(version)
        sys.stdout.write(f"Python {version}: {found or 'NOT RUN, none here; ' + HOW.format(version)}\n")


if __name__ == "__main__":
    main()
