"""The whole way of a run: asked of the training input function, started by its document, interrupted, resumed, listed.

Real: the functions' code, the SSM document's script in a shell, the launcher, the AWS command line, torchrun and the job.
What stands in: moto for EC2, S3, DynamoDB and Systems Manager; this test for the agents of Systems Manager and CloudWatch
(it runs the script, and hands the lines on); a script for systemctl; a command that writes down each ask for the gate.
"""

import json
import os
import re
import shlex
import signal
import subprocess

import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.cloud.functions.common import stamps
from flightline.cloud.functions.training_input import handler
from flightline.cloud.functions.training_input.data import Data
from flightline_node.tell import logline
from infra.planning import documents
from tests.e2e.test_aws_functions import BUCKET, DATA, TRAINING, Stack
from tests.emulated import Cloud, lead_to
from tests.node_programs import TRAIN
from tests.unit.functions import samples

from . import table
from .conftest import DATA as CONTENT
from .launch import EVERY, PYTHON, ROOT, SIZES, STEPS, curve, events
from .test_launcher import kill, wait_for

pytestmark = pytest.mark.usefixtures("aws_command")
DOCUMENT = "demo-start-training"
JOB = "llama-1"
REQUEST = {
    "request_id": "2026-11-23-a",
    "job": JOB,
    "dataset": "c4",
    "model": "tiny",
    "data": {"prefix": "c4/", "suffixes": [".bin"]},
    "nodes": {"all": True, "need": 1},
    "parameters": {"keep-last": "4"},
}


@pytest.fixture
def stack(monkeypatch):
    server = Cloud()
    lead_to(server, monkeypatch)
    made = Stack(server, monkeypatch)
    server.client("ssm").create_document(
        Name=DOCUMENT, DocumentType="Command", Content=json.dumps(documents.training())
    )
    server.client("s3").put_object(Bucket=DATA, Key="c4/data.bin", Body=CONTENT)
    yield made
    server.close()


def function(stack):
    client = stack.cloud.client
    data = Data(client("s3"), DATA, BUCKET, lambda: 600_000)
    return handler.build(stack.services("training-input"), client("ec2"), client("ssm"), data, DOCUMENT)


def configured(place):
    """A node as the role training leaves it, under one directory; its systemctl starts the unit's ExecStart."""
    node = place / "node"
    for folder in ("jobs", "tools", "logs"):
        (node / folder).mkdir(parents=True)
    torchrun, systemctl = node / "torchrun", node / "tools" / "systemctl"
    torchrun.write_text(f'#!/bin/sh\nexec {PYTHON} -m torch.distributed.run "$@"\n')
    launcher = shlex.join(map(str, [*TRAIN, JOB, f"--settings={node}/train.json", f"--jobs={node}/jobs",
                                    f"--asked={node}/run/flightline/train"]))  # fmt: skip
    systemctl.write_text(f"#!/bin/sh\n[ \"$*\" = 'start flightline-train@{JOB}.service' ] || exit 5\n"
                         f"{launcher} > {node}/out.txt 2>&1 &\necho $! > {node}/pid\n")  # fmt: skip
    for tool in (torchrun, systemctl):
        tool.chmod(0o755)
    settings = {"torchrun": str(torchrun), "ranks": 2, "environment": {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                "gate": ["sh", "-c", f"echo asked >> {node}/gate"], "logs": f"{node}/logs", "restarts": 8, "pause_s": 1,
                "join_s": 60, "grace_s": 60, "node_usd_per_hour": 3600}  # fmt: skip
    command = ["-m", "training.job", "--data", f"{place}/data.bin", "--checkpoints", f"{place}/ck", "--journal", f"{place}/logs",
               *[f"--{name}={value}" for name, value in SIZES.items()], f"--steps={STEPS}", f"--checkpoint-every={EVERY}"]  # fmt: skip
    (node / "train.json").write_text(json.dumps(settings))
    (node / "jobs" / f"{JOB}.json").write_text(
        json.dumps({"command": command, "workdir": str(ROOT), "journal": f"{place}/logs"})
    )
    return node


def carried_out(command, node):
    """What the agent of Systems Manager does with a command: the parameters into the script, and a shell for it."""
    document = documents.training()
    script = "\n".join(document["mainSteps"][0]["inputs"]["runCommand"])
    for name, about in document["parameters"].items():
        (value,) = command["Parameters"][name]
        assert re.fullmatch(about["allowedPattern"], value), name
        script = script.replace(f"{{{{ {name} }}}}", value)
    script = script.replace("/run/flightline", f"{node}/run/flightline")
    environment = {**os.environ, "PATH": f"{node}/tools:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", script], check=True, env=environment, timeout=120)


