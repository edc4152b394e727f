"""playbooks/cleanup.yml through real Ansible on this machine: refused unless meant, and only old things of one's own."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def play(*arguments, **variables):
    given = {"cleanup_become": False, "cleanup_programs": [], **variables}
    argv = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "playbooks/cleanup.yml",
        "-e",
        json.dumps(given),
        *arguments,
    ]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture
def places(tmp_path):
    """One directory that was left ten days ago, and one of a run of this moment."""
    for name in ("flightline-old", "flightline-young"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / "flightline-old", (time.time() - 864_000,) * 2)
    return tmp_path


def names(places):
    return sorted(path.name for path in places.iterdir())


def test_the_demo_fleet_is_refused(places):
    done = play("-i", "inventory/demo", "--limit", "gpu-01", cleanup_paths=[f"{places}/flightline-*"])
    assert done.returncode != 0 and "cleanup_local=true" in done.stdout
    assert names(places) == ["flightline-old", "flightline-young"]


def test_this_machine_is_refused_however_it_is_reached(places):
    done = play("-i", "somewhere,", "-c", "local", cleanup_paths=[f"{places}/flightline-*"])
    assert done.returncode != 0 and "the machine that Ansible runs on" in done.stdout
    assert names(places) == ["flightline-old", "flightline-young"]


def test_check_mode_says_what_would_go_and_only_what_is_old_goes(places):
    meant = {"cleanup_local": True, "cleanup_paths": [f"{places}/flightline-*"]}
    said = play("-i", "inventory/demo", "--limit", "gpu-01", "--check", **meant)
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{places}/flightline-old" in said.stdout and "changed less than a run's life ago" in said.stdout
    assert names(places) == ["flightline-old", "flightline-young"]
    done = play("-i", "inventory/demo", "--limit", "gpu-01", **meant)
    assert done.returncode == 0 and names(places) == ["flightline-young"]
