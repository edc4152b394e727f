"""The archive for a head node: the same bytes each time, and a flightline that runs from it."""

import os
import subprocess
import sys

from tools import controlpackage


def test_two_builds_are_the_same_bytes(tmp_path):
    one = controlpackage.build(tmp_path / "a.tar.gz")
    assert one.read_bytes() == controlpackage.contents()


def test_it_runs_from_where_it_is_unpacked(tmp_path):
    archive, tree = controlpackage.build(tmp_path / "a.tar.gz"), tmp_path / "tree"
    tree.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", tree], check=True)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}/tree:{tmp_path}/tree/module_utils", "PYTHONSAFEPATH": "1"}
    show = "from flightline.run.playbooks import find; print(find().playbook('remediate'), find().playbook('preflight').parent / 'library')"
    done = subprocess.run(
        [sys.executable, "-c", show], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    playbook, library = done.stdout.split()
    assert playbook == f"{tmp_path}/tree/playbooks/remediate.yml", done.stderr
    assert os.path.isfile(f"{library}/flightline_node.py"), "the links beside the playbooks are there"


def test_it_asks_pip_for_nothing_that_makes_stacks():
    wanted = controlpackage.requirements()
    assert "ansible-core==" in wanted and "boto3==" in wanted
    assert "pulumi" not in wanted and "\nansible==" not in f"\n{wanted}"
