"""The demo fleet through Ansible: the faults that only a fleet can show, and healthy nodes that stay go beside them."""

import json
import os

from flightline.demo import FAULTS, write_inventory
from flightline.demo.faults import FLEET
from flightline.demo.inventory import node_names
from tests.beds import BIN, ROOT, ran


def preflight(inventory, out):
    """Run the playbook; returns the exit status and the report."""
    places = {"FLIGHTLINE_STORE": f"{out}/runs.sqlite", "FLIGHTLINE_REPORT_DIR": f"{out}/report"}
    env = {**os.environ, **places, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    done = ran(BIN / "ansible-playbook", "playbooks/preflight.yml", "-i", inventory, cwd=ROOT, env=env, timeout=300)
    reports = list((out / "report").rglob("report.json"))
    assert len(reports) == 1, done.stdout[-3000:] + done.stderr[-3000:]
    return done.returncode, json.loads(reports[0].read_text())


def bad(report):
    """Host -> {check: remedies} of what blocks it."""
    found = {}
    for row in report["nodes"]:
        for finding in row["findings"]:
            if finding["status"] in ("FAIL", "UNKNOWN", "UNREACHABLE"):
                found.setdefault(row["host"], {}).setdefault(finding["check"], set()).add(finding["remedy"])
    return found


def test_drift_and_a_node_that_does_not_answer(tmp_path):
    drifts = {name: fault for name, fault in FAULTS.items() if fault.scope == FLEET}
    names = node_names(2 * len(drifts) + 3)
    broken = dict(zip(drifts, names, strict=False))
    application, silent = names[-2:]
    faults = [*broken.items(), ("xid_restart_app", application), ("unreachable", silent)]
    write_inventory(tmp_path / "fleet", len(names), "p5.48xlarge", faults)

    status, report = preflight(tmp_path / "fleet", tmp_path)

    assert status == 1
    assert sorted(row["host"] for row in report["nodes"]) == names
    silence = FAULTS["unreachable"]
    wanted = {node: {drifts[name].check: {str(drifts[name].remedy)}} for name, node in broken.items()}
    assert bad(report) == {**wanted, silent: {silence.check: {str(silence.remedy)}}}
    assert {finding["check"]: finding["hosts"] for finding in report["fleet"]} == {
        drifts[name].check: [node] for name, node in broken.items()
    }
    assert report["counts"]["unreachable"] == 1
