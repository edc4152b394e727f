"""Python packages for the head node's environment, from the outer machine's own index to the bed's shelf."""

import subprocess
import sys
from pathlib import Path

from tools import controlpackage

from .bed import layout
from .mirror import Mirror

KEPT = layout.STATE / "wheels"


def stock(mirror: Mirror) -> None:
    """Put the pinned packages and what they need on the shelf, with a page that pip reads. Downloads what is not kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    wanted = KEPT / "requirements.txt"
    if not wanted.is_file() or wanted.read_text() != controlpackage.requirements():
        _download(controlpackage.requirements())
        wanted.write_text(controlpackage.requirements())
    names = sorted(path.name for path in KEPT.glob("*.whl"))
    for name in names:
        mirror.add_file(name, (KEPT / name).read_bytes())
    mirror.add_file("wheels.html", "".join(f'<a href="{name}">{name}</a>\n' for name in names))


def _download(requirements: str) -> None:
    draft = Path(KEPT / "draft.txt")
    draft.write_text(requirements)
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version=3.11"]
    argv += ["--platform=manylinux2014_x86_64", "--platform=manylinux_2_17_x86_64", "--platform=manylinux_2_28_x86_64"]
    subprocess.run([*argv, "--dest", str(KEPT), "--requirement", str(draft)], check=True)
