"""The roles' bundle: what is in it, that it is the same twice, and that its play is the push way's."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
import yaml

from infra import link, node_ansible, node_roles
from infra.node_package import package
from infra.planning import user_data
from tests.infra import program, stacks

STACK = "p5-reservation"
KEYS = "ansible.posix.authorized_key"
"""With openssh_keypair of the roles that need other hosts."""


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """A stand-in for ansible-core; the end-to-end test of the boot runs a real one."""
    folder = tmp_path_factory.mktemp("runner")
    (folder / "ansible" / "__pycache__").mkdir(parents=True)
    (folder / "ansible" / "__main__.py").write_text("")
    (folder / "ansible" / "__pycache__" / "x.pyc").write_text("")
    return folder


@pytest.fixture(scope="module")
def bundle(runner):
    return node_roles.contents(stacks.ROOT, runner)


@pytest.fixture(scope="module")
def files(bundle):
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        assert {(one.mtime, one.uid, one.uname) for one in archive} == {(0, 0, "")}
        return {one.name: archive.extractfile(one).read() for one in archive}


def roles_of(files):
    return applied(yaml.safe_load(files["playbooks/node.yml"]))


def applied(plays):
    tasks = [task for play in plays for task in play.get("tasks", []) if "block" in task]
    return [task["vars"]["flightline_role"] for task in tasks]


def test_the_same_checkout_makes_the_same_bytes(bundle, runner):
    assert node_roles.contents(stacks.ROOT, runner) == bundle


def test_a_node_applies_the_roles_of_the_push_way(files):
    pushed = applied(yaml.safe_load((stacks.ROOT / "playbooks/site.yml").read_text()))
    names = roles_of(files)
    assert [role for role in pushed if role not in node_roles.NEED_OTHERS] == names
    assert all(f"roles/{name}/tasks/main.yml" in files for name in names)
    assert files["inventory/roles.yml"] == (stacks.ROOT / "inventory/roles.yml").read_bytes()


def test_what_stays_behind_is_what_talks_to_other_hosts(files):
    """A role that looks at another host would fail on a node alone."""
    for name in roles_of(files):
        texts = [body.decode() for path, body in files.items() if path.startswith(f"roles/{name}/tasks/")]
        assert not [text for text in texts if "hostvars[" in text or "groups[" in text], name


def test_it_has_every_module_of_a_collection_that_the_roles_name(files):
    """Read with Ansible's own eyes: what is no builtin and not ours must be there."""
    tasks = [body.decode() for path, body in files.items() if path.startswith("roles/") and "/tasks/" in path]
    named = {
        word for text in tasks for word in re.findall(r"^\s*(?:- )?((?:[a-z_]+\.){2}[a-z_]+):", text, re.MULTILINE)
    }
    used = {word for word in named if not word.startswith("ansible.builtin.")} - {
        "community.crypto.openssh_keypair",
        KEYS,
    }
    assert {word.rpartition(".")[2] for word in used} >= {"ini_file"}
    for word in used:
        collection, _, module = word.rpartition(".")
        folder = f"collections/ansible_collections/{collection.replace('.', '/')}"
        assert {f"{folder}/plugins/modules/{module}.py", f"{folder}/meta/runtime.yml"} <= set(files), word


