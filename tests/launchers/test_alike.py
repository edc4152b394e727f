"""The same fleet asked by all four launchers: the verdict, every finding and the report's files are the same bytes.

Real: Ansible, Slurm, the stack's document as processes, the node library. Stand-ins: the nodes' tools, Systems Manager's
agents, and kubectl (its lists are files, its `exec` runs here; tests/kubernetes has a real API server).
"""

import json
import os
import re
import shlex
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from flightline import contract
from flightline.kubernetes.agent import LIBRARY, PACKAGE, own_library_name
from flightline.report.junit import attribute
from flightline.store.sqlite import SqliteStore
from tests.beds import program, ran
from tests.emulated import lead_to
from tools import nodepackage

from .conftest import NODES, demo, instance, managed
from .test_slurm import OF_ONE_RUN

WAYS = ("ansible", "slurm", "ssm", "kubernetes")
SILENT = 5
BROKEN: tuple[str, ...] = ("gpu_fallen_off_bus", "remap_pending", "driver_drift", "tool_hung", "unreachable")
BROKEN += ("tool_garbage", "xid_replace")
FAULTS = tuple(f"{fault}=gpu-{number:02}" for number, fault in enumerate(BROKEN, 1))
"""The silent node is the unreachable one."""
LATE = f"gpu-{SILENT:02}"

KUBECTL = """\
#!{python}
import os, sys
words = sys.argv[1:]
if "exec" not in words:
    print(open(os.path.join({place}, words[1] + ".json")).read())
    sys.exit()
os.execv("/bin/sh", ["/bin/sh", "-c", words[-1].replace({inside}, {package})])
"""


def kubectl(place: Path) -> Path:
    """A directory with a kubectl of the test, whose cluster has the fleet's nodes, one of them without its agent."""
    package = nodepackage.build(place / PACKAGE).path
    names = [f"gpu-{number:02}" for number in range(1, NODES + 1)]
    volumes = [{"name": "library", "configMap": {"name": own_library_name()}}]
    labels = {contract.KUBE_GPU_LABEL: contract.KUBE_LABEL_TRUE}
    lists = {
        "nodes": [{"metadata": {"name": name, "labels": labels}, "spec": {}} for name in names],
        "pods": [
            {"metadata": {"name": f"agent-{name}"}, "spec": {"nodeName": name, "volumes": volumes},
             "status": {"phase": "Unknown" if name == LATE else "Running"}}
            for name in names
        ],
    }  # fmt: skip
    for kind, items in lists.items():
        (place / f"{kind}.json").write_text(json.dumps({"items": items}))
    words = {"place": str(place), "inside": f"{LIBRARY}/{PACKAGE}", "package": shlex.quote(str(package))}
    text = KUBECTL.format(python=sys.executable, **{name: repr(text) for name, text in words.items()})
    program(place / "kubectl", text)
    return place


@pytest.fixture
def everywhere(tmp_path, slurm, cloud, package, monkeypatch):
    """One fleet that all four know, with a node that none of them reaches."""
    lead_to(cloud, monkeypatch)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{kubectl(tmp_path / 'bin')}:/usr/sbin:{os.environ['PATH']}")
    known = lambda n: {"slurm_node_name": f"n{n}", "instance_id": instance(n)}  # noqa: E731
    fleet = demo(tmp_path, {**slurm.env, **cloud.env}, package, known, FAULTS)
    managed(fleet, cloud)
    fleet.agents.ping[instance(SILENT)] = "ConnectionLost"
    slurm.run("scontrol", "update", f"NodeName=n{SILENT}", "State=DOWN", "Reason=silent")
    yield fleet
    fleet.agents.close()
    slurm.run("scontrol", "update", f"NodeName=n{SILENT}", "State=RESUME", check=False)
    slurm.idle_again()


def plain(path: Path, run_id: str, silent: str) -> str:
    """A report's file without what belongs to one run: its id, its clock, and how a silent node was asked."""
    text = path.read_text()
    for words in (json.dumps(silent)[1:-1], attribute(silent), escape(silent)):
        text = text.replace(words, "no connection")
    if path.suffix == ".json":
        report = json.loads(text)
        report["run"] = {name: value for name, value in report["run"].items() if not name.endswith("_at")}
        report["nodes"] = [{k: v for k, v in node.items() if k not in OF_ONE_RUN} for node in report["nodes"]]
        text = json.dumps(report, indent=1)
    return re.sub(r' (timestamp|time)="[^"]*"', "", text).replace(run_id, "RUN")


def words_of(store: Path) -> tuple[str, str]:
    """The latest run, and what was said of the silent node: how it was asked, so it alone differs."""
    with SqliteStore(store) as opened:
        run_id = opened.runs(1)[0].run_id
        (row,) = (record for record in opened.records(run_id) if record["host"] == LATE)
    return run_id, row["findings"][0]["message"]


def again_of(fleet, store: str) -> dict[str, str]:
    """The report's files of the latest run, made anew as `flightline report` makes them."""
    where = fleet.place / store
    run_id, silent = words_of(where)
    made = {kind: where.parent / f"again.{kind}" for kind in ("json", "junit")}
    flags = [word for kind, path in made.items() for word in (f"--{kind}", str(path))]
    done = ran("flightline", "report", run_id, "--store", where, *flags, env=fleet.env, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    return {kind: plain(path, run_id, silent) for kind, path in made.items()}


def test_four_launchers_give_the_same_bytes_with_a_silent_node_and_a_late_record(everywhere):
    fleet, found, late = everywhere, {}, None
    for via in WAYS:
        status, said = fleet.preflight("--via", via, store=f"{via}/runs.sqlite", timeout=400)
        assert status == 1 and "NO-GO" in said, said
        (report,) = (fleet.place / via / "reports").iterdir()
        names = sorted(path.name for path in report.iterdir() if path.suffix != ".html")
        found[via] = {name: plain(report / name, *words_of(fleet.place / via / "runs.sqlite")) for name in names}
    for via in WAYS[1:]:
        assert found[via].keys() == found["ansible"].keys()
        for name, text in found["ansible"].items():
            assert found[via][name] == text, f"{name} by {via}"
    statuses = {node["host"]: node["status"] for node in json.loads(found["ansible"]["report.json"])["nodes"]}
    assert statuses[LATE] == "UNREACHABLE" and statuses["gpu-08"] != "UNREACHABLE"
    assert len({statuses[f"gpu-{n:02}"] for n in (1, 3, SILENT)}) > 1, statuses

    for via in WAYS:
        with SqliteStore(fleet.place / via / "runs.sqlite") as store:
            run_id = store.runs(1)[0].run_id
            if late is None:
                well = next(record for record in store.records(run_id) if record["host"] == "gpu-08")
                late = {**well, "host": LATE, "instance_id": instance(SILENT)}
            assert store.save_late_record(run_id, late)
    again = {via: again_of(fleet, f"{via}/runs.sqlite") for via in WAYS}
    assert all(again[via] == again["ansible"] for via in WAYS)
    judged = json.loads(again["ansible"]["json"])
    assert judged["late"] == {"hosts": [LATE], "first_verdict": "no-go"}
    assert "duplicate_gpu" in {finding["check"] for finding in judged["fleet"]}, "it says the GPUs of another node"
