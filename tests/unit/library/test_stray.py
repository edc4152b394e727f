"""Cleaning up against real processes and owners: nothing that anybody uses or another user made is touched."""

import os
import subprocess
import sys
import time

import pytest

from flightline_host.host import Host
from flightline_host.trial import stray

WANTED = {"programs": [], "min_age_hours": 24.0, "spare_machine": ""}


@pytest.fixture
def left(tmp_path):
    """A directory that was left ten days ago."""
    place = tmp_path / "flightline-left"
    place.mkdir()
    (place / "kernel.log").write_text("x")
    aged(place)
    return place


def aged(place):
    for path in (place / "kernel.log", place):
        os.utime(path, (time.time() - 864_000,) * 2)


def clean(place, check=False, **given):
    outcome = stray.ensure(Host(), {**WANTED, "paths": [str(place)], **given}, check)
    return outcome.facts["removed"], [one["why"] for one in outcome.facts["kept"]]


def test_what_was_left_is_removed(left):
    assert clean(left, check=True) == ([str(left)], []) and left.exists()
    assert clean(left) == ([str(left)], []) and not left.exists()


@pytest.mark.parametrize("how", ["cwd", "open file", "argument"])
def test_what_a_living_process_uses_stays(left, how):
    place = str(left)
    hold = {"cwd": "", "open file": f"f = open({place!r} + '/kernel.log'); ", "argument": ""}[how]
    argv = [sys.executable, "-c", hold + "print(1, flush=True); import time; time.sleep(60)"]
    cwd = place if how == "cwd" else None
    process = subprocess.Popen([*argv, *([place] if how == "argument" else [])], cwd=cwd, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline()
        removed, why = clean(left)
        assert removed == [] and why[0].startswith("is used by python") and left.exists()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert clean(left)[0] == [str(left)]


def test_what_another_user_made_stays(left, monkeypatch):
    monkeypatch.setattr(stray, "owners", lambda: frozenset({os.geteuid() + 1}))
    assert clean(left) == ([], [f"belongs to user {os.geteuid()}, or holds what does"])


def test_who_became_root_with_sudo_is_the_user_too(monkeypatch):
    monkeypatch.setenv("SUDO_UID", "1234")
    assert stray.owners() == {os.geteuid(), 1234}
    monkeypatch.setenv("SUDO_UID", "$(id)")
    assert stray.owners() == {os.geteuid()}


def test_one_young_file_deep_inside_keeps_the_whole(left):
    (left / "kernel.log").write_text("still written to")
    os.utime(left, (time.time() - 864_000,) * 2)
    assert clean(left) == ([], ["changed less than a run's life ago"])


def test_an_orphan_of_another_user_is_not_stopped(monkeypatch):
    alive = [stray.StrayProcess(os.getpid(), "all_reduce_perf", stray.INIT, os.geteuid() + 1, 1.0)]
    monkeypatch.setattr(stray, "processes", lambda host: iter(alive))
    facts = stray.ensure(Host(), {**WANTED, "programs": ["all_reduce_perf"], "paths": []}, False).facts
    assert facts["stopped"] == [] and facts["kept"][0]["why"] == f"belongs to user {os.geteuid() + 1}"


@pytest.mark.parametrize(
    ("line", "is_run"),
    [
        ("/usr/bin/python3 -m flightline_node watch", False),
        ("python3 /opt/flightline/flightline-node.pyz watch", False),
        ("python3 /opt/flightline/flightline-node.pyz check --level quick", True),
        ("/bin/sh /usr/local/sbin/flightline-check 60", True),
        ("/usr/bin/python3 -I -S -c import flightline_node", True),
        ("ansible-playbook playbooks/preflight.yml", True),
        ("flightline preflight -i inventory", True),
        ("flightline report latest", False),
    ],
)
def test_the_watcher_that_always_runs_is_no_run(line, is_run):
    assert bool(stray._RUN.search(line)) is is_run
