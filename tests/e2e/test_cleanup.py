"""playbooks/cleanup.yml through real Ansible on this machine: refused unless meant, and only old things of one's own."""

import json
import os
import time

import pytest

from tests.beds import BIN, ROOT, ran


def play(*arguments, **variables):
    given = json.dumps({"cleanup_become": False, "cleanup_programs": [], **variables})
    argv = [BIN / "ansible-playbook", "playbooks/cleanup.yml", "-e", given, *arguments]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
    return ran(*argv, cwd=ROOT, env=env, timeout=180)


@pytest.fixture
def places(tmp_path):
    """One directory that was left ten days ago, and one of a run of this moment."""
    for name in ("flightline-old", "flightline-young"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / "flightline-old", (time.time() - 864_000,) * 2)
    return tmp_path


def names(places):
    return sorted(path.name for path in places.iterdir())


@pytest.mark.parametrize(
    ("reached", "said"),
    [
        (("-i", "inventory/demo", "--limit", "gpu-01"), "cleanup_local=true"),
        (("-i", "somewhere,", "-c", "local"), "the machine that Ansible runs on"),
    ],
    ids=["demo fleet", "this machine"],
)
def test_the_machine_of_the_controller_is_refused_however_it_is_reached(places, reached, said):
    done = play(*reached, cleanup_paths=[f"{places}/flightline-*"])
    assert done.returncode != 0 and said in done.stdout
    assert names(places) == ["flightline-old", "flightline-young"]


def test_check_mode_says_what_would_go_and_only_what_is_old_goes(places):
    meant = {"cleanup_local": True, "cleanup_paths": [f"{places}/flightline-*"]}
    said = play("-i", "inventory/demo", "--limit", "gpu-01", "--check", **meant)
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{places}/flightline-old" in said.stdout and "changed less than a run's life ago" in said.stdout
    assert names(places) == ["flightline-old", "flightline-young"]
    done = play("-i", "inventory/demo", "--limit", "gpu-01", **meant)
    assert done.returncode == 0 and names(places) == ["flightline-young"]
