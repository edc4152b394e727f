"""The collection and the wheel, installed where no checkout is: what `make collection` makes is enough to work with."""

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.delivery.installed import Place, installed
from tools import collection

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = installed(tmp_path_factory.mktemp("elsewhere"))
    status, out = made.run("flightline", "demo", "--out", "fleet", "--nodes", "3", "--fault", "gpu_missing=gpu-02")
    assert status == 0, out
    return made


def test_nothing_comes_from_the_checkout(place):
    code = "import flightline, flightline_node, sys; print(flightline.__file__, flightline_node.__file__, *sys.path)"
    status, out = place.run(place.venv / "bin" / "python", "-c", code)
    assert status == 0
    seen = out.split()
    assert [Path(path).is_relative_to(place.venv) for path in seen[:2]] == [True, True], out
    assert not any(Path(path) in (ROOT, ROOT / "module_utils") for path in seen[2:])


def test_the_wheel_has_every_file(place):
    shipped = set(zipfile.ZipFile(next((place.path / "dist").glob("*.whl"))).namelist())
    listed = subprocess.check_output(
        ["git", "ls-files", "flightline", "flightline_pulumi", "infra", "module_utils"], cwd=ROOT, text=True
    )
    wanted = {path.removeprefix("module_utils/") for path in listed.splitlines() if (ROOT / path).is_file()}
    assert wanted <= shipped


def test_every_module_of_the_wheel_can_be_imported(place):
    code = (
        "import importlib, pkgutil, flightline, flightline_node, infra.config, infra.planning\n"
        "for p in (flightline, flightline_node, infra.config, infra.planning):\n"
        "    for m in pkgutil.walk_packages(p.__path__, p.__name__ + '.'):\n"
        "        if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "import infra.cost, infra.leftovers"
    )
    status, out = place.run(place.venv / "bin" / "python", "-c", code, AWS_DEFAULT_REGION="us-east-1")
    assert status == 0, out


@pytest.mark.parametrize(
    "command",
    [("ansible-playbook", "-i", "fleet", "flightline.gpu.preflight"), ("flightline", "preflight", "-i", "fleet")],
    ids=["ansible-playbook", "flightline"],
)
def test_the_demo_fleet_is_judged(place, command):
    # The first of the two by Ansible's way, the second by the library that it has kept.
    status, out = place.run(*command)
    assert status == 1 and "NO-GO  2 of 3 nodes go" in out and "gpu-02" in out, out
    kept = list((place.home / ".ansible" / "flightline").glob("*/flightline_node"))
    assert len(kept) == 1
    report = sorted((place.work / ".flightline" / "reports").glob("*/report.json"))
    assert json.loads(report[-1].read_text())["verdict"] == "no-go"


def test_without_an_inventory_the_command_says_what_to_do(place):
    status, out = place.run("flightline", "preflight")
    assert status == 2 and "flightline demo --out fleet" in out and "Traceback" not in out, out


def test_without_the_collection_the_command_says_what_to_do(place):
    status, out = place.run("flightline", "preflight", "-i", "fleet", ANSIBLE_COLLECTIONS_PATH=str(place.path / "none"))
    assert status == 2 and "ansible-galaxy collection install" in out and "Traceback" not in out, out


def test_a_configuration_of_ones_own_does_not_switch_the_callback_off(place):
    command = ("ansible-playbook", "-i", "fleet", "flightline.gpu.preflight")
    status, out = place.run(*command, ANSIBLE_CONFIG=str(place.work / "none.cfg"))
    assert status == 1 and "NO-GO  2 of 3 nodes go" in out, out


def test_a_library_of_another_version_is_refused(place):
    file = place.root / "plugins" / "module_utils" / "flightline_node" / "model.py"
    before = file.read_text()
    file.write_text(before + "\n# another version\n")
    try:
        status, out = place.run("flightline", "preflight", "-i", "fleet")
    finally:
        file.write_text(before)
    assert status == 1 and "install both from one build" in " ".join(out.split()), out
    assert "0 of 3 nodes go" in out


def play(place: Place, text: str, *more: str) -> tuple[int, str]:
    (place.work / "play.yml").write_text(text)
    return place.run("ansible-playbook", "-i", "localhost,", "-c", "local", "play.yml", *more)


def test_filters_and_former_names_are_found(place):
    place.run("flightline", "preflight", "-i", "fleet")
    status, out = play(
        place,
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.debug:\n"
        "        msg: \"{{ ('p5.48xlarge' | flightline.gpu.flightline_software).cuda_minimum }}\"\n"
        "    - flightline.gpu.flightline_verdict: {hosts: [gpu-01]}\n"
        "    - flightline.gpu.flightline_verdict_info: {fail_on_no_go: false}\n      register: answer\n"
        "    - ansible.builtin.assert: {that: [answer.verdict == 'no-go', \"'gpu-02' in answer.no_go\"]}\n",
    )
    assert status == 0, out


def test_every_module_is_documented_under_its_full_name(place):
    status, out = place.run("ansible-doc", "--list", "--json", "flightline.gpu")
    assert status == 0, out
    names = {path.stem for path in (ROOT / "library").glob("*.py")} | set(collection.RENAMED)
    assert {name.removeprefix("flightline.gpu.") for name in json.loads(out)} <= names
    assert len(json.loads(out)) >= len(names) - len(collection.RENAMED)


@pytest.mark.parametrize("name", ["site", "monitor", "cleanup", "validate"])
def test_the_other_playbooks_resolve(place, name):
    inventory = ("-i", "fleet", "-i", place.root / "inventory" / "roles.yml")
    status, out = place.run("ansible-playbook", *inventory, "--list-tasks", f"flightline.gpu.{name}")
    assert status == 0 and "ERROR" not in out, out


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a role changes the machine; its own mounts need root")
def test_a_role_runs_by_its_full_name(place):
    """Its first part, on folders in memory that this process alone sees: nothing of the machine is changed, no systemd asked."""
    (place.work / "role.yml").write_text(
        "- hosts: all\n  gather_facts: true\n  become: false\n  vars: {instance_type: p5.48xlarge}\n"
        "  tasks:\n    - ansible.builtin.import_role: {name: flightline.gpu.flightline_node, tasks_from: package}\n"
    )
    folders = ["/opt", "/etc/flightline", "/var/lib/flightline", "/var/log/flightline", "/usr/local/sbin"]
    mounts = " && ".join(f"mkdir -p {folder} && mount -t tmpfs none {folder}" for folder in folders)
    ansible = "ansible-playbook -i localhost, -c local role.yml"
    runs = f"{ansible} && {ansible} && python3 /opt/flightline/flightline-node.pyz --help && ls -d /opt/flightline/*/"
    status, out = place.run("unshare", "--mount", "sh", "-c", f"{mounts} && {runs}")
    assert status == 0, out
    recaps = re.findall(r"changed=(\d+) .*failed=0", out)
    assert len(recaps) == 2 and recaps[0] != "0" and recaps[1] == "0", out
    assert "usage:" in out and re.search(r"^/opt/flightline/\w{16,}/$", out, re.M), out
