"""The Lambda functions on emulated AWS: real envelopes and events in, DynamoDB, S3, SNS and Slack's place out.

moto does not run Lambda here; the handlers are called as Lambda would call them. Events are written by hand after
AWS' documentation (tests/unit/functions/samples.py). What moto lacks (alarm contributors) answers from a stub.
"""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline import contract
from flightline.cli import cli
from flightline.cloud import items
from flightline.cloud.awsstore import AwsStore
from flightline.cloud.functions.alert_router import handler as router_handler
from flightline.cloud.functions.alert_router import watch
from flightline.cloud.functions.common import services as common
from flightline.cloud.functions.common import stamps
from flightline.cloud.functions.common.errors import TryAgain
from flightline.cloud.functions.common.notify import NoticeContext
from flightline.cloud.functions.storage import handler as storage_handler
from flightline.cloud.functions.training_input import handler as training_handler
from flightline.cloud.functions.training_input import request as training_request
from flightline.cloud.functions.training_input.data import Data
from flightline.cloud.functions.training_input.request import read
from flightline.fleet.judgement import judge_run
from flightline_node.tell import logline
from tests.emulated import Cloud, lead_to
from tests.unit.functions import samples
from tests.unit.tell.receiver import Receiver

RESULTS, TRAINING, BUCKET, DATA = "demo-results", "demo-training", "demo-results-bucket", "demo-data-bucket"
NAMESPACE = "Flightline/demo"


class Stack:
    """What `pulumi up` would have made, and what people were told."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud = cloud
        cloud.table(RESULTS)
        cloud.client("dynamodb").create_table(**items.table_definition(TRAINING, items.TRAINING_INDEXES))
        for bucket in (BUCKET, DATA):
            cloud.bucket(bucket)
        self.topic, self.reader = cloud.topic("demo-alerts")
        link, topic = "https://dashboard.example/demo", {"topic": self.topic}
        self.names = common.ServiceNames(samples.CLUSTER, NAMESPACE, RESULTS, TRAINING, BUCKET, topic, link=link)
        monkeypatch.setattr(common, "client", cloud.client)

    def services(self, function: str) -> common.Services:
        return common.services(function, self.names)

    def storage(self) -> storage_handler.StorageFunction:
        return storage_handler.build(self.services("storage"), self.cloud.client("s3"), samples.KnowingEc2())

    def router(self, cloudwatch: object | None = None) -> router_handler.Router:
        client = self.cloud.client
        on, watched = self.services("alert-router"), cloudwatch or client("cloudwatch")
        return router_handler.build(on, client("ec2"), watched, client("s3"), client("autoscaling"))

    def store(self, *records: dict) -> Counter:
        """Log records as their nodes do."""
        return sum((Counter(self.storage().handle(_event(record))) for record in records), Counter())

    def store_of(self, run: str, record: dict) -> dict:
        """Log a record of a run."""
        return self.storage().handle(samples.envelope(logline.lines("node", run, record)))

    def route(self, *events: object) -> None:
        """Hand events to the router by its queue, all of which it takes."""
        assert self.router().handle(samples.sqs(*events)) == {"batchItemFailures": []}

    def commands(self) -> list[dict]:
        return self.cloud.client("ssm").list_commands()["Commands"]

    def refuse(self, action: str, code: str = "ThrottlingException") -> None:
        """Every request for an action is refused from now on."""
        self.cloud.before = lambda seen: (400, code) if seen == action else None

    def items(self, start: str) -> dict[tuple[str, str], dict]:
        return {key: item for key, item in self.cloud.items(RESULTS).items() if key[0].startswith(start)}

    def told(self) -> list[str]:
        return self.cloud.told_texts(self.reader)

    def invalid(self, function: str) -> list[dict]:
        return self.cloud.invalid(BUCKET, function)

    def node(self, name: str = "gpu-01", cluster: str = samples.CLUSTER) -> str:
        """A running instance of the cluster."""
        ec2 = self.cloud.client("ec2")
        tags = {"Name": name, contract.TAG_CLUSTER: cluster, contract.TAG_ROLE: contract.ROLE_GPU}
        tagged = {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        made = ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1, TagSpecifications=[tagged])
        return made["Instances"][0]["InstanceId"]


@pytest.fixture
def stack(server, monkeypatch):
    lead_to(server, monkeypatch)
    return Stack(server, monkeypatch)


def _lines(*records: dict, kind: str = "node") -> list[str]:
    return [line for record in records for line in logline.lines(kind, f"self-{record['host']}", record)]


def _event(record: dict) -> dict:
    return samples.envelope(_lines(record), stream=samples.stream_of(record["instance_id"]))


def _many(count: int, invalid: int) -> dict:
    """An event of so many runs of one node; the latest are no-go."""
    lines = []
    for n in range(count):
        state = "no-go" if n >= count - invalid else "go"
        made = samples.record(verdict=state, started_at=f"2026-11-21T10:{n:02}:00+00:00")
        lines += logline.lines("node", f"self-{n}", made)
    return samples.envelope(lines)


def _nodes(count: int, invalid: int = 0) -> list[dict]:
    return [samples.record(f"i-0abc{n:08x}", f"gpu-{n:02d}", "no-go" if n < invalid else "go") for n in range(count)]


def _says(stack, metric: str, *minutes_ago: int, nodes: list[str]) -> None:
    """Put a metric's values into the emulator's CloudWatch, as the agent and the log's service do."""
    now = datetime.now(timezone.utc)
    data = [
        {
            "MetricName": metric,
            "Dimensions": [{"Name": "InstanceId", "Value": node}],
            "Timestamp": now - timedelta(minutes=ago),
            "Value": 1.0,
        }
        for node in nodes
        for ago in minutes_ago
    ]
    stack.cloud.client("cloudwatch").put_metric_data(Namespace=NAMESPACE, MetricData=data)


# Storage.


