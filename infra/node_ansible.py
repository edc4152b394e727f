"""ansible-core for the nodes, unpacked: python -m infra.node_ansible [STACK] fetches it once, by pinned checksums.

On a node it runs as `python3 -m ansible playbook` from a folder on PYTHONPATH: no pip, no venv and no index there.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import click

from flightline.console import EXIT_BROKEN
from infra import describe
from infra.config.model import EKS

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = "infra/node-requirements.txt"
_LEFT_OUT = ("ansible_test/", "ansible/galaxy/data/")


def runner(root: Path) -> Path:
    """The folder to ship. Raises ValueError when it was not fetched yet."""
    folder = _folder(root)
    if not (folder / "ansible" / "__main__.py").is_file():
        raise ValueError(f"saw no ansible-core for the nodes in {folder}; do `python -m infra.node_ansible`")
    return folder


def fetch(root: Path, python: str = "3.10") -> Path:
    """Download what REQUIREMENTS pins and unpack it; nothing is done when it is there. Raises OSError."""
    folder = _folder(root)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        wheels, unpacked = Path(draft) / "wheels", Path(draft) / "python"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--require-hashes", "--python-version", python, "--platform", "manylinux2014_x86_64"]
        command += ["--dest", str(wheels), "--requirement", str(root / REQUIREMENTS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"pip download: {done.stderr.strip()[-400:]}")
        unpack(wheels, unpacked)
        unpacked.rename(folder)
    return folder


def unpack(wheels: Path, folder: Path) -> None:
    """A wheel is an archive of what lies on the path."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if not name.startswith(_LEFT_OUT)]
            archive.extractall(folder, names)


def _folder(root: Path) -> Path:
    pinned = hashlib.sha256((root / REQUIREMENTS).read_bytes()).hexdigest()
    return root / ".flightline" / "node-ansible" / pinned[:16]


@click.command(epilog="Example: python -m infra.node_ansible p5-reservation")
@click.argument("stack", default="")
def main(stack: str) -> None:
    """Fetch ansible-core for the nodes; with STACK only when its nodes configure themselves."""
    try:
        given = describe.values(stack, Path()) if stack else {}
        if stack and (given["orchestrator"] == EKS or not given.get("configureAtBoot")):
            return
        fetch(ROOT)
    except (OSError, ValueError) as error:
        click.echo(f"node_ansible: {error}", err=True)
        sys.exit(EXIT_BROKEN)


if __name__ == "__main__":
    main()
