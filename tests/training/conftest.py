"""Places for runs, and the curve that nothing interrupted."""

import shutil
import signal

import pytest

from . import table
from .launch import EVERY, PYTHON, ROOT, STEPS, Running, curve

DATA = (ROOT / "docs" / "checks.md").read_bytes()[:200_000]
"""Read once: an edit of the page while the tests run would be another data set, and another curve."""


def make_place(path):
    (path / "ck").mkdir(parents=True)
    (path / "data.bin").write_bytes(DATA)
    return path


@pytest.fixture(scope="session", autouse=True)
def torch_is_there():
    if not PYTHON.exists():
        pytest.fail(f"saw no {PYTHON}, wanted a Python with torch; do: make training")


@pytest.fixture
def place(tmp_path):
    return make_place(tmp_path / "run")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Step to loss of two ranks that nothing disturbs."""
    place = make_place(tmp_path_factory.mktemp("whole") / "run")
    with Running(place) as run:
        found = curve(run.good().logs)
        assert run.named("fresh"), "an empty directory is where a run begins"
    assert sorted(found) == list(range(1, STEPS + 1))
    return found


@pytest.fixture(scope="session")
def _killed(tmp_path_factory):
    place = make_place(tmp_path_factory.mktemp("killed") / "run")
    with Running(place) as run:
        run.until_saved(3 * EVERY).signal(0, signal.SIGKILL)
        run.ended()
    return place


@pytest.fixture
def killed(_killed, tmp_path):
    """A run of two ranks that was killed after its third checkpoint: one start for all who go on from there."""
    return shutil.copytree(_killed, tmp_path / "killed")


def pytest_terminal_summary(terminalreporter):
    """The table of faults."""
    for line in table.text():
        terminalreporter.write_line(line)
