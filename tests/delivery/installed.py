"""The collection and the wheel, installed where no checkout is."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tools import collection

PROGRAMS = ("playbook", "galaxy", "inventory", "doc")
FACES = {"flightline": "flightline.__main__"} | {f"ansible-{name}": f"ansible.cli.{name}" for name in PROGRAMS}


class Place:
    """An environment with the wheel (not editable) and a folder with the collection; its own home and work folder."""

    def __init__(self, path: Path) -> None:
        self.path, self.venv, self.work = path, path / "venv", path / "work"
        self.collections, self.home = path / "collections", path / "home"
        self.root = self.collections / "ansible_collections" / "flightline" / "gpu"
        for folder in (self.work, self.home):
            folder.mkdir()

    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("TMPDIR", "LANG") if name in os.environ}
        kept |= {"PATH": f"{self.venv}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        ansible = {"COLLECTIONS_PATH": str(self.collections), "CONFIG": str(self.root / "ansible.cfg")}
        return kept | {f"ANSIBLE_{name}": value for name, value in ansible.items()}

    def run(self, *argv: object, **env: str) -> tuple[int, str]:
        done = subprocess.run(
            list(map(str, argv)), cwd=self.work, env={**self.env(), **env}, text=True, check=False, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout


def install_wheel(place: Place, wheel: Path) -> None:
    """The dependencies are those of the environment that runs this test, seen by path: its editable flightline is not."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place.venv], check=True)
    python = place.venv / "bin" / "python"
    target = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True)
    (Path(target.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name, module in FACES.items():
        script = place.venv / "bin" / name
        script.write_text(f"#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)


def installed(path: Path) -> Place:
    """Build both and install them below a folder."""
    made = Place(path)
    install_wheel(made, collection.wheel(made.path / "dist"))
    archive = collection.build(made.path / "dist")
    status, out = made.run("ansible-galaxy", "collection", "install", archive, "-p", made.collections, "--offline")
    assert status == 0, out
    return made
