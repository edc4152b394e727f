"""From the second run on a node is asked through the library it has kept; whatever is wrong with that, it answers.

The node is simulated; Ansible, its module wrapper and the kept copy are the real ones. The kept copy's version is
marked by the test, so that an answer tells which way it came.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flightline.demo import prepare
from flightline_node import __version__
from tests.beds import ROOT, own_env, ran
from tools import nodepackage

MARKED = "kept copy"
needs_system_python = pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no /usr/bin/python3 to find")


class Ground:
    """A home directory, a simulated node in it, and a play of one task."""

    def __init__(self, tmp_path: Path) -> None:
        self.path, self.home, self.installed = tmp_path, tmp_path / "home", tmp_path / "opt"
        self.home.mkdir()
        self.installed.mkdir(mode=0o755)
        prepare({"n": {"demo_dir": self.home / "n", "instance_type": "p5.48xlarge", "demo_faults": []}})

    def ask(self, python: str = sys.executable, more: str = "", task: str = "") -> dict:
        out, play = self.path / "answer.json", self.path / "play.yml"
        node = f"root: ~/n/root, tool_path: ['$HOME/n/tools'], instance_type: p5.48xlarge{more}"
        play.write_text(
            f"- hosts: localhost\n  gather_facts: false\n  tasks:\n    - flightline_node: {{{node}}}\n"
            f"      register: answer\n      ignore_errors: true\n{task}"
            f"    - copy: {{content: '{{{{ answer | to_json }}}}', dest: {out}}}\n"
        )
        # A plain PATH: Ansible's search for a Python would trip over version managers' shims.
        plain = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        env = own_env("ANSIBLE", "PYTHON", **plain, ANSIBLE_LIBRARY=str(ROOT / "library"))
        env.update(ANSIBLE_MODULE_UTILS=str(ROOT / "module_utils"), ANSIBLE_ACTION_PLUGINS=str(ROOT / "plugins/action"))
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(play)]
        command += ["-e", f"ansible_python_interpreter={python} ansible_async_dir={self.home}/async"]
        command += ["-e", f"flightline_node_directory={self.installed}"]
        run = ran(*command, env=env, cwd=self.path, timeout=120)
        assert run.returncode == 0, run.stdout + run.stderr
        answer: dict = json.loads(out.read_text())
        return answer

    @property
    def kept(self) -> Path:
        (found,) = (self.home / ".ansible/flightline").iterdir()
        return found

    def mark(self) -> None:
        path = self.kept / "flightline_node/__init__.py"
        path.write_text(f'__version__ = "{MARKED}"\n')


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory):
    ground = Ground(tmp_path_factory.mktemp("first"))
    first = ground.ask()
    assert first["verdict"] == "go" and first["record"]["flightline"] == __version__
    return ground


@pytest.fixture
def ground(tmp_path, asked_once):
    """What the first run left, in a home of its own: files keep their times, by which Python trusts compiled ones."""
    ground = Ground(tmp_path)
    shutil.copytree(asked_once.home / ".ansible", ground.home / ".ansible", symlinks=True)
    shutil.copytree(asked_once.installed, ground.installed, symlinks=True, dirs_exist_ok=True)
    ground.mark()
    return ground


def way(answer: dict) -> str:
    assert answer.get("verdict") == "go", json.dumps(answer)[:2000]
    return answer["record"]["flightline"]


@pytest.mark.parametrize("python", [sys.executable, pytest.param("auto_silent", marks=needs_system_python)])
def test_the_second_run_asks_the_kept_library(ground, python):
    assert way(ground.ask(python)) == MARKED


def test_a_copy_that_another_python_compiled_goes_through_ansible(ground):
    for path in ground.kept.rglob("*.pyc"):
        path.unlink()
    assert way(ground.ask()) == __version__
    assert way(ground.ask()) == MARKED, "the module compiled the copy for this Python as well"


@needs_system_python
def test_a_copy_whose_python_is_gone_goes_through_ansible(ground):
    (ground.kept / "python").write_text("/nonexistent/python3\n")
    assert way(ground.ask("auto_silent")) == __version__


def test_a_damaged_copy_is_not_used(ground):
    (ground.kept / "flightline_node/model.py").write_text("\0 not Python")
    assert way(ground.ask()) == __version__


def test_a_link_to_somewhere_else_is_not_followed(ground, tmp_path):
    if os.geteuid():
        pytest.skip("only root can give a directory to another user")
    os.chown(ground.kept, 65534, 65534)
    assert way(ground.ask()) == __version__


def test_mistakes_are_told_as_the_module_tells_them(ground):
    answer = ground.ask(more=", thresholds: {memory.nonsense: 1}")
    assert answer["failed"] and "memory.nonsense" in answer["msg"]
    answer = ground.ask(more=", levle: quick")
    assert answer["failed"] and "levle" in answer["msg"]


def test_an_asynchronous_task_is_refused(ground):
    """Its answer would come past the deadline and past the gate."""
    answer = ground.ask(task="      async: 60\n      poll: 1\n")
    assert answer["failed"] and "does not support async" in answer["msg"]


INSTALLED = "installed copy"


@pytest.fixture
def installed(tmp_path):
    """A node with the library that the role installs, marked, and nothing in the user's home."""
    if os.geteuid():
        pytest.skip("only root can install the library")
    ground = Ground(tmp_path)
    package = nodepackage.build(tmp_path / "flightline-node.pyz").path
    subprocess.run([sys.executable, "-I", package, "install", ground.installed], check=True, capture_output=True)
    (version,) = ground.installed.iterdir()
    (version / "flightline_node" / "__init__.py").write_text(f'__version__ = "{INSTALLED}"\n')
    return ground


@pytest.mark.parametrize("python", [sys.executable, pytest.param("auto_silent", marks=needs_system_python)])
def test_the_installed_library_is_asked_and_nothing_is_sent(installed, python):
    assert way(installed.ask(python)) == INSTALLED
    assert not (installed.home / ".ansible/flightline").exists()


def test_an_installed_library_of_another_version_is_not_used(installed):
    (version,) = installed.installed.iterdir()
    version.rename(version.with_name("0123456789abcdef"))
    assert way(installed.ask()) == __version__


@pytest.mark.parametrize("spoil", [lambda path: os.chown(path, 65534, 0), lambda path: path.chmod(0o777)])
def test_an_installed_library_that_is_not_root_s_alone_is_not_used(installed, spoil):
    (version,) = installed.installed.iterdir()
    spoil(version)
    assert way(installed.ask()) == __version__
