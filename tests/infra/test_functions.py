"""The Lambda functions as infrastructure: what is shipped, what they are given, who may call them.

Pulumi's mocks prove what the program asks for, not that AWS takes it.
"""

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from flightline import contract
from flightline.cloud import items, orders
from flightline.cloud.functions.alert_router import boots
from flightline.cloud.functions.common.claims import LEASE_S
from flightline.cloud.functions.verdict import arrivals
from infra.planning import documents, tables, user_data
from infra.planning import functions as planning
from infra.planning.names import FUNCTIONS
from tests import pythons
from tests.infra import engine, program, stacks

STACK = "p5-reservation"
ASK = documents.preflight()["mainSteps"][0]["name"]
RUNTIME_PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
"""What the Lambda runtime brings: boto3 and what it needs."""


@pytest.fixture(scope="module")
def run() -> engine.Run:
    return program.planned(STACK)


def _lambdas_python() -> str:
    """The Python that Lambda will run, where this machine has it; else the one of the tests."""
    return pythons.find("3.12") or sys.executable


@pytest.mark.parametrize("key", FUNCTIONS)
def test_a_function_runs_from_its_archive_alone(key, tmp_path):
    """With boto3 and the standard library, as in Lambda: a forgotten file would fail only after the deployment."""
    archive = tmp_path / "function.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for path, file in planning.archive(key).items():
            made.write(file, path)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    for name in RUNTIME_PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec and spec.origin
        place = Path(spec.origin)
        place = place.parent if place.name == "__init__.py" else place
        (runtime / place.name).symlink_to(place)
    handler = planning.functions(True, 5, stacks.planned_names(STACK), stacks.place(STACK))[key].handler
    module, _, entry = handler.rpartition(".")
    code = (
        f"import sys; sys.path[:0] = [{str(archive)!r}, {str(runtime)!r}]; import boto3, botocore.config;"
        f"import importlib; print(callable(importlib.import_module({module!r}).{entry}))"
    )
    done = subprocess.run(
        [_lambdas_python(), "-I", "-S", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.strip() == "True", done.stderr


def test_no_invocation_outlives_its_claim():
    plans = planning.functions(True, 5, stacks.planned_names(STACK), stacks.place(STACK))
    assert all(plan.timeout_s < LEASE_S for plan in plans.values())


@pytest.mark.parametrize(
    ("partition", "host"), [("aws", "console.aws.amazon.com"), ("aws-us-gov", "console.amazonaws-us-gov.com")]
)
def test_messages_lead_to_the_dashboard(partition, host):
    names, place = stacks.planned_names(STACK), replace(stacks.place(STACK), partition=partition)
    link = planning.functions(True, 5, names, place)["alert-router"].environment["FLIGHTLINE_LINK"]
    assert link == f"https://{host}/cloudwatch/home?region={place.region}#dashboards/dashboard/{names.dashboard}"


def test_the_functions_and_the_stack_mean_the_same_tables():
    made = tables.training("t")
    wanted = items.table_definition("t", items.TRAINING_INDEXES)
    assert [index["IndexName"] for index in wanted["GlobalSecondaryIndexes"]] == [index.name for index in made.indexes]
    keys = {part["AttributeName"] for part in wanted["AttributeDefinitions"]}
    assert keys == set(made.attributes)


def test_only_rules_and_the_results_bucket_of_this_cluster_may_fill_the_queue():
    names = stacks.planned_names(STACK)
    policy = planning.queue_policy(names, stacks.place(STACK), "q")
    rules, boots = [part for part in policy["Statement"] if part["Effect"] == "Allow"]
    assert rules["Principal"] == {"Service": "events.amazonaws.com"}
    assert rules["Condition"]["ArnLike"]["aws:SourceArn"].endswith(f":rule/{names.cluster}-*")
    assert boots["Principal"] == {"Service": "s3.amazonaws.com"}
    assert boots["Condition"] == {
        "ArnEquals": {"aws:SourceArn": f"arn:aws:s3:::{names.results_bucket}"},
        "StringEquals": {"aws:SourceAccount": stacks.ACCOUNT},
    }


def test_the_router_is_told_of_every_boots_outcome_once_the_queue_takes_it(run):
    """S3 tries the queue at once; the names are those that the boot script writes and the router reads."""
    (told,) = run.of("aws:s3/bucketNotification:BucketNotification")
    queue = next(one for one in told.props["queues"] if one["id"] == "boots")
    assert run.one("functions-events-policy").urn in told.dependencies
    names = stacks.planned_names(STACK)
    assert told.props["bucket"] == names.results_bucket
    plan = user_data.boot_plan(stacks.settings(STACK), names, stacks.place(STACK), "0" * 64)
    key = f"{plan.results_url}/i-0123456789abcdef0/20261121T100000Z-1/outcome.json"
    key = key.removeprefix(f"s3://{names.results_bucket}/")
    assert key.startswith(queue["filterPrefix"]) and key.endswith(queue["filterSuffix"]) and boots.KEY.fullmatch(key)
    assert "$RESULTS_URL/$instance/$started" in user_data.template("flightline-boot")


def test_the_verdict_is_told_of_orders_and_answers_and_of_nothing_that_it_writes(run):
    (told,) = run.of("aws:s3/bucketNotification:BucketNotification")
    found = {one["id"]: one for one in told.props["queues"]}
    assert run.one("functions-answers-policy").urn in told.dependencies
    keys = {
        "answers": f"{contract.CALLS_PREFIX}run/command/i-1/awsrunShellScript/{ASK}/stdout",
        "orders": orders.key_of("20261121T100000Z-abc123"),
    }
    for name, key in keys.items():
        assert key.startswith(found[name]["filterPrefix"]) and key.endswith(found[name]["filterSuffix"])
        assert found[name]["queueArn"].endswith("-verdict-events") and arrivals.place_of(key)
    assert not "runs/x/report.json.gz".endswith(found["orders"]["filterSuffix"]), "a report is no order"
    environment = run.one("functions-verdict").props["environment"]["variables"]
    assert environment["FLIGHTLINE_QUEUE"].endswith(f"/{found['answers']['queueArn'].rpartition(':')[2]}")


def test_only_the_results_bucket_may_fill_the_verdicts_queue():
    policy = planning.answers_policy(stacks.planned_names(STACK), stacks.place(STACK), "q")
    (allowing,) = [part for part in policy["Statement"] if part["Effect"] == "Allow"]
    assert allowing["Principal"] == {"Service": "s3.amazonaws.com"} and "aws:SourceAccount" in str(allowing)


@pytest.mark.parametrize(
    ("document", "parameter", "value"),
    [
        (documents.training, "job", 'x"; reboot; "'),
        (documents.training, "job", "../../etc/passwd"),
        (documents.training, "manifest", "s3://b/$(reboot)"),
        (documents.training, "manifest", "https://evil.example/x"),
        (documents.training, "parameters", "`reboot`"),
        (documents.preflight, "asked", "eJw'; reboot; '"),
        (documents.preflight, "key", "0123456789abcdeg"),
        (documents.preflight, "endS", "60; reboot"),
        (documents.preflight, "installed", "/opt/$(reboot)"),
        (documents.preflight, "installed", "/opt/'x"),
    ],
)
def test_the_ssm_documents_take_nothing_that_the_shell_would_read(document, parameter, value):
    assert not re.fullmatch(document()["parameters"][parameter]["allowedPattern"], value)


def test_no_parameter_of_a_document_is_without_a_pattern():
    for document in (documents.training(), documents.preflight()):
        used = set(re.findall(r"{{ (\w+) }}", str(document["mainSteps"])))
        assert used == set(document["parameters"]) and all(
            one["allowedPattern"].startswith("^") and one["allowedPattern"].endswith("$")
            for one in document["parameters"].values()
        )


def test_every_function_has_a_log_group_that_forgets_and_a_place_for_dead_letters(run):
    names = stacks.planned_names(STACK)
    groups = {group.props["name"]: group.props for group in run.of("aws:cloudwatch/logGroup:LogGroup")}
    for function in run.of("aws:lambda/function:Function"):
        group = groups[function.props["loggingConfig"]["logGroup"]]
        assert group["retentionInDays"] == stacks.settings(STACK).monitoring.log_retention_days
        assert function.props["deadLetterConfig"]["targetArn"].endswith(names.dead_letter_queue)
        assert function.props["runtime"] == "python3.12"
    assert len(run.of("aws:lambda/function:Function")) == len(FUNCTIONS)


def test_queues_report_partial_failures_and_replay_is_off(run):
    mappings = {request.name: request.props for request in run.of("aws:lambda/eventSourceMapping:EventSourceMapping")}
    assert all(props["functionResponseTypes"] == ["ReportBatchItemFailures"] for props in mappings.values())
    assert {name: props["enabled"] for name, props in mappings.items()} == {
        "functions-events-to-alert-router": True,
        "functions-answers-to-verdict": True,
        "functions-replay-to-storage": False,
    }
    events = mappings["functions-events-to-alert-router"]
    # Source: Lambda API reference, CreateEventSourceMapping: more than 10 messages of a queue need a window.
    assert events["batchSize"] == 100 and 0 < events["maximumBatchingWindowInSeconds"] <= 30, "one message for a burst"


def test_a_message_is_hidden_longer_than_it_is_handled_and_ends_as_a_dead_letter(run):
    queue = run.one("functions-events").props
    longest = max(request.props["timeout"] for request in run.of("aws:lambda/function:Function"))
    assert queue["visibilityTimeoutSeconds"] >= 6 * longest
    redrive = json.loads(queue["redrivePolicy"])
    assert redrive["deadLetterTargetArn"].endswith(stacks.planned_names(STACK).dead_letter_queue)
    assert redrive["maxReceiveCount"] == planning.RECEIVES


def test_the_results_group_feeds_storage_and_nobody_else_may_call_it(run):
    names = stacks.planned_names(STACK)
    (subscription,) = run.of("aws:cloudwatch/logSubscriptionFilter:LogSubscriptionFilter")
    assert subscription.props["logGroup"] == names.results_log_group
    (permission,) = run.of("aws:lambda/permission:Permission")
    assert permission.props["principal"] == "logs.amazonaws.com"
    assert permission.props["sourceArn"].endswith(f"log-group:{names.results_log_group}:*")
    assert permission.props["sourceAccount"] == stacks.ACCOUNT


def test_the_verdict_writes_a_report_from_its_archive_alone(tmp_path):
    """Templates from the archive as Lambda unpacks it, JSON by the standard library: the files are this side's own."""
    with zipfile.ZipFile(tmp_path / "function.zip", "w") as made:
        for path, file in planning.archive("verdict").items():
            made.write(file, path)
    with zipfile.ZipFile(tmp_path / "function.zip") as made:
        made.extractall(tmp_path / "task")
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from flightline.fleet.judgement import judge_run; from flightline.report import write_all\n"
        "from flightline.store.sqlite import ExpectedHost, Run, SqliteStore; import flightline.store.jsontext as j\n"
        "store = SqliteStore(Path(':memory:'), own=True)\n"
        "store.start(Run('r', '2026-11-21T10:00:00+00:00', 'quick', 'i', (ExpectedHost('a'), ExpectedHost('b'))))\n"
        "report = judge_run(store, 'r'); write_all(report, lambda: store.records('r'), Path(sys.argv[2]))\n"
        "print(j.__file__.startswith(sys.argv[1]), 'rich' in sys.modules, len(sys.argv))"
    )
    here, there = tmp_path / "here", tmp_path / "there"
    done = subprocess.run(
        [_lambdas_python(), "-I", "-S", "-c", code, str(tmp_path / "task"), str(there)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.strip() == "True False 3", done.stderr
    own = str(stacks.ROOT)
    subprocess.run([sys.executable, "-c", code, own, str(here)], check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {
        path.name: path.read_bytes() for path in there.iterdir()
    }
