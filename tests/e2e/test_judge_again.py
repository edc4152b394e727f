"""`flightline judge` on a bundle brought back gives the findings that the node gave, at every level. The tools are simulated."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.commands.judge import command
from flightline.demo import FAULTS
from flightline_node.judge.checks import CHECKS
from flightline_node.model import LEVELS, UNSAID
from flightline_node.tell.evidence import DIRECTORY
from tests.beds import simulated

ACTIVE = [name for name, fault in FAULTS.items() if fault.level in ("standard", "deep")]
CASES = [
    ("p5.48xlarge", "standard", ()),
    ("p6-b200.48xlarge", "deep", ()),
    ("p5.48xlarge", "quick", ("gpu_fallen_off_bus",)),
    ("p4d.24xlarge", "quick", ("nvlink_inactive", "clock_adrift")),
    ("p5.48xlarge", "quick", ("lustre_evicted", "disk_full", "efa_missing")),
    *((FAULTS[name].type, FAULTS[name].level, (name,)) for name in ACTIVE[:3]),
]


@pytest.fixture(scope="module")
def park(tmp_path_factory):
    return tmp_path_factory.mktemp("park")


def on_the_node(park, host, instance_type, level, faults, keeps=False):
    bundle, folders = park / host / "bundle", (DIRECTORY,) * keeps
    return simulated(park / host, instance_type, faults, level, bundle=bundle, folders=folders), bundle


def judged(bundle, *arguments):
    result = CliRunner().invoke(command, [str(bundle), "--json", *arguments])
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(("instance_type", "level", "faults"), CASES)
def test_same_findings(park, instance_type, level, faults):
    host = f"{instance_type}-{level}-{'-'.join(faults) or 'healthy'}".replace(".", "-")
    record, bundle = on_the_node(park, host, instance_type, level, faults)
    again = judged(bundle, "--level", level)
    assert again["findings"] == [{**UNSAID, **finding} for finding in record["findings"]]
    assert (again["verdict"], again["measures"]) == (record["verdict"], record["measures"])
    states = {item["file"]: item["state"] for item in again["files"]}
    there = {path.name for path in bundle.iterdir()}
    assert there >= {"manifest.json", "kernel.log", "nvidia-smi.xml"}
    assert {name for name, state in states.items() if state == "read"} == there, "a run's own files are all read"

    # Without a level the same, and a SKIP for each check of a level that was not collected.
    whole = [finding for finding in judged(bundle)["findings"] if not left_out(finding, level)]
    assert whole == [finding for finding in again["findings"] if not left_out(finding, level)]


def left_out(finding, level):
    above = LEVELS.index(CHECKS[finding["check"]].level) > LEVELS.index(level)
    return finding["status"] == "SKIP" and (above or finding["message"] == "not collected")


def test_the_faults_that_the_cases_name_are_there():
    assert {name for _, _, faults in CASES for name in faults} <= set(FAULTS)
    assert ACTIVE


def test_the_evidence_that_a_failed_node_keeps_can_be_judged(park):
    record, _ = on_the_node(park, "keeps", "p5.48xlarge", "quick", ("remap_failure",), keeps=True)
    evidence = record["evidence"]
    assert Path(evidence["archive"]).parent == park / "keeps" / "root" / DIRECTORY
    assert "quick run" in evidence["note"]
    (park / "unpacked").mkdir()
    subprocess.run(("tar", "-xf", evidence["archive"], "-C", str(park / "unpacked")), check=True)
    again = judged(park / "unpacked", "--level", "quick")
    assert again["findings"] == [{**UNSAID, **finding} for finding in record["findings"]]


def test_a_good_node_keeps_nothing(park):
    record, _ = on_the_node(park, "good", "p5.48xlarge", "quick", (), keeps=True)
    assert "evidence" not in record
    assert list((park / "good" / "root" / DIRECTORY).iterdir()) == []