def test_logged_results_are_stored_once_and_failures_told(stack):
    nodes = _nodes(3, invalid=1)
    assert stack.store(*nodes)["stored"] == 3
    run = "RUN#self-gpu-00-i-0abc00000000"
    records = stack.items(run)
    assert records[run, "RECORD#gpu-00"]["verdict"] == "no-go"
    assert records[run, "NODE#i-0abc00000000#gpu_count"]["message"] == "7 of 8 GPUs: 1 missing"
    assert items.unpack(records[run, "RECORD#gpu-00"]["body"])["host"] == "gpu-00"
    (told,) = stack.told()
    for word in ("1 of 1 nodes no-go", "gpu-00 (i-0abc00000000)", "GPU 3", "measured 7", "expected  8", "REPLACE"):
        assert word in told
    assert "Dashboard: https://dashboard.example/demo" in told
    assert "Look back: flightline report self-gpu-00-i-0abc00000000 --store aws:demo-results" in told
    before = stack.cloud.items(RESULTS)
    again = stack.store(*nodes)
    assert (again["stored"], again["duplicate"], again["told"]) == (0, 3, 0)
    assert stack.cloud.items(RESULTS) == before and stack.told() == []


def test_what_a_message_says_to_look_back_with_works(stack):
    """The commands `flightline report` and `flightline history` read what the function stored."""
    stack.store(*_nodes(2, invalid=1))
    store = AwsStore(RESULTS)
    bad, good = "self-gpu-00-i-0abc00000000", "self-gpu-01-i-0abc00000001"
    assert judge_run(store, bad).verdict == "no-go" and judge_run(store, good).verdict == "go"
    assert [past.run_id for past in store.history("i-0abc00000000")] == [bad]


def test_recovery_is_told_once_and_only_by_a_measurement(stack):
    stack.store(samples.record(verdict="no-go"))
    stack.told()
    later = samples.record(started_at="2026-11-21T11:00:00+00:00")
    unmeasured = {**later, "findings": [{"check": "xid", "status": "PASS", "message": "no Xid"}]}
    stack.store_of("later-1", unmeasured)
    assert stack.told() == [], "the check was not run: silence is no recovery"
    good = {**later, "started_at": "2026-11-21T12:00:00+00:00"}
    stack.store_of("later-2", good)
    (told,) = stack.told()
    assert "Recovered" in told and "gpu_count on gpu-01" in told


def test_a_late_old_result_does_not_bring_an_old_trouble_back(stack):
    newest = samples.record(verdict="no-go", started_at="2026-11-21T12:00:00+00:00")
    stack.store_of("new", newest)
    stack.told()
    stack.store_of("old", samples.record())
    assert stack.told() == [], "what was measured at ten says nothing about noon"
    assert list(stack.items("ALERT#")) == [("ALERT#demo", f"{samples.NODE}#gpu_count#GPU 3")]


def test_bad_lines_are_kept_and_counted_and_cost_no_other_line(stack, capsys):
    good = _lines(*_nodes(2))
    liar = _lines(samples.record("i-0aaaaaaaaaaaaaaaa", "liar"))
    forged = _lines(samples.record("i-0abc00000000", findings=[{"check": "xid", "status": "BETTER", "message": ""}]))
    lines = [good[0], good[1][:-30], *liar, *forged, "a line of another program"]
    answer = stack.storage().handle(samples.envelope(lines, stream=samples.stream_of("i-0abc00000000")))
    assert (answer["stored"], answer["bad"], answer["foreign"]) == (1, 3, 1)
    other, refused, cut = sorted(kept["reason"] for kept in stack.invalid("storage"))
    assert "cut off" in cut
    assert other == "i-0abc00000000 wrote a record of i-0aaaaaaaaaaaaaaaa"
    assert refused.startswith("its record was refused: findings[0].status: saw 'BETTER'")
    assert sum('"BadEvents":1' in line for line in capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("event", [None, [], {"awslogs": {"data": "x"}}])
def test_a_malformed_event_is_kept_once_and_not_tried_again(stack, event):
    assert [stack.storage().handle(event) for _ in range(2)] == [{"bad": 1}] * 2
    assert len(stack.invalid("storage")) == 1


def _large(host: str = "gpu-01") -> dict:
    source = random.Random(3)
    noise = [{"check": f"c{n}", "status": "PASS", "message": source.randbytes(850).hex()} for n in range(500)]
    return samples.record(host=host, findings=noise)


def test_a_record_in_parts_is_stored_when_its_last_part_is_there(stack):
    lines = logline.lines("node", "self", _large())
    assert len(lines) >= 2
    storage = stack.storage()
    *early, last = reversed(lines)
    for line in early:
        assert storage.handle(samples.envelope([line]))["incomplete"] == 1
        assert stack.items("RUN#") == {}
    assert storage.handle(samples.envelope([last]))["stored"] == 1
    assert storage.handle(samples.envelope([last]))["duplicate"] == 1
    run = f"self-{samples.NODE}"
    item = stack.items("RUN#")[f"RUN#{run}", "RECORD#gpu-01"]
    assert item["body_at"].startswith(f"s3://{BUCKET}/runs/{run}/"), "too large for an item: its body lies in S3"
    assert all(part["expires_at"] for part in stack.items("PART#").values())


def test_a_throttled_table_brings_the_event_back_and_nothing_is_lost(stack):
    event = _many(30, invalid=2)
    stack.refuse("BatchWriteItem")
    with pytest.raises(TryAgain):
        stack.storage().handle(event)
    stack.cloud.before = None
    assert stack.storage().handle(event)["stored"] == 30
    assert len([key for key in stack.items("RUN#") if key[1].startswith("RECORD#")]) == 30
    assert len(stack.told()) == 1


@pytest.mark.parametrize("action", ["PutItem", "BatchWriteItem", "BatchGetItem", "Query", "DeleteItem"])
def test_a_moment_of_throttling_is_sat_out(stack, action):
    left = {"times": 3}

    def refuse(seen: str):
        if seen == action and left["times"] > 0:
            left["times"] -= 1
            return 400, "ProvisionedThroughputExceededException"
        return None

    stack.cloud.before = refuse
    assert stack.store(*_nodes(3, invalid=1))["stored"] == 3


@pytest.mark.parametrize("seed", range(4))
def test_dying_anywhere_and_coming_again_gives_the_same_store(stack, seed):
    """The function dies after a random request; the event comes again, as Lambda does it."""
    event = _many(4, invalid=2)
    source = random.Random(seed)

    class Died(BaseException):
        pass

    client = stack.cloud.client("dynamodb")
    real = client._make_api_call
    for _ in range(3):
        left = {"requests": source.randrange(1, 25)}

        def dying(operation, arguments, left=left):
            answer = real(operation, arguments)
            left["requests"] -= 1
            if left["requests"] <= 0:
                raise Died
            return answer

        client._make_api_call = dying
        try:
            stack.storage().handle(event)
        except Died:
            died = True
        else:
            died = False
        finally:
            del client._make_api_call
        if died:
            # Its claims are still taken: a later delivery comes when their lease is over.
            _end_leases(stack)
    stack.storage().handle(event)
    told = stack.told()
    assert 1 <= len(told) <= 4 and all("1 of 1 nodes no-go" in text for text in told)
    records = {key: item for key, item in stack.items("RUN#").items() if key[1].startswith(("RECORD#", "NODE#"))}
    assert len(records) == 4 + 2
    before = stack.cloud.items(RESULTS)
    stack.storage().handle(event)
    assert stack.cloud.items(RESULTS) == before and stack.told() == []


def _end_leases(stack: Stack) -> None:
    client = stack.cloud.client("dynamodb")
    for (pk, sk), item in stack.items("EVENT#").items():
        if item["state"] == "working":
            client.put_item(TableName=RESULTS, Item=items.marshal({**item, "pk": pk, "sk": sk, "lease_until": 0}))


def test_two_invocations_at_once_store_and_tell_once(stack):
    event = _many(6, invalid=3)
    problems: list[BaseException] = []

    def invoke() -> None:
        try:
            stack.storage().handle(event)
        except TryAgain:
            pass  # the other one is telling people: this delivery would come again
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=invoke) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    stack.storage().handle(event)
    assert len(stack.told()) == 1
    assert len([key for key in stack.items("RUN#") if key[1].startswith("RECORD#")]) == 6


