"""A deep preflight ends with the test over several nodes: one verdict, one table, one exit status, over real MPI traffic.

The nodes' own checks are cut down to one (memory): these hosts have no GPU.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fabric.bed import MISSING, RATE_MBIT, bed
from tests.fabric.test_on_bed import ROOT

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces"),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with bed(tmp_path_factory.mktemp("bed"), 4) as made:
        listed = yaml.safe_load(made.inventory.read_text())
        listed["all"]["vars"] |= {
            "instance_type": "none",
            "flightline_fabric": {
                "run": "always",
                "program": f"{made.place}/{{collective}}_perf 128 128 5",
                "ranks": 1,
                "deadline_s": 40,
                "launcher_options": made.options,
                "least_share": 0.6,
                "collectives": ["all_reduce"],
            },
        }
        made.inventory.write_text(yaml.safe_dump(listed))
        yield made


def preflight(hosts, place, *more):
    argv = [sys.executable, "-m", "flightline", "preflight", "-i", str(hosts.inventory), "--level", "deep"]
    argv += ["--check", "memory", "--report-dir", str(place / "report"), "--store", str(place / "runs.sqlite"), *more]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
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
    argv = [
        sys.executable,
        "-m",
        "flightline",
        "preflight",
        "-i",
        str(hosts.inventory),
        "-i",
        str(tmp_path / "more.yml"),
    ]
    (tmp_path / "more.yml").write_text("all: {vars: {flightline_fabric: {launchr: srun}}}\n")
    argv += ["--level", "deep", "--store", str(tmp_path / "runs.sqlite")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and "did you mean launcher" in done.stderr and not (tmp_path / "runs.sqlite").exists()


@pytest.mark.parametrize("bad", ["n2", ""])
def test_the_playbook_alone_names_the_slow_host_and_clears_a_healthy_bed(hosts, tmp_path, bad):
    """The inventory's flightline_fabric says how; nothing else is given."""
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(hosts.inventory), "playbooks/fabric.yml"]
    env = {**os.environ, "FLIGHTLINE_STORE": str(tmp_path / "runs.sqlite"), "PWD": str(ROOT)}
    if bad:
        hosts.shape(bad, RATE_MBIT / 4)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    finally:
        hosts.shape("n2")
    said = done.stdout + done.stderr
    assert "Traceback" not in said and (done.returncode != 0) == bool(bad), said
    assert ("3 of 4 nodes healthy" if bad else "4 of 4 nodes healthy") in said and ("node         n2" in said) == bool(
        bad
    ), said
