"""playbooks/preload.yml through real Ansible on this machine; lfs and the AWS CLI are simulated (test_preload of the role)."""

import os
from pathlib import Path

import pytest

from tests.beds import BIN, ROOT, program, ran
from tests.node_programs import installed
from tests.unit.roles.test_preload import AWS, LFS, body

INVENTORY = """gpu_nodes:
  hosts: {node-1: {}, node-2: {}}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    flightline_stack: {fsx_data_repository: "s3://b-data"}
"""


@pytest.fixture
def play(tmp_path):
    """A run of the playbook over a directory with these files."""
    tools, root = tmp_path / "bin", tmp_path / "data"
    for path in (tools, root):
        path.mkdir()
    for name, text in (("lfs", LFS), ("aws", AWS)):
        program(tools / name, text)
    installed("preload", tools)
    (tmp_path / "inventory.yml").write_text(INVENTORY)

    def call(keys, **given):
        for key in keys:
            (root / key).write_bytes(b"x")
        (tmp_path / "m.json").write_text(body(objects=[{"key": key, "size": 1} for key in keys]))
        given = {"link": f"s3://b-data={root}", "progress_file": f"{tmp_path}/p", "preload_every_s": 1, **given}
        extra = [word for key, value in {**given, "ansible_become": False}.items() for word in ("-e", f"{key}={value}")]
        # Ansible asks for a job in the account's home, and HOME may be another.
        home = str(Path("~root" if os.geteuid() == 0 else "~").expanduser())
        env = {**os.environ, "HOME": home, "MANIFEST": str(tmp_path / "m.json")}
        env["PATH"] = f"{tools}:{BIN}:{os.environ['PATH']}"
        argv = [BIN / "ansible-playbook", "-i", tmp_path / "inventory.yml", "playbooks/preload.yml", *extra]
        return ran(*argv, cwd=ROOT, env=env, timeout=120)

    return call


MANIFEST = "s3://b-results/training/job/r.json"


def test_one_node_fetches_for_all_and_the_progress_is_told(play):
    ended = play(["a", "b"], manifest=MANIFEST)
    assert ended.returncode == 0, ended.stdout
    assert "preload: 2 of 2 files" in ended.stdout and "node-2" not in ended.stdout


def test_what_did_not_come_is_named_and_fails_the_play(play):
    ended = play(["a", "never"], manifest=MANIFEST, deadline_min=0.05)
    assert ended.returncode == 2
    assert "/never: still in S3 only when the time was over; wanted: every file" in ended.stdout


def test_without_a_manifest_nothing_is_asked(play):
    ended = play(["a"])
    assert ended.returncode == 2 and "manifest not set" in ended.stdout
