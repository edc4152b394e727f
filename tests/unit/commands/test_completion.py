"""The Tab key, asked by real shells where they are here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flightline import cli
from flightline.store.sqlite import SqliteStore
from tests.unit.made import a_run, record

HERE = Path(sys.executable).parent


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A store with one run of two hosts."""
    monkeypatch.setenv("FLIGHTLINE_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setenv("PATH", f"{HERE}:{os.environ['PATH']}")
    with SqliteStore(tmp_path / "runs.sqlite") as db:
        db.start(a_run("gpu-01", "gpu-02", run_id="r1"))
        for host in ("gpu-01", "gpu-02"):
            db.save("r1", record(host))
    return tmp_path


def offered(*words, **environment):
    """What bash's completion is given for a command line whose last word is begun."""
    asked = {"_FLIGHTLINE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["flightline", *words]), "COMP_CWORD": str(len(words))}  # fmt: skip
    done = subprocess.run(
        [HERE / "flightline"], env={**os.environ, **asked, **environment}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_runs_hosts_and_checks_are_offered(site):
    assert offered("re") == [name for name in cli.COMMANDS if name.startswith("re")]
    assert offered("report", "") == ["latest", "r1"]
    assert offered("diff", "r1", "la") == ["latest"]
    assert offered("history", "gpu") == ["gpu-01", "gpu-02"]
    assert offered("preflight", "--limit", "gpu-02") == ["gpu-02"]
    assert "ecc_uncorrected" in offered("judge", "--skip", "ecc")
    assert offered("checks", "xi") == ["xid"]


def test_without_a_store_nothing_is_offered_and_nothing_said(site):
    assert offered("report", "", FLIGHTLINE_STORE=str(site / "none")) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_takes_its_script(site, shell):
    script = subprocess.check_output([HERE / "flightline", "completion", shell], text=True)
    assert "_FLIGHTLINE_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_completes_a_line(site):
    line = "COMP_WORDS=(flightline history gpu-0) COMP_CWORD=2; _flightline_completion flightline; echo ${COMPREPLY[@]}"
    command = f'eval "$(flightline completion bash)"; {line}'
    assert subprocess.check_output(["bash", "-c", command], text=True).split() == ["gpu-01", "gpu-02"]


def test_a_shell_that_is_none_of_these_is_refused(site):
    done = subprocess.run([HERE / "flightline", "completion", "csh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "'csh' is not one of bash, zsh, fish" in done.stderr


def test_output_to_a_file_is_neither_cut_nor_folded(site):
    long = "a measured reason that says " + "very " * 40 + "much"
    with SqliteStore(site / "runs.sqlite") as db:
        db.start(a_run("bad", run_id="r2"))
        finding = {"check": "memory", "status": "FAIL", "message": long, "remedy": "REPLACE"}
        db.save("r2", record("bad", finding))
        db.finish("r2", "2026-11-21T10:05:00+00:00", "no-go")
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    asked = [str(HERE / "flightline"), "report", "r2"]
    said = subprocess.run(asked, env=environment, cwd=site, capture_output=True, text=True, check=False).stdout
    assert long in said
    narrow = subprocess.run(asked, env={**environment, "COLUMNS": "80"}, cwd=site, capture_output=True, text=True, check=False).stdout  # fmt: skip
    (line,) = [line for line in narrow.splitlines() if line.startswith("  bad")]
    assert len(line) <= 80 and "..." in line, "who names a width gets it"