def test_another_record_of_the_same_node_and_run_does_not_overwrite(stack):
    stack.store_of("run", samples.record(verdict="no-go"))
    answer = stack.store_of("run", samples.record())
    assert answer["conflicting"] == 1
    (run,) = {pk for pk, _ in stack.items("RUN#run")}
    assert stack.items(run)[run, "RECORD#gpu-01"]["verdict"] == "no-go"


def test_a_control_nodes_header_of_the_run_stays(stack):
    run = f"run-{samples.NODE}"
    header = items.run_item({"run_id": run, "started_at": samples.UTC, "level": "deep", "hosts": []}, 0)
    stack.cloud.client("dynamodb").put_item(TableName=RESULTS, Item=items.marshal(header))
    stack.store_of(run, samples.record())
    assert stack.items(f"RUN#{run}")[f"RUN#{run}", "META"]["level"] == "deep"


def test_training_metadata_is_stored_and_found_by_data_set(stack):
    meta = {"job": "j1", "dataset": "c4", "model": "m", "status": "finished", "at": samples.AT, "loss": 1.25}
    lines = logline.lines("training", "run-1", meta) + logline.lines("training", "run-1", {**meta, "job": ""})
    answer = stack.storage().handle(samples.envelope(lines))
    assert (answer["training"], answer["bad"]) == (1, 1)
    found = stack.cloud.client("dynamodb").query(
        TableName=TRAINING,
        IndexName="by_dataset",
        KeyConditionExpression="dataset = :d",
        ExpressionAttributeValues={":d": {"S": "c4"}},
    )["Items"]
    assert [item["job"]["S"] for item in found] == ["j1"]


def _runs(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["runs", "--training", TRAINING, *words])
    return done.exit_code, done.output