def preloaded(stack, manifest, place):
    """Instead of playbooks/preload.yml: what the manifest names, where all nodes see it."""
    text = (
        stack.cloud.client("s3").get_object(Bucket=BUCKET, Key=manifest.removeprefix(f"s3://{BUCKET}/"))["Body"].read()
    )
    (row,) = json.loads(text)["objects"]
    found = stack.cloud.client("s3").get_object(Bucket=DATA, Key=row["key"])["Body"].read()
    (place / "data.bin").write_bytes(found)


def listed():
    said = CliRunner().invoke(cli, ["runs", "--training", TRAINING, "--dataset", "c4", "--json"])
    (one,) = json.loads(said.output)
    return one


def test_from_the_request_to_a_resumed_run_that_is_listed(stack, place, whole):
    # A node is asked for before a preflight has proven it: refused. Then its record comes, and the same request starts.
    instance = stack.node("gpu-01")
    refused = function(stack).handle(REQUEST)
    assert (refused["status"], refused["reasons"]) == (
        "refused", ["0 nodes are go, 1 needed", f"{instance}: never judged by a preflight"])  # fmt: skip
    record = samples.record(instance, "gpu-01", started_at=stamps.now())
    stack.storage().handle(
        samples.envelope(logline.lines("node", "self-gpu-01", record), stream=samples.stream_of(instance))
    )
    answer = function(stack).handle(REQUEST)
    assert (answer["status"], answer["nodes"], answer["objects"]) == ("started", 1, 1)

    # The command reaches the node, whose unit starts the job on the manifest's data.
    node = configured(place)
    preloaded(stack, answer["manifest"], place)
    (command,) = stack.cloud.client("ssm").list_commands()["Commands"]
    try:
        carried_out(command, node)
        wait_for(place, 0, "checkpoint", "a checkpoint", step=2 * EVERY)

        # A rank dies, and the launcher starts the job again by itself from the last checkpoint.
        killed = kill(place, 1)
        resumed = wait_for(place, 0, "step", "a step of the second start", attempt=1)
        wait_for(place, 0, "finished", "the end", attempt=1)
        assert resumed["step"] > 1
        records = node / "logs" / JOB / "records.jsonl"
        ended = table.until(lambda: '"status":"finished"' in records.read_text(), "the launcher tells the end")
    finally:
        ended_or_killed(node)
    assert ended
    table.add("SIGKILL of a rank of a run that was asked of the function", "rank 1 vanished", place / "logs", killed)
    assert curve(place / "logs") == whole
    assert (node / "gate").read_text().split() == ["asked", "asked"], "before each start"

    # What the launcher said reaches the table through the storage function, and is listed.
    lines = records.read_text().splitlines()
    assert stack.storage().handle(samples.envelope(lines, stream=samples.stream_of(instance, "-training")))[
        "training"
    ] == len(lines)
    one = listed()
    assert (one["run"], one["status"], one["manifest"]) == (REQUEST["request_id"], "finished", answer["manifest"])
    assert (one["nodes"], len(one["interruptions"]), one["step"]) == (1, 1, STEPS)
    assert one["checkpoints"][-1]["step"] == STEPS and one["cost_usd"] > 0 and len(one["code"]) == 64
    metrics = [json.loads(line) for line in (node / "logs" / JOB / "metrics.jsonl").read_text().splitlines()]
    assert {"TrainLoss", "TrainCost"} <= {name for line in metrics for name in line}
    assert events(place / "logs", 0)[0]["event"] == "start"


def ended_or_killed(node):
    """The launcher, if it is still there: told to end, so that it ends its ranks."""
    if (node / "pid").exists():
        pid = int((node / "pid").read_text())
        try:
            os.kill(pid, signal.SIGTERM)
            table.until(lambda: not os.path.exists(f"/proc/{pid}"), "the launcher ends")
        except ProcessLookupError:
            pass