def test_every_filter_of_the_roles_loads_on_a_node(files, tmp_path):
    """Filters that came later were skipped there with a warning, and the role that names one would have failed."""
    filters = sorted(name for name in files if name.startswith("plugins/filter/"))
    assert len(filters) > 1
    for name in files:
        if name.startswith(("flightline/", "module_utils/", "plugins/filter/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(files[name])
    loads = "import runpy, sys\nfor name in sys.argv[1:]: runpy.run_path(name)"
    path = {"PYTHONPATH": f"{tmp_path}:{tmp_path / 'module_utils'}", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", loads, *filters], cwd=tmp_path, env=path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("checkout", [False, True], ids=["on a node", "in a checkout"])
def test_a_python_without_our_packages_builds_the_node_package(files, tmp_path, checkout):
    """Role flightline_node does that, on a node with the bundle alone, elsewhere with whatever Python Ansible has."""
    for name, data in files.items():
        if name.startswith(("flightline/", "module_utils/", "tools/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(data)
    argv = [sys.executable, "-S", "-E", "-m", "tools.nodepackage", str(tmp_path / "node.pyz")]
    where = stacks.ROOT if checkout else tmp_path
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256((tmp_path / "node.pyz").read_bytes()).hexdigest() == package(None).sha256


def test_nothing_of_one_stack_and_nothing_compiled_is_in_it(files):
    assert not [name for name in files if name.endswith((".json", ".pyc")) and "group_vars" in name]
    assert not [name for name in files if "__pycache__" in name]
    assert "python/ansible/__main__.py" in files
    assert "inventory/group_vars/aws_ec2/stack.json" not in files


def test_two_plays_with_roles_are_refused():
    with pytest.raises(ValueError, match="wanted one play with roles"):
        node_roles.play("[{hosts: all, roles: [a]}, {hosts: all, roles: [b]}]")


def test_the_checksums_in_the_launch_template_are_those_of_what_is_uploaded():
    run = program.planned(STACK)
    names, plan = stacks.planned_names(STACK), program.user_data(run)
    variables = run.one("node-variables").props
    assert plan["ROLES_URL"] == f"s3://{names.results_bucket}/{run.one('node-roles').props['key']}"
    assert plan["VARIABLES_URL"] == f"s3://{names.results_bucket}/{variables['key']}"
    assert plan["VARIABLES_SHA256"] in variables["key"] and plan["ROLES_SHA256"] in plan["ROLES_URL"]
    assert plan["skip"] == [], "what the roles set up is judged"
    group = run.one("nodes-group")
    assert {run.one("node-roles").urn, run.one("node-variables").urn} <= group.dependencies


def test_the_roles_get_the_outputs_that_the_push_way_gets():
    """But for what comes after the nodes, and their number, which would make a new template each time it changes."""
    run = program.planned(STACK)
    given = json.loads(run.one("node-variables").props["content"])[link.VARIABLE]
    after = {"node_count", "head_instance_id", "placement_group"}
    assert given == {name: value for name, value in run.outputs.items() if name not in after}
    more = program.run(STACK, changes={"gpuNodeCount": 12})
    assert program.user_data(more) == program.user_data(run)


def test_nodes_are_left_to_the_push_way_where_the_stack_says_so():
    run = program.run(STACK, changes={"configureAtBoot": False})
    assert not [one for one in run.requests if one.name in ("node-roles", "node-variables")]
    plan = program.user_data(run)
    assert plan["ROLES_URL"] == "" and plan["skip"] == list(user_data.CONFIGURED_LATER)


def test_a_wheel_is_unpacked_without_what_no_node_needs(tmp_path):
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / "a-1-py3-none-any.whl", "w") as wheel:
        for name in ("ansible/__main__.py", "ansible_test/x.py"):
            wheel.writestr(name, "")
    node_ansible.unpack(tmp_path / "wheels", tmp_path / "python")
    assert [path.name for path in (tmp_path / "python").rglob("*.py")] == ["__main__.py"]


def test_a_runner_that_was_not_fetched_is_named_with_what_to_do(tmp_path):
    (tmp_path / "infra").mkdir()
    (tmp_path / node_ansible.REQUIREMENTS).write_text("")
    with pytest.raises(ValueError, match=r"do `python -m infra\.node_ansible`"):
        node_ansible.runner(tmp_path)


def test_every_requirement_is_pinned_by_version_and_checksum():
    lines = [line for line in (stacks.ROOT / node_ansible.REQUIREMENTS).read_text().splitlines() if line[:1] != "#"]
    assert len(lines) >= 5 and all("==" in line and "--hash=sha256:" in line for line in lines)