def test_training_runs_are_listed_with_what_every_step_of_them_said(stack):
    day = datetime.now(timezone.utc)
    at = [(day - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ") for minutes in (9, 8, 7)]
    known = {"job": "llama-1", "dataset": "c4", "model": "llama-70b"}
    launcher = {**known, "dataset": "unknown", "code": "abc123", "nodes": 2, "node_names": ["gpu-01", "gpu-02"]}
    saved = {"checkpoints": [{"step": 8, "name": "step-8"}], "step": 9, "cost_usd": 12.5}
    stops = [{"at": 1, "text": "Connection closed by peer", "step": 7}]
    lines = [
        *logline.lines("training", "req-1", {**known, "status": "started", "at": at[0]}),
        *logline.lines("training", "req-1", {**launcher, "status": "running", "at": at[1], "interruptions": []}),
        *logline.lines(
            "training", "req-1", {**launcher, **saved, "status": "finished", "at": at[2], "interruptions": stops}
        ),
        *logline.lines("training", "req-2", {**known, "dataset": "pile", "job": "b", "status": "failed", "at": at[2]}),
    ]
    assert (
        stack.storage().handle(samples.envelope(lines, stream=samples.stream_of(more="-training_x")))["training"] == 4
    )
    status, out = _runs("--dataset", "c4", "--json")
    (one,) = json.loads(out)
    assert (status, one["run"], one["status"], one["dataset"], one["code"]) == (0, "req-1", "finished", "c4", "abc123")
    assert (one["nodes"], one["interruptions"], one["checkpoints"]) == (2, stops, saved["checkpoints"])
    assert (one["started_at"], one["finished_at"]) == (f"{at[0][:-1]}+00:00", f"{at[2][:-1]}+00:00")
    assert [found["run"] for found in json.loads(_runs("--json")[1])] == ["req-2", "req-1"]
    assert [found["run"] for found in json.loads(_runs("--job", "b", "--model", "llama-70b", "--json")[1])] == ["req-2"]
    assert all(word in _runs()[1] for word in ("req-1", "finished", "12.50", "pile"))
    assert _runs("--model", "nobody")[0] != 0


def test_a_training_job_speaks_for_no_node(stack):
    """Its log is its user's: a go written there would prove a node to the gate."""
    lines = logline.lines("node", "self-gpu-01", samples.record())
    answer = stack.storage().handle(samples.envelope(lines, stream=samples.stream_of(more="-training_records")))
    assert (answer.get("stored", 0), answer["bad"]) == (0, 1)
    assert "a training job's and holds a node's record" in stack.invalid("storage")[0]["reason"]


def test_dead_letters_are_replayed_through_a_queue_and_failures_named(stack):
    good = samples.envelope(_lines(samples.record()))
    answer = stack.storage().handle(samples.sqs(good, {"surprise": 1}, "no json"))
    assert answer == {"batchItemFailures": []}, "bad ones are kept and never come again"
    assert len(stack.invalid("storage")) == 2 and stack.items("RUN#")
    stack.refuse("BatchGetItem")
    answer = stack.storage().handle(samples.sqs(samples.envelope(["x"]), good))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}


def test_sns_that_throttles_loses_no_alert(stack):
    event = samples.envelope(_lines(samples.record(verdict="no-go")))
    # SNS speaks the query protocol, whose requests are all "POST /".
    stack.refuse("POST /")
    with pytest.raises(TryAgain, match="demo-alerts: Throttling"):
        stack.storage().handle(event)
    stack.cloud.before = None
    assert stack.storage().handle(event)["duplicate"] == 1
    assert len(stack.told()) == 1


def _with_slack(stack, url: str, ca: Path | str = "") -> storage_handler.StorageFunction:
    """Storage with the channel that services() makes, led to a webhook on this machine."""
    stack.cloud.client("secretsmanager").create_secret(Name="demo/slack", SecretString=url)
    storage = stack.storage()
    given = {"slack": "secretsmanager:demo/slack", "slack_hosts": "127.0.0.1", "slack_ca": str(ca)}
    storage.on.notifier.voice.destinations.extend(common.voice(given, stack.cloud.client).destinations)
    return storage


@pytest.fixture
def receiver(tmp_path):
    made = Receiver(tmp_path)
    yield made
    made.close()


def test_slack_that_is_down_gets_it_later_and_sns_is_not_told_twice(stack, receiver, capsys):
    storage = _with_slack(stack, receiver.url, receiver.ca)
    event = samples.envelope(_lines(samples.record(verdict="no-go")))
    receiver.script = [(503, {"Retry-After": "0"})] * 5
    with pytest.raises(TryAgain, match="Slack"):
        storage.handle(event)
    assert len(stack.told()) == 1 and receiver.got == [] and "AlertsLost" not in capsys.readouterr().out
    assert storage.handle(event)["duplicate"] == 1
    (message,) = receiver.got
    assert "1 of 1 nodes no-go" in message["text"] and "gpu-01" in json.dumps(message["blocks"])
    assert stack.told() == [] and "very-secret-part" not in capsys.readouterr().out


@pytest.mark.parametrize("webhook", [" ", "http://hooks.slack.com/services/T000/B000/verysecret"])
def test_a_webhook_that_is_refused_for_good_is_logged_without_it_and_counted_once(stack, webhook, capsys):
    storage = _with_slack(stack, webhook)
    for _ in range(2):
        storage.on.notifier.announce(NoticeContext("title", samples.UTC))
    said = capsys.readouterr().out
    assert said.count("not told") == said.count('"AlertsLost":1') == 1 and "verysecret" not in said


def test_no_channel_is_waited_for_longer_than_a_function_lives(stack, receiver, monkeypatch):
    monkeypatch.setattr("flightline.tell.channel.time.sleep", lambda _: None)
    storage = _with_slack(stack, receiver.url, receiver.ca)
    receiver.script = [(429, {"Retry-After": "30"})] * 2
    with pytest.raises(TryAgain, match="too long"):
        storage.on.notifier.announce(NoticeContext("title", samples.UTC))


def test_the_entry_reads_its_environment(stack, monkeypatch):
    names = {"CLUSTER": samples.CLUSTER, "NAMESPACE": NAMESPACE, "RESULTS_BUCKET": BUCKET}
    for name, value in {**names, "RESULTS_TABLE": RESULTS, "TRAINING_TABLE": TRAINING}.items():
        monkeypatch.setenv(f"FLIGHTLINE_{name}", value)
    monkeypatch.setattr(storage_handler, "client", stack.cloud.client)
    storage_handler._storage.cache_clear()
    try:
        # EC2 knows no such node here: the entry asked it.
        assert storage_handler.entry(samples.envelope(_lines(samples.record())), None)["bad"] == 1
    finally:
        storage_handler._storage.cache_clear()


# Alert router.


def test_a_spot_interruption_is_told_with_the_state_of_the_node(stack):
    instance = stack.node()
    stack.store(samples.record(instance, verdict="no-go"))
    stack.told()
    stack.route(samples.spot(instance))
    (told,) = stack.told()
    for word in ("spot_interruption", f"gpu-01 ({instance})", "REPLACE", "instance running", "last preflight no-go"):
        assert word in told


def test_the_same_event_is_told_once_in_whatever_way_it_comes(stack):
    instance = stack.node()
    router = stack.router()
    for delivery in (samples.spot(instance), samples.sqs(samples.spot(instance)), samples.sqs(samples.spot(instance))):
        router.handle(delivery)
    assert len(stack.told()) == 1


def test_an_alarm_in_both_shapes_is_told_once(stack):
    router = stack.router(_Contributors(samples.NODE))
    router.handle(samples.sqs(samples.alarm()))
    router.handle(samples.sns(samples.sns_alarm()))
    (told,) = stack.told()
    assert "alarm_gpu_temperature" in told and "91.5" in told and "threshold 85" in told


class _Contributors:
    """Answers DescribeAlarmContributors, which moto lacks, in the shape of botocore's model."""

    def __init__(self, *instances: str) -> None:
        self.instances = instances

    def describe_alarm_contributors(self, AlarmName: str) -> dict:
        found = [
            {"ContributorId": str(n), "ContributorAttributes": {"InstanceId": instance}, "StateReason": "high"}
            for n, instance in enumerate(self.instances)
        ]
        return {"AlarmContributors": found}


def test_a_fleets_alarm_names_its_nodes_and_their_recovery(stack):
    first, second = stack.node("gpu-01"), stack.node("gpu-02")
    router = stack.router(_Contributors(first, second))
    router.handle(samples.alarm())
    (told,) = stack.told()
    assert f"gpu-01 ({first})" in told and f"gpu-02 ({second})" in told
    # Each node's own event follows; people know already.
    router.handle(samples.contributor(instance=first))
    assert stack.told() == []
    router.handle(samples.contributor("OK", first, at="2026-11-21T10:30:00.000+0000"))
    (told,) = stack.told()
    assert "Recovered" in told and first in told and second not in told
    router.handle(samples.alarm("OK", at="2026-11-21T10:40:00.000+0000"))
    (told,) = stack.told()
    assert "Recovered" in told and second in told


def test_an_alarm_whose_nodes_cannot_be_had_is_told_all_the_same(stack):
    class Broken:
        def describe_alarm_contributors(self, AlarmName: str) -> dict:
            raise RuntimeError("access denied")

    stack.router(Broken()).handle(samples.alarm())
    (told,) = stack.told()
    assert "alarm_gpu_temperature" in told


def test_no_data_is_neither_trouble_nor_recovery(stack):
    router = stack.router(_Contributors(samples.NODE))
    router.handle(samples.alarm())
    stack.told()
    router.handle(samples.alarm("INSUFFICIENT_DATA", at="2026-11-21T10:30:00.000+0000"))
    assert stack.told() == []
    assert stack.items("ALERT#")


def test_maintenance_is_told_for_our_nodes_only(stack):
    ours, other = stack.node("gpu-01"), stack.node("web-1", cluster="other")
    stack.router().handle(samples.health([ours, other]))
    (told,) = stack.told()
    assert ours in told and other not in told and "REPLACE" in told


def test_an_issue_of_a_whole_zone_is_told_for_the_cluster(stack):
    event = samples.health([], code="AWS_EC2_OPERATIONAL_ISSUE")
    event["detail"]["eventTypeCategory"] = "issue"
    assert stack.router().handle(event) == {"told": 1}
    (told,) = stack.told()
    assert "FAIL health_aws_ec2_operational_issue" in told and "where     demo" in told
    over = samples.health([], code="AWS_EC2_OPERATIONAL_ISSUE", status="closed")
    assert stack.router().handle({**over, "id": "closed", "time": "2026-11-21T12:00:00Z"}) == {"told": 1}


def test_failed_launches_are_told_once_until_one_succeeds(stack):
    """Each try ends another instance; whoever is asleep wants one message, not one for each."""
    for number, instance in enumerate(("i-0aaaaaaaaaaaaaaa1", "i-0aaaaaaaaaaaaaaa2")):
        event = samples.launch(instance=instance, event_id=f"launch-{number}")
        assert stack.router().handle(event) == {("told", "quiet")[number]: 1}
    (told,) = stack.told()
    assert "FAIL launch" in told and "i-0aaaaaaaaaaaaaaa1" in told and "abandoned" in told
    later = {**samples.launch("Successful", event_id="launch-2"), "time": "2026-11-21T12:00:00Z"}
    assert stack.router().handle(later) == {"told": 1}
    (recovered,) = stack.told()
    assert "launch recovered" in recovered


def test_good_news_of_an_unknown_node_is_no_bad_event(stack):
    assert stack.router().handle(samples.state("running", "i-0fffffffffffffff0")) == {"not_ours": 1}
    assert stack.invalid("alert-router") == []


def test_events_of_other_clusters_are_let_go(stack):
    other = stack.node("web-1", cluster="other")
    assert stack.router().handle(samples.spot(other)) == {"not_ours": 1}
    assert stack.router().handle(samples.alarm(name="somebody-elses")) == {"not_ours": 1}
    assert stack.told() == [] and stack.invalid("alert-router") == []


def test_an_event_of_an_unknown_node_is_kept_and_counted(stack, capsys):
    assert stack.router().handle(samples.spot("i-0fffffffffffffff0")) == {"bad": 1}
    (kept,) = stack.invalid("alert-router")
    assert "neither EC2 nor the results know it" in kept["reason"]
    assert '"BadEvents":1' in capsys.readouterr().out


def test_a_node_that_ec2_forgot_but_that_reported_is_ours(stack):
    gone = "i-0dddddddddddddddd"
    stack.store(samples.record(gone))
    assert stack.router().handle(samples.state("terminated", gone)) == {"told": 1}
    (told,) = stack.told()
    assert "the instance is terminated" in told and "knows no status" in told and "last preflight go" in told


def test_a_record_from_the_future_hides_nothing_that_comes_after(stack, trainer):
    """A go of 2099 was the newest for ever: a no-go of the same node was neither told nor kept it from training."""
    instance = stack.node()
    ahead = samples.record(instance, started_at="2099-01-01T00:00:00+00:00")
    counts = stack.store(ahead)
    assert (counts["bad"], counts["stored"]) == (1, 0)
    (kept,) = stack.invalid("storage")
    assert "later than now" in kept["reason"]
    now = stamps.now()
    wrong = samples.record(instance, verdict="no-go", started_at=now)
    stack.store(wrong)
    assert len(stack.told()) == 1
    assert trainer[0].handle(_request(instance))["status"] == "refused"


def test_what_was_told_in_the_future_silences_nothing(stack):
    """A stamp of 2099, from an event or from an earlier version, kept people from hearing of that check till then."""
    instance = stack.node()
    stack.router().handle({**samples.spot(instance), "id": "ahead", "time": "2099-01-01T00:00:00Z"})
    stack.told()
    (key,) = list(stack.items("ALERT#"))
    stack.cloud.client("dynamodb").update_item(
        TableName=RESULTS,
        Key=items.marshal(dict(zip(("pk", "sk"), key, strict=True))),
        UpdateExpression="SET notified_at = :at",
        ExpressionAttributeValues=items.marshal({":at": "2099-01-01T00:00:00+00:00"}),
    )
    assert stack.router().handle(samples.spot(instance)) == {"told": 1}
    assert len(stack.told()) == 1


def test_an_id_longer_than_a_key_may_be_is_told(stack):
    instance = stack.node()
    event = {**samples.spot(instance), "id": "\N{SNOWMAN}" * 5_000}
    stack.route(event)
    stack.route(event)
    assert len(stack.told()) == 1


def test_an_alarm_with_a_reason_larger_than_a_message_is_told(stack):
    stack.node()
    event = samples.alarm()
    event["detail"]["state"]["reason"] = "\N{SNOWMAN}" * 300_000
    stack.route(event)
    (told,) = stack.told()
    assert len(told.encode()) < 256 * 1024 and "alarm_gpu_temperature" in told


@pytest.mark.parametrize(
    "torn",
    [
        {"Type": "Notification", "Message": '{"AlarmName": "demo-node-'},
        {"Type": "Notification"},
        {"Records": [{"eventSource": "aws:s3"}]},
        {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": [], "object": "x"}, "eventTime": 5}]},
        {"Records": [{"Sns": {"Message": "[" * 50_000}}]},
        {"Records": [None, {}]},
        {"detail-type": ["EC2 Spot Instance Interruption Warning"], "detail": {}, "id": "1"},
    ],
)
def test_a_torn_delivery_is_kept_and_not_tried_again(stack, torn):
    stack.route(torn)
    assert len(stack.invalid("alert-router")) == 1 and stack.told() == []


def test_a_malformed_event_does_not_hold_up_the_batch(stack):
    instance = stack.node()
    batch = samples.sqs(
        "no json", {"detail-type": "Odd", "detail": {}, "id": "1"}, samples.spot(instance), samples.spot("i-x")
    )
    assert stack.router().handle(batch) == {"batchItemFailures": []}
    assert len(stack.invalid("alert-router")) == 3 and len(stack.told()) == 1


def test_a_partial_failure_names_its_messages_and_the_rest_is_done(stack):
    first, second = stack.node("gpu-01"), stack.node("gpu-02")
    router = stack.router()
    real = router.fleet.find

    def find(instances):
        if second in instances:
            raise TryAgain("EC2 is slow")
        return real(instances)

    object.__setattr__(router, "fleet", _Wrapped(router.fleet, find))
    batch = samples.sqs(samples.spot(first, "event-1"), samples.spot(second, "event-2"))
    assert router.handle(batch) == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert len(stack.told()) == 1
    # Delivered again, when EC2 answers: only the second is told.
    stack.router().handle(batch)
    (told,) = stack.told()
    assert second in told


def _burst(instances: list[str], minute: str = "10:00") -> list[dict]:
    found = [samples.spot(instance, f"burst-{instance}") for instance in instances]
    return [{**event, "time": f"2026-11-21T{minute}:{n:02d}Z"} for n, event in enumerate(found)]


def test_a_burst_is_one_message_that_names_every_node(stack):
    """A capacity block ends: each instance has an event of its own, and people get one message."""
    nodes = [stack.node(f"gpu-{n:02d}") for n in range(12)]
    unknown = samples.spot("i-0fffffffffffffff0", "burst-unknown")
    batch = samples.sqs(*_burst(nodes), unknown, *_burst(nodes))
    assert stack.router().handle(batch) == {"batchItemFailures": []}, "what is there twice is no failure"
    (told,) = stack.told()
    assert "spot_interruption on 12 nodes" in told and all(node in told for node in nodes)
    assert len(stack.invalid("alert-router")) == 1, "the node that nobody knows is kept, and told to nobody"
    stack.route(*_burst(nodes), unknown)
    assert stack.told() == []


def test_a_burst_that_could_not_be_told_comes_again_as_a_whole(stack):
    nodes = [stack.node(f"gpu-{n:02d}") for n in range(3)]
    batch = samples.sqs(*_burst(nodes))
    router = stack.router()
    stack.refuse("POST /", "Throttling")
    failed = {"batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in range(3)]}
    assert router.handle(batch) == failed and stack.told() == []
    stack.cloud.before = None
    assert router.handle(batch) == {"batchItemFailures": []} and len(stack.told()) == 1


def test_trouble_and_recovery_of_one_node_in_one_batch_are_told_in_their_order(stack):
    instance, other = stack.node("gpu-01"), stack.node("gpu-02")
    events = [("running", other, "10:05"), ("stopping", instance, "10:01"), ("running", instance, "10:04")]
    made = [
        {**samples.state(word, who), "id": f"e{n}", "time": f"2026-11-21T{at}:00Z"}
        for n, (word, who, at) in enumerate(events)
    ]
    stack.route(*made)
    trouble, over = stack.told()
    assert "the instance is stopping" in trouble and "Recovered" in over and instance in over
    assert not stack.items("ALERT#")


def test_an_alarm_and_its_end_in_one_batch_leave_nothing_behind(stack):
    instance = stack.node()
    router = stack.router(_Contributors(instance))
    over = samples.alarm("OK", at="2026-11-21T10:40:00.000+0000")
    assert router.handle(samples.sqs(over, samples.alarm())) == {"batchItemFailures": []}
    trouble, recovered = stack.told()
    assert instance in trouble and "Recovered" in recovered and not stack.items("ALERT#")


class _Wrapped:
    def __init__(self, inner, find) -> None:
        self._inner, self.find = inner, find

    def __getattr__(self, name):
        return getattr(self._inner, name)


def test_many_repetitions_collapse_to_one_message(stack):
    """The same trouble in 25 events of their own (the alarm flaps): people know after the first."""
    instance, router = stack.node(), stack.router()
    router.handle(samples.spot(instance, "event-0"))
    stack.cloud.seen.clear()
    for number in range(1, 25):
        router.handle(samples.spot(instance, f"event-{number}"))
    assert len(stack.told()) == 1
    # Claim, look up the node, read what people know, mark as done; and nothing about the state of the node.
    assert stack.cloud.seen["PutItem"] == 2 * 24 and stack.cloud.seen["Query"] == 24


def test_a_silent_node_is_told_and_a_young_one_is_not(stack, capsys, monkeypatch):
    talking, silent = stack.node("gpu-01"), stack.node("gpu-02")
    _says(stack, watch.HEARTBEAT, 2, nodes=[talking])
    router = stack.router()
    assert router.handle(samples.schedule()) == {"watched": 1}, "both were launched a moment ago"
    assert stack.told() == []
    monkeypatch.setattr(watch, "BOOT_GRACE", watch.SILENT_AFTER * 0)
    capsys.readouterr()
    router.handle(samples.schedule(event_id="second"))
    (told,) = stack.told()
    assert "node_silent" in told and silent in told and talking not in told
    (measured,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "WatchRuns" in line]
    assert (measured["SilentNodes"], measured["ReportingNodes"], measured["WatchRuns"]) == (1, 1, 1)


@pytest.fixture
def grown(monkeypatch):
    """Nodes that were launched a moment ago count as grown up."""
    monkeypatch.setattr(watch, "BOOT_GRACE", timedelta(0))


def _unwatched(capsys) -> float:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "WatchRuns" in line]
    return lines[-1]["UnwatchedNodes"]


def test_one_node_of_a_fleet_whose_watcher_fell_silent_is_told(stack, grown, capsys):
    """A query grouped by node would have lost it: its time series ends, and the others are good."""
    nodes = [stack.node(f"gpu-{n:02d}") for n in range(20)]
    _says(stack, watch.HEARTBEAT, 2, nodes=nodes)
    _says(stack, watch.BEAT, 2, 200, nodes=nodes[1:])
    _says(stack, watch.BEAT, 25, nodes=nodes[:1])
    stack.router().handle(samples.schedule())
    (told,) = stack.told()
    assert "node_unwatched on 1 node" in told and nodes[0] in told and nodes[1] not in told
    assert _unwatched(capsys) == 1
    stack.router().handle(samples.schedule(event_id="again"))
    assert stack.told() == [], "people know"
    _says(stack, watch.BEAT, 1, nodes=nodes[:1])
    stack.router().handle(samples.schedule(event_id="third"))
    (told,) = stack.told()
    assert "Recovered" in told and nodes[0] in told and _unwatched(capsys) == 0


def test_all_watchers_gone_at_once_are_told(stack, grown):
    nodes = [stack.node(f"gpu-{n:02d}") for n in range(3)]
    _says(stack, watch.HEARTBEAT, 2, nodes=nodes)
    _says(stack, watch.BEAT, 30, nodes=nodes)
    stack.router().handle(samples.schedule())
    (told,) = stack.told()
    assert "node_unwatched on 3 nodes" in told


def test_a_node_that_never_had_its_watcher_is_told_once_the_fleet_has_them(stack, grown):
    nodes = [stack.node(f"gpu-{n:02d}") for n in range(3)]
    _says(stack, watch.HEARTBEAT, 2, nodes=nodes)
    _says(stack, watch.BEAT, 2, 20, nodes=nodes[:2])
    stack.router().handle(samples.schedule())
    assert stack.told() == [], "the fleet is being configured, node by node"
    _says(stack, watch.BEAT, 80, nodes=nodes[:2])
    stack.router().handle(samples.schedule(event_id="later"))
    (told,) = stack.told()
    assert nodes[2] in told and nodes[0] not in told


def test_nobody_is_told_of_watchers_that_cannot_be_there(stack, grown, capsys, monkeypatch):
    """A site without watchers, a node whose agent is silent too, one that was terminated, one that is young."""
    first, other = stack.node("gpu-01"), stack.node("gpu-02")
    _says(stack, watch.HEARTBEAT, 2, nodes=[first, other])
    stack.router().handle(samples.schedule())
    assert stack.told() == [] and _unwatched(capsys) == 0
    _says(stack, watch.BEAT, 2, 200, nodes=[first, other])
    ended = stack.node("gpu-03")
    _says(stack, watch.HEARTBEAT, 2, nodes=[ended])
    _says(stack, watch.BEAT, 200, nodes=[ended])
    stack.cloud.client("ec2").terminate_instances(InstanceIds=[ended])
    stack.router().handle(samples.schedule(event_id="second"))
    assert stack.told() == [] and _unwatched(capsys) == 0
    mute = stack.node("gpu-04")
    stack.router().handle(samples.schedule(event_id="third"))
    (told,) = stack.told()
    assert "node_silent" in told and mute in told and _unwatched(capsys) == 0
    monkeypatch.setattr(watch, "BOOT_GRACE", timedelta(minutes=20))
    young = stack.node("gpu-05")
    _says(stack, watch.HEARTBEAT, 1, nodes=[young])
    stack.router().handle(samples.schedule(event_id="fourth"))
    assert stack.told() == [] and _unwatched(capsys) == 0


def test_a_test_alert_comes_through(stack):
    stack.route(samples.test_alert("p-42"))
    (told,) = stack.told()
    assert "probe p-42" in told


# Training input.


@pytest.fixture
def trainer(stack):
    left = {"ms": 600_000}
    s3 = stack.cloud.client("s3")
    stack.cloud.client("ssm").create_document(
        Name="demo-start-training",
        DocumentType="Command",
        Content=json.dumps({"schemaVersion": "2.2", "description": "x", "mainSteps": []}),
    )
    for name in ("c4/a.parquet", "c4/b.parquet", "c4/readme.txt", "other/x.parquet"):
        s3.put_object(Bucket=DATA, Key=name, Body=name.encode() * 10)
    data = Data(s3, DATA, BUCKET, lambda: left["ms"])
    client = stack.cloud.client
    made = training_handler.build(
        stack.services("training-input"), client("ec2"), client("ssm"), data, "demo-start-training"
    )
    return made, left


def _good_node(stack, name: str = "gpu-01") -> str:
    instance = stack.node(name)
    now = stamps.now()
    stack.store(samples.record(instance, name, started_at=now))
    return instance


def _request(*instances: str, mode: str = "list", **changes) -> dict:
    made = {
        "request_id": "req-00001",
        "job": "llama-1",
        "dataset": "c4",
        "model": "llama-70b",
        "data": {"prefix": "c4/", "suffixes": [".parquet"], "mode": mode},
        "nodes": {"instance_ids": list(instances)},
        "parameters": {"epochs": "3"},
    }
    return {**made, **changes}


@contextmanager
def _asked(made: training_handler.TrainingInput) -> Iterator[list[list[str]]]:
    """The instances of each command, by its request: moto adds every instance there is to a command's."""
    sent: list[list[str]] = []
    hook, events = "provide-client-params.ssm.SendCommand", made.ssm.meta.events
    events.register(hook, lambda params, **_: sent.append(params["InstanceIds"]), unique_id="asked")
    yield sent
    events.unregister(hook, unique_id="asked")


def test_a_run_starts_once_on_good_nodes(stack, trainer):
    instance = _good_node(stack)
    answer = trainer[0].handle(_request(instance))
    assert (answer["status"], answer["objects"], answer["nodes"]) == ("started", 2, 1)
    commands = stack.commands()
    assert [command["CommandId"] for command in commands] == answer["commands"]
    assert commands[0]["Parameters"]["manifest"] == [f"s3://{BUCKET}/training/llama-1/req-00001.json"]
    manifest = json.loads(stack.cloud.objects(BUCKET)["training/llama-1/req-00001.json"])
    assert [row["key"] for row in manifest["objects"]] == ["c4/a.parquet", "c4/b.parquet"]
    assert trainer[0].handle(_request(instance)) == answer, "the same request is answered the same"
    assert len(stack.commands()) == 1
    (item,) = stack.cloud.items(TRAINING).values()
    assert (item["job"], item["status"], item["dataset"]) == ("llama-1", "started", "c4")


def test_a_first_try_that_died_after_sending_does_not_start_twice(stack, trainer):
    instance = _good_node(stack)
    trainer[0].handle(_request(instance))
    for key, _ in stack.items("EVENT#training").items():
        stack.cloud.client("dynamodb").delete_item(
            TableName=RESULTS, Key=items.marshal(dict(zip(("pk", "sk"), key, strict=True)))
        )
    assert trainer[0].handle(_request(instance))["status"] == "started"
    assert len(stack.commands()) == 1


def test_nodes_that_are_not_go_are_refused_by_name(stack, trainer):
    good, never = _good_node(stack), stack.node("gpu-02")
    other = stack.node("web", cluster="other")
    answer = trainer[0].handle(_request(good, never, other, "i-0fffffffffffffff0"))
    assert answer["status"] == "refused"
    assert answer["reasons"] == [
        f"{never}: never judged by a preflight",
        f"{other}: not a node of cluster demo",
        "i-0fffffffffffffff0: not a node of cluster demo",
    ]
    assert stack.commands() == []
    # Mended, the same request starts.
    assert trainer[0].handle(_request(good))["status"] == "started"


def test_with_spares_a_node_that_is_not_go_is_left_out_and_named(stack, trainer):
    good, never = [_good_node(stack, f"gpu-{n:02d}") for n in range(3)], stack.node("gpu-03")
    nodes = {"instance_ids": [*good, never]}
    few = trainer[0].handle(_request(nodes={**nodes, "need": 4}))
    assert (few["status"], few["reasons"]) == (
        "refused",
        ["3 nodes are go, 4 needed", f"{never}: never judged by a preflight"],
    )
    with _asked(trainer[0]) as asked:
        answer = trainer[0].handle(_request(nodes={**nodes, "need": 2}))
    assert asked == [good]
    assert (answer["nodes"], answer["spares"], answer["left_out"]) == (3, 1, [f"{never}: never judged by a preflight"])
    (item,) = stack.cloud.items(TRAINING).values()
    assert item["left_out"] == answer["left_out"], "a person finds later who was left out"


def test_a_try_that_finds_other_nodes_good_sends_to_them(stack, trainer):
    nodes = [_good_node(stack, f"gpu-{n:02d}") for n in range(2)]
    trainer[0]._send(training_request.read(_request(*nodes)), nodes[:1], "s3://m")
    trainer[0]._send(training_request.read(_request(*nodes)), nodes, "s3://m")
    trainer[0]._send(training_request.read(_request(*nodes)), nodes, "s3://m")
    assert len(stack.commands()) == 2


def test_all_nodes_means_the_clusters_running_ones(stack, trainer):
    wanted = sorted(_good_node(stack, f"gpu-{n:02d}") for n in range(3))
    stack.node("web", cluster="other")
    with _asked(trainer[0]) as asked:
        assert trainer[0].handle(_request(nodes={"all": True}))["nodes"] == 3
    assert asked == [wanted]


def test_a_large_cluster_takes_several_commands(stack, trainer, monkeypatch):
    monkeypatch.setattr(training_handler, "IDS_PER_COMMAND", 2)
    nodes = [_good_node(stack, f"gpu-{n:02d}") for n in range(3)]
    answer = trainer[0].handle(_request(*nodes))
    commands = stack.commands()
    comments = {command["Comment"].rpartition(" ")[0] for command in commands}
    assert comments == {"flightline req-00001 1/2", "flightline req-00001 2/2"} and len(answer["commands"]) == 2


def test_links_and_copies(stack, trainer):
    instance = _good_node(stack)
    trainer[0].handle(_request(instance, mode="presign"))
    manifest = json.loads(stack.cloud.objects(BUCKET)["training/llama-1/req-00001.json"])
    assert all("X-Amz-Expires=43200" in row["url"] or "Expires=" in row["url"] for row in manifest["objects"])
    staged = _request(instance, mode="stage", request_id="req-00002")
    assert trainer[0].handle(staged)["status"] == "started"
    copies = [key for key in stack.cloud.objects(DATA) if key.startswith("staged/")]
    assert copies == ["staged/llama-1/req-00002/c4/a.parquet", "staged/llama-1/req-00002/c4/b.parquet"]


def test_staging_goes_on_where_the_last_try_ended(stack, trainer):
    made, left = trainer
    instance = _good_node(stack)
    left["ms"] = 1000
    with pytest.raises(TryAgain, match="time of this invocation is over"):
        made.handle(_request(instance, mode="stage"))
    left["ms"] = 600_000
    assert made.handle(_request(instance, mode="stage"))["objects"] == 2
    # Asked anew, what is staged is neither copied nor asked for one by one: a large set would never end.
    stack.cloud.seen.clear()
    left["ms"] = 1000
    made.data.prepare(
        read(_request(instance, mode="stage")),
        made.data.find(read(_request(instance, mode="stage"))),
    )
    assert not any(action.startswith(("PUT /", "HEAD /")) and "staged" in action for action in stack.cloud.seen)


def test_what_changed_after_it_was_staged_is_staged_again(stack, trainer):
    made, _ = trainer
    request = read(_request(_good_node(stack), mode="stage"))
    made.data.prepare(request, made.data.find(request))
    stack.cloud.client("s3").put_object(Bucket=DATA, Key="c4/a.parquet", Body=b"another length")
    made.data.prepare(request, made.data.find(request))
    assert stack.cloud.objects(DATA)["staged/llama-1/req-00001/c4/a.parquet"] == b"another length"


def test_more_objects_than_a_mode_can_handle_are_refused_before_the_time_is_over(stack, trainer, monkeypatch):
    monkeypatch.setitem(training_request.MAX_OBJECTS, "presign", 1)
    instance = _good_node(stack)
    answer = trainer[0].handle(_request(instance, mode="presign"))
    assert answer["reasons"] == ["more than 1 objects under c4/, the most for mode presign: name a narrower prefix"]
    assert trainer[0].handle(_request(instance))["status"] == "started"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data": {"prefix": "empty/"}}, "no objects under"),
        ({"job": "Bad Job"}, "job"),
    ],
)
def test_a_request_that_cannot_run_is_refused_with_the_reason(stack, trainer, change, reason):
    instance = _good_node(stack)
    answer = trainer[0].handle(_request(instance, **change))
    assert answer["status"] == "refused" and reason in answer["reasons"][0]
    assert stack.commands() == []


def test_ssm_that_throttles_is_asked_again_by_the_caller(stack, trainer):
    instance = _good_node(stack)
    stack.refuse("SendCommand")
    with pytest.raises(TryAgain, match="SSM"):
        trainer[0].handle(_request(instance))
    stack.cloud.before = None
    assert trainer[0].handle(_request(instance))["status"] == "started"
    assert len(stack.commands()) == 1
