"""What a reader that goes away, or a terminal that cannot print a name, does to a command: nothing."""

import os
import subprocess
import sys

import pytest

from flightline.console import Console
from flightline.store.sqlite import SqliteStore
from tests.unit.made import a_run, finding, record

COMMAND = (sys.executable, "-m", "flightline")


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "runs.sqlite"
    with SqliteStore(path) as db:
        db.start(a_run("a", run_id="good"))
        db.save("good", record("a"))
        db.start(a_run("gpü-ñ", run_id="bad"))
        db.save("bad", record("gpü-ñ", finding(status="FAIL", message="zu wenig Speicher für gpü")))
    return path


def call(*arguments, **environment):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def unread(*arguments):
    """Run a command whose output nobody reads."""
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "wb") as out:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("report", "good", "--store"), 0),
        (("report", "bad", "--store"), 1),
        (("report", "bad", "--html", "-", "--store"), 1),
        (("history", "a", "--store"), 0),
    ],
)
def test_an_unread_answer_keeps_its_exit_status(store, arguments, status):
    done = unread(*arguments, store)
    assert (done.returncode, done.stderr) == (status, "")


def test_an_unread_judgement_keeps_its_exit_status(tmp_path):
    (tmp_path / "meminfo.txt").write_text("MemTotal: 2097152000 kB\nMemAvailable: 2000000000 kB\n")
    for more in ((), ("--json",)):
        done = unread("judge", tmp_path, "--instance-type", "p5.48xlarge", *more)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_console_goes_quiet_in_any_thread():
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "w") as out:
        console = Console(file=out)
        console.print("nobody reads this")
        assert console.quiet
        console.print("nor this")


def test_a_terminal_without_the_letters_of_a_name_gets_question_marks(store):
    done = call("history", "gpü-ñ", "--store", store, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "gp?-?" in done.stdout, done.stderr


def test_json_on_standard_output_is_utf8_whatever_the_terminal_speaks(store):
    done = call("report", "bad", "--json", "-", "--store", store, PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and '"gpü-ñ"' in done.stdout.replace("\\u00fc", "ü").replace("\\u00f1", "ñ")
    done = call("report", "bad", "--html", "-", "--store", store, PYTHONIOENCODING="ascii")
    assert "gpü-ñ" in done.stdout


def test_an_isolated_python_finds_the_command(store):
    done = subprocess.run(
        [sys.executable, "-I", "-m", "flightline", "report", "good", "--store", str(store)],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
