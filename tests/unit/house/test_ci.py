"""What CI does with its suites' results, and the clone that it runs the README's commands in. Make and apt-get are stand-ins."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.made import program

CI = Path(__file__).parents[3] / ".ci"
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
def checkout(tmp_path):
    """A repository of one commit with .ci/clone, and a developed machine around it."""
    made = tmp_path / "checkout"
    (made / ".ci").mkdir(parents=True)
    shutil.copy(CI / "clone", made / ".ci")
    person = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "-A"), (*person, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=made, check=True)
    config = tmp_path / "home/.config/pip/pip.conf"
    config.parent.mkdir(parents=True)
    config.touch()
    (tmp_path / "tmp").mkdir()
    return made


def run(command, where, **more):
    environment = {"PATH": SYSTEM, "HOME": f"{where.parent}/home", "TMPDIR": f"{where.parent}/tmp", **more}
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)


def test_the_clone_has_an_empty_environment_but_for_what_reaches_an_index(checkout, tmp_path):
    program(tmp_path / "pyenv/python3.11", "exit 1")
    given = {"PIP_INDEX_URL": "https://index.example.org/a b", "https_proxy": "http://p:1", "SSL_CERT_FILE": "/ca"}
    theirs = {"PYENV_ROOT": "/pyenv", "AWS_PROFILE": "mine", "FLIGHTLINE_STORE": "/x", "LANG": "de_DE", "USER": "me"}
    done = run([".ci/clone", "env"], checkout, **given, **theirs, PATH=f"{tmp_path}/pyenv:{SYSTEM}")
    assert done.returncode == 0, done.stderr
    said, *lines = done.stdout.splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    home = seen.pop("HOME")
    assert home.startswith(f"{tmp_path}/tmp/") and not os.path.exists(home)
    assert seen == {"PATH": SYSTEM, "PIP_CONFIG_FILE": f"{tmp_path}/home/.config/pip/pip.conf", **given}
    assert "PIP_INDEX_URL" in said and "index.example.org" not in said
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_clone_that_a_command_failed_in_is_kept_and_named(checkout, tmp_path):
    (checkout / "new").touch()
    done = run(
        [".ci/clone", "sh", "-c", "mkdir .venv; echo version = 3.11.2 > .venv/pyvenv.cfg; cat; exit 7"], checkout
    )
    assert done.returncode == 7
    (place,) = (tmp_path / "tmp").glob("*/flightline")
    assert f"ended with 7, kept: {place}" in done.stderr and not (place / "new").exists()
    assert "changes that are not committed" in done.stdout and "ran on Python 3.11.2" in done.stdout


@pytest.mark.parametrize("broken", ["", "test", "hostile"])
def test_a_suite_that_fails_is_named_and_the_rest_runs(tmp_path, broken):
    place, tools = tmp_path / "checkout", tmp_path / "bin"
    program(tools / "make", f'echo "make $*"; [ "$1" != "{broken}" ]')
    program(place / ".ci/clone", f'echo "clone $*"; echo "9 passed in 1.00s"; [ test != "{broken}" ]')
    program(tools / "apt-get", "exit 0")
    program(tools / "chromium", "exit 0")
    program(tools / "python3", 'echo "Python 3.8: NOT RUN, none here"; echo "Python 3.11: /usr/bin/python3.11"')
    (place / ".venv").mkdir()
    (place / ".venv/pyvenv.cfg").write_text("version = 3.11.7\nexecutable = /opt/python3.11\n")
    shutil.copy(CI / "run", place / ".ci")
    done = run([".ci/run"], place, PATH=f"{tools}:{SYSTEM}")
    assert (done.returncode, [line for line in done.stdout.splitlines() if line.startswith("ci: failed")]) == (
        (1, [f"ci: failed: {broken}"]) if broken else (0, [])
    )
    for words in ("clone sh -c make preflight && make test", "9 passed in 1.00s", "make delivery", "make hostile "):
        assert words in done.stdout
    assert "ci: not run: node library on Python 3.8: NOT RUN" in done.stdout
    assert "ci: node library on Python 3.11: /usr/bin/python3.11" in done.stdout
    assert "ci: delivery and hostile on Python 3.11.7 /opt/python3.11" in done.stdout
