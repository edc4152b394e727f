"""Takes a remedy past every place that it comes by and prints what each says, as JSON; test_remedies.py runs it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import CliRunner

from flightline.cli import cli
from flightline.cloud import alerts
from flightline.cloud.functions.storage import records
from flightline.fleet.judgement import judge_run
from flightline.healing.journal import incident as incidents
from flightline.healing.steps.nodes import AnsibleNodes, NodeReply
from flightline.record.schema import SCHEMA_FILE
from flightline.report import jsonfile
from flightline.store.sqlite import SqliteStore
from flightline.tell.digest import Digest, render
from flightline_node.judge.checks import CHECKS
from flightline_node.model import Reason, Remedy
from tests.corpus.material import demo
from tests.unit.functions import samples
from tests.unit.healing.made import incident
from tests.unit.made import a_run, finding, record
from tools import catalogue, schemas


def run(*words: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code in (0, 1), (words, done.output, done.exception)
    return done.output


def sent(fail: Mapping[str, Any]) -> str:
    """What the function that stores a node's answer tells people."""
    whole = {key: value for key, value in samples.record(findings=[fail]).items() if value is not None}
    jsonschema.validate(whole, json.loads(SCHEMA_FILE.read_text()))
    result = records.NodeResult("1", "r1", records.admitted(whole, samples.NODE))
    return render(Digest("t", alerts=tuple(records.alerts(result))))


def judged(word: str, bundle: Path) -> str:
    bundle.mkdir()
    (bundle / "nvidia-smi.xml").write_bytes(dict(demo("p5.48xlarge"))["nvidia-smi.xml"])
    few = Reason("too_few", "GPUs are missing", Remedy(word))
    CHECKS["gpu_count"] = replace(CHECKS["gpu_count"], evaluate=lambda context: [context.fail(few, "7 of 8")])
    return run("judge", bundle, "--instance-type", "p5.48xlarge")


def taken(word: str) -> list[str]:
    """The action that a node is asked for."""
    asked: list[str] = []

    class Nodes(AnsibleNodes):
        def ask(self, hosts: Any, action: str, token: int, more: Any = None) -> dict[str, NodeReply]:
            asked.append(action)
            return {host: NodeReply({"outcome": incidents.DONE}) for host in hosts}

    Nodes(()).repair("a", Remedy(word), incident("a"))
    return asked


def main(word: str, place: Path) -> dict[str, Any]:
    schemas.main([])
    fail = finding("gpu_count", "FAIL", remedy=word, message="7 of 8 GPUs")
    said: dict[str, Any] = {"function": sent(fail), "judge": judged(word, place / "bundle"), "taken": taken(word)}
    files = {kind: place / f"report.{kind}" for kind in ("html", "json", "junit")}
    store = place / "runs.sqlite"
    with SqliteStore(store) as db:
        db.start(a_run("a", "b"))
        db.save("r1", record("a", fail, finding("xid", "FAIL", remedy="RESET_GPU")))
        db.save("r1", record("b"))
        db.finish("r1", "2026-11-21T10:00:30+00:00", "no-go")
        report = judge_run(db, "r1")
    said["first"] = report.rows[0].troubles[0].root["remedy"]
    said["alert"] = render(Digest("t", alerts=tuple(alerts.alerts_of(report))))
    writes = [part for kind, path in files.items() for part in (f"--{kind}", path)]
    said["terminal"] = run("report", "r1", "--store", store, *writes)
    said |= {kind: path.read_text() for kind, path in files.items()}
    jsonschema.validate(json.loads(said["json"]), jsonfile.schema())
    said["plan"] = run("remediate", "--store", store, "--scheduler", "none", "--run", "r1")
    said["docs"] = catalogue.render(CHECKS.values())
    return said


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))  # noqa: T201
