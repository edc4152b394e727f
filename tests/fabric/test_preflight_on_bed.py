"""A deep preflight ends with the test over several nodes: one verdict, one table, one exit status, over real MPI traffic.

The nodes' own checks are cut down to one (memory): these hosts have no GPU.
"""

import json
import os

import pytest
import yaml

from tests.beds import BIN, ROOT, flightline, ran
from tests.fabric.bed import NEEDED, RATE_MBIT, bed

pytestmark = NEEDED


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with bed(tmp_path_factory.mktemp("bed"), 4) as made:
        listed = yaml.safe_load(made.inventory.read_text())
        program = f"{made.place}/{{collective}}_perf 128 128 5"
        fabric = {"run": "always", "program": program, "ranks": 1, "deadline_s": 40, "least_share": 0.6}
        fabric |= {"launcher_options": made.options, "collectives": ["all_reduce"]}
        listed["all"]["vars"] |= {"instance_type": "none", "flightline_fabric": fabric}
        made.inventory.write_text(yaml.safe_dump(listed))
        yield made


def preflight(hosts, place, *more):
    places = ("--report-dir", place / "report", "--store", place / "runs.sqlite")
    done = flightline("preflight", "-i", hosts.inventory, "--level", "deep", "--check", "memory", *places, *more)
    assert "Traceback" not in done.stdout + done.stderr
    return done, json.loads((place / "report" / "report.json").read_text())


def test_the_slow_host_is_no_go_in_the_one_verdict_and_the_lists_name_the_others(hosts, tmp_path):
    hosts.shape("n2", RATE_MBIT / 4)
    try:
        done, report = preflight(hosts, tmp_path)
    finally:
        hosts.shape("n2")
    nodes = {node["host"]: node for node in report["nodes"]}
    assert done.returncode == 1 and report["verdict"] == "no-go", done.stdout
    assert {name for name, node in nodes.items() if node["verdict"] == "no-go"} == {"n2"}, done.stdout
    (bad,) = [one for one in nodes["n2"]["findings"] if one["check"] == "fabric"]
    assert bad["status"] == "FAIL" and 0 < bad["measured"] < bad["expected"] and bad["remedy"] == "REPLACE"
    listed = (tmp_path / "report" / "go.mpi").read_text()
    assert listed == "".join(f"{hosts.address(name)} slots=1\n" for name in ("n0", "n1", "n3"))
    assert (tmp_path / "report" / "go.slurm").read_text() == "n[0-1,3]\n"


def test_a_healthy_bed_is_go_and_enough_of_it_is_asked_for(hosts, tmp_path):
    done, report = preflight(hosts, tmp_path, "--need", "5")
    assert report["verdict"] == "go" and report["counts"]["go"] == 4, done.stdout
    assert done.returncode == 1 and "4 nodes are go, 5 needed" in done.stdout
    assert all(node["cells"]["fabric"] == "PASS" for node in report["nodes"])


def test_a_mistake_in_its_settings_ends_the_run_before_any_node_is_touched(hosts, tmp_path):
    (tmp_path / "more.yml").write_text("all: {vars: {flightline_fabric: {launchr: srun}}}\n")
    inventories = ("-i", hosts.inventory, "-i", tmp_path / "more.yml")
    done = flightline("preflight", *inventories, "--level", "deep", "--store", tmp_path / "runs.sqlite")
    assert done.returncode == 2 and "did you mean launcher" in done.stderr and not (tmp_path / "runs.sqlite").exists()


@pytest.mark.parametrize("bad", ["n2", ""])
def test_the_playbook_alone_names_the_slow_host_and_clears_a_healthy_bed(hosts, tmp_path, bad):
    """The inventory's flightline_fabric says how; nothing else is given."""
    env = {**os.environ, "FLIGHTLINE_STORE": str(tmp_path / "runs.sqlite"), "PWD": str(ROOT)}
    if bad:
        hosts.shape(bad, RATE_MBIT / 4)
    try:
        done = ran(BIN / "ansible-playbook", "-i", hosts.inventory, "playbooks/fabric.yml", cwd=ROOT, env=env)
    finally:
        hosts.shape("n2")
    said = done.stdout + done.stderr
    assert "Traceback" not in said and (done.returncode != 0) == bool(bad), said
    assert ("3 of 4 nodes healthy" if bad else "4 of 4 nodes healthy") in said, said
    assert ("node         n2" in said) == bool(bad), said
