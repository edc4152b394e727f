"""The verdict function on emulated AWS: orders and answers in, one verdict out, however often and in whatever order.

moto does not run Lambda here: the handler is called as Lambda would call it, with the queue's own messages. What S3 would
send is written by hand after its documentation. Nodes' records are made up.
"""

import json
import threading
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from flightline.cli import cli
from flightline.cloud import orders
from flightline.cloud.awsstore import AwsStore
from flightline.cloud.functions.common import services as common
from flightline.cloud.functions.common.claims import Claims
from flightline.cloud.functions.verdict import handler, judging
from flightline.contract import CALLS_PREFIX
from flightline.fleet.judgement import judge_run
from flightline.record.answers import asked_of
from flightline.record.outputs import BEGUN, ENDED
from flightline.report import write_all
from flightline.store.rows import absent_record, unreachable_record
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore, now_stamp
from flightline_node.inputs import defaults
from flightline_node.tell.frames import frames
from tests.emulated import Cloud, lead_to
from tests.unit.functions import samples
from tests.unit.made import finding, record

RESULTS, BUCKET, CLUSTER, RUN = "demo-results", "demo-results-bucket", "demo", "20261121T100000Z-abc123"
TYPE, COMMAND = "p5.48xlarge", str(uuid.UUID(int=1))


def instance(number: int) -> str:
    return f"i-{number:017x}"


def params(number: int) -> dict:
    return {**defaults(), "instance_type": TYPE, "call_id": f"c{number}", "timeout_s": 60}


def output(number: int, *findings: dict, name: str = "", **rest) -> str:
    """What the task of a node prints."""
    host = f"gpu-{number:02d}"
    asked = asked_of({**params(number), "host": host, "instance_id": instance(number)})
    invalid = {one["check"]: one for one in findings}
    found = [invalid.get(check) or finding(check) for check in sorted(asked.checks)]
    made = {**record(host, *found), "instance_id": instance(number), "started_at": now_stamp(), "flightline": "1"}
    made = {
        **made,
        "call_id": f"c{number}",
        "probes": [],
        "measures": {"m": {"unit": "W", "values": {"0": 1e-05 * number}}},
    }
    made |= rest
    del made["admitted"]
    lines = [f"{BEGUN} {name or instance(number)}", *frames(json.dumps({"record": made})), f"{ENDED} 0"]
    return "\n".join(lines) + "\n"


class Stack:
    """What `pulumi up` would have made: the bucket's events are put into the queue, and the function reads it."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud = cloud
        cloud.table(RESULTS)
        cloud.bucket(BUCKET)
        self.topic, self.reader = cloud.topic("demo-alerts")
        names = common.ServiceNames(CLUSTER, "Flightline/demo", RESULTS, "demo-training", BUCKET, {"topic": self.topic})
        monkeypatch.setattr(common, "client", cloud.client)
        self.queue = cloud.client("sqs").create_queue(QueueName="demo-verdict-events")["QueueUrl"]
        s3, sqs, ssm = map(cloud.client, ("s3", "sqs", "ssm"))
        self.function = handler.build(common.services("verdict", names), s3, sqs, ssm, self.queue)
        self.store = AwsStore(RESULTS, BUCKET)
        self.printed: dict[tuple[str, str], str] = {}
        cloud.instead["ListCommandInvocations"] = self._invocations

    def order(self, nodes: int, deadline_s: int = 600, rows: Iterable[dict] = ()) -> None:
        """Ask so many nodes."""
        hosts = [ExpectedHost(f"gpu-{n:02d}", TYPE, instance(n)) for n in range(1, nodes + 1)]
        rows = list(rows)
        hosts += [ExpectedHost(row["host"]) for row in rows]
        run = Run(RUN, now_stamp(), "quick", "inventory/aws_ec2.yml", tuple(hosts))
        self.store.start(run)
        asked = {instance(n): (0, f"gpu-{n:02d}", f"c{n}") for n in range(1, nodes + 1)}
        made = orders.Order(run, deadline_s, "Systems Manager", [params(0)], asked, rows)
        self.put(orders.key_of(RUN), orders.pack(made))

    def answer(
        self, number: int, *findings: dict, text: str = "", run: str = RUN, command: str = COMMAND, **rest
    ) -> None:
        text = text or output(number, *findings, **rest)
        self.printed[command, instance(number)] = text
        self.put(self.key(number, run, command), text.encode())

    def key(self, number: int, run: str = RUN, command: str = COMMAND) -> str:
        return f"{CALLS_PREFIX}{run}/{command}/{instance(number)}/awsrunShellScript/ask/stdout"

    def _invocations(self, asked: dict) -> dict:
        """What each node's own agent sent to Systems Manager; "" is of one that is not done."""
        text = self.printed.get((asked["CommandId"], asked["InstanceId"]))
        row = {"InstanceId": asked["InstanceId"], "Status": "Success" if text else "InProgress"}
        row["CommandPlugins"] = [{"Output": (text or "")[:2500]}]
        return {"CommandInvocations": [] if text is None else [row]}

    def put(self, key: str, body: bytes) -> None:
        self.cloud.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        event = {"eventSource": "aws:s3", "s3": {"bucket": {"name": BUCKET}, "object": {"key": key}}}
        self.send({"Records": [event]})

    def send(self, body: object) -> None:
        self.cloud.client("sqs").send_message(QueueUrl=self.queue, MessageBody=json.dumps(body))

    def messages(self) -> list[dict]:
        """What the queue shows now, as Lambda gets it."""
        names = {"messageId": "MessageId", "receiptHandle": "ReceiptHandle", "body": "Body"}
        return [
            {"eventSource": "aws:sqs", **{ours: message[name] for ours, name in names.items()}}
            for message in self.cloud.received(self.queue)
        ]

    def invoke(self, messages: list[dict]) -> list[str]:
        """Messages that come again; the others are deleted, as Lambda does it."""
        failed = [one["itemIdentifier"] for one in self.function.handle({"Records": messages})["batchItemFailures"]]
        for message in messages:
            if message["messageId"] not in failed:
                self.cloud.client("sqs").delete_message(QueueUrl=self.queue, ReceiptHandle=message["receiptHandle"])
        return failed

    def work(self) -> list[str]:
        messages = self.messages()
        return self.invoke(messages) if messages else []

    def verdict(self) -> str:
        return self.store.run(RUN).verdict

    def rows(self) -> dict[str, dict]:
        return {one["host"]: one["findings"][0] for one in self.store.records(RUN)}

    def reports(self) -> dict[str, bytes]:
        found = self.cloud.objects(BUCKET)
        return {key: body for key, body in found.items() if key.startswith(f"runs/{RUN}/") and "asked" not in key}

    def told(self) -> list[str]:
        return [message["Subject"] for message in self.cloud.told(self.reader)]

    def invalid(self) -> list[str]:
        return [kept["reason"] for kept in self.cloud.invalid(BUCKET, "verdict")]

    def over(self, monkeypatch) -> None:
        """The deadline has passed, by the function's clock."""

        class Later(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + timedelta(days=1)

        monkeypatch.setattr(handler, "datetime", Later)


@pytest.fixture
def stack(server, monkeypatch):
    lead_to(server, monkeypatch)
    return Stack(server, monkeypatch)


def test_the_last_answer_of_a_run_brings_its_verdict(stack):
    stack.order(3)
    stack.answer(1)
    stack.answer(2, finding("row_remap", "FAIL", remedy="RESET_GPU"))
    (waiting,) = stack.work()
    assert stack.verdict() == "" and waiting, "the order waits for the deadline"
    stack.answer(3)
    assert stack.work() == [] and stack.verdict() == "no-go"
    assert {f"runs/{RUN}/{name}" for name in ("report.json", "report.html", "junit.xml")} <= stack.reports().keys()
    (told,) = stack.told()
    assert told == "Flightline NO-GO demo: 1 of 3 nodes no-go"


def test_everything_in_one_batch_is_one_verdict_and_a_go_is_told_as_well(stack):
    stack.order(2)
    stack.answer(1)
    stack.answer(2)
    assert stack.work() == [] and stack.verdict() == "go"
    assert stack.told() == ["Flightline GO demo: all good"]


def test_the_report_is_byte_for_byte_what_a_control_node_writes(stack, tmp_path, monkeypatch):
    """With the standard library's JSON there, as Lambda has it, and the compiled one here."""
    monkeypatch.setattr("flightline.store.jsontext.orjson", None)
    stack.order(3, rows=[absent_record(ExpectedHost("i-0abc"), "Systems Manager has it")])
    stack.answer(1)
    stack.answer(2, finding("row_remap", "FAIL", remedy="RESET_GPU"), seconds=2.5e-7)
    stack.answer(3, text="torn")
    stack.work()
    monkeypatch.undo()
    run = stack.cloud and AwsStore(RESULTS, BUCKET, _clients(stack.cloud)).run(RUN)
    with SqliteStore(tmp_path / "runs.sqlite") as local:
        local.start(run)
        for one in AwsStore(RESULTS, BUCKET, _clients(stack.cloud)).records(RUN):
            local.save(RUN, one)
        report = judge_run(local, RUN)
        made = write_all(report, lambda: local.records(RUN), tmp_path / "report")
    found = stack.reports()
    assert {Path(key).name for key in found} == {path.name for path in made.values()}
    for path in made.values():
        assert found[f"runs/{RUN}/{path.name}"] == path.read_bytes(), path.name


def _clients(cloud: Cloud):
    from flightline.cloud.clients import Clients

    made = Clients()
    for name in ("s3", "dynamodb"):
        made.use(name, cloud.client(name))
    return made


def test_who_is_silent_is_unreachable_at_the_deadline_with_how_it_was_asked(stack, monkeypatch):
    stack.order(3, rows=[unreachable_record(ExpectedHost("gpu-09"), "Systems Manager manages no i-9")])
    stack.answer(1)
    messages = stack.messages()
    (waiting,) = stack.invoke(messages)
    stack.over(monkeypatch)
    assert stack.invoke([one for one in messages if one["messageId"] == waiting]) == []
    rows = stack.rows()
    assert stack.verdict() == "no-go" and {rows[f"gpu-{n}"]["status"] for n in ("02", "03", "09")} == {"UNREACHABLE"}
    assert "no answer before the deadline (asked: Systems Manager)" in rows["gpu-02"]["message"]
    assert "manages no i-9" in rows["gpu-09"]["message"] and rows["gpu-01"]["status"] == "PASS"


def test_the_deadline_counts_from_the_buckets_clock_and_is_bounded(stack):
    stack.order(1, deadline_s=10**9)
    messages = stack.messages()
    hidden = []
    object.__setattr__(stack.function, "sqs", _Sqs(hidden))
    assert len(stack.invoke(messages)) == 1 and 60 < hidden[0] <= handler.MOST_HIDDEN_S + 1


class _Sqs:
    def __init__(self, hidden):
        self.hidden = hidden

    def change_message_visibility(self, *, VisibilityTimeout, **_):
        self.hidden.append(VisibilityTimeout)


def _closed(stack, monkeypatch):
    """A run of two that was closed without gpu-02."""
    stack.order(2)
    stack.answer(1)
    messages = stack.messages()
    stack.over(monkeypatch)
    assert stack.invoke(messages) == [] and stack.verdict() == "no-go"
    return stack.reports(), stack.told()


def test_an_answer_after_the_verdict_is_kept_and_judged_and_the_first_stays(stack, monkeypatch):
    first, _ = _closed(stack, monkeypatch)
    stack.answer(2)
    assert stack.work() == [] and stack.verdict() == "no-go"
    after = stack.reports()
    assert {key: after[key] for key in first} == first, "the first report stays"
    (again,) = [json.loads(body) for key, body in after.items() if "/late-1-" in key and key.endswith(".json")]
    assert again["verdict"] == "go" and again["late"] == {"hosts": ["gpu-02"], "first_verdict": "no-go"}
    (told,) = stack.told()
    assert "late: 1 answered after the deadline" in told
    stack.answer(2)
    assert stack.work() == [] and stack.told() == [] and stack.reports() == after, "again, it changes nothing"


def test_a_run_that_nobody_waited_for_is_fetched_with_what_came_late(stack, monkeypatch, tmp_path):
    path = tmp_path / "runs.sqlite"
    note = tmp_path / "detached" / f"{RUN}.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"region": "eu-west-1", "results_table": RESULTS, "results_bucket": BUCKET}))
    stack.order(2)
    stack.answer(1)
    messages = stack.messages()
    stack.invoke(messages)

    def report():
        done = CliRunner().invoke(cli, ["report", RUN, "--store", str(path)])
        return done.exit_code, " ".join(done.output.split())

    with SqliteStore(path) as store:
        store.start(stack.store.run(RUN))
    status, said = report()
    assert status == 1 and "has no verdict yet: 1 of 2 nodes are known" in said, said
    stack.over(monkeypatch)
    stack.invoke(messages[:1])
    status, said = report()
    assert status == 1 and "no answer before the deadline" in said and "late: 1" not in said
    stack.answer(2)
    stack.work()
    status, said = report()
    assert status == 0 and "late: 1 node answered after the deadline: gpu-02. The first verdict, no-go" in said
    stack.cloud.before = lambda action: (400, "AccessDeniedException")
    status, said = report()
    assert status == 0 and "what came since the last look could not be fetched" in said


@pytest.mark.parametrize("words", [("--via", "slurm"), (), ("--via", "ssm", "--need", "1")])
def test_only_what_answers_without_this_command_is_left_alone(words):
    done = CliRunner().invoke(cli, ["preflight", "--detach", *words])
    assert done.exit_code == 2 and "--detach: saw" in done.output


def test_a_redelivered_batch_changes_nothing(stack):
    stack.order(2)
    stack.answer(1)
    stack.answer(2)
    messages = stack.messages()
    stack.function.handle({"Records": messages})
    before, told = (stack.cloud.items(RESULTS), stack.reports()), stack.told()
    assert stack.invoke(messages) == [] and len(told) == 1 and stack.told() == []
    assert (stack.cloud.items(RESULTS), stack.reports()) == before and stack.invalid() == []


def test_two_invocations_at_once_give_one_verdict(stack):
    stack.order(4)
    for number in (1, 2, 3, 4):
        stack.answer(number)
    messages = stack.messages()
    threads = [
        threading.Thread(target=stack.function.handle, args=({"Records": messages[n::2] + messages[:1]},))
        for n in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    stack.function.handle({"Records": messages})
    assert stack.verdict() == "go" and stack.told() == ["Flightline GO demo: all good"]


def test_a_function_that_dies_while_it_judges_is_followed_by_one_that_does_it(stack, monkeypatch):
    stack.order(1)
    stack.answer(1)
    messages = stack.messages()

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(judging.Judge, "_write", killed)
        patch.setattr(Claims, "release", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            stack.function.handle({"Records": messages})
    assert len(stack.invoke(messages)) == 2, "its lease still runs: the messages come again"
    monkeypatch.setattr(Claims, "take", lambda self, key: "mine")
    assert stack.invoke(messages) == [] and f"runs/{RUN}/report.json" in stack.reports()


def test_an_answer_that_lies_is_an_unknown_of_that_node_alone(stack):
    tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
    spoiled = {
        "of another": ({"text": output(9)}, "wanted i-"),
        "torn": ({"text": output(2)[:900]}, "ends in the middle"),
        "another run's": ({"call_id": "c0"}, "wanted 'c3', as asked"),
        "its neighbour's call": ({"call_id": "c3"}, "wanted 'c4', as asked"),
        "tomorrow's": ({"started_at": tomorrow}, "set the node's clock"),
        "no answer": ({"text": "A" * 100}, "wanted i-"),
    }
    stack.order(7)
    for number, (spoil, _) in enumerate(spoiled.values(), 1):
        stack.answer(number, **spoil)
    stack.answer(7)
    assert stack.work() == [] and stack.verdict() == "no-go"
    rows = stack.rows()
    for number, (name, (_, words)) in enumerate(spoiled.items(), 1):
        found = rows[f"gpu-{number:02d}"]
        assert found["status"] == "UNKNOWN" and words in found["message"], name
    assert rows["gpu-07"]["status"] == "PASS"


def test_a_second_other_answer_is_kept_aside_and_the_first_stays(stack):
    stack.order(2)
    stack.answer(1)
    stack.work()
    stack.answer(1, finding("row_remap", "FAIL"), command=COMMAND.replace("1", "2"))
    stack.work()
    assert "another record of this node" in stack.invalid()[0] and stack.rows()["gpu-01"]["status"] == "PASS"


def test_what_nobody_asked_for_is_kept_aside_and_holds_nothing_up(stack):
    stack.order(1)
    stack.answer(7)
    stack.answer(1, run="20261121T000000Z-000000")
    stack.put("runs/x/other.json", b"{}")
    stack.put(f"runs/y/{orders.NAME}", b"no order")
    stack.send({"Event": "s3:TestEvent"})
    stack.send({"Records": []})
    stack.send([1])
    stack.answer(1)
    assert stack.work() == [] and stack.verdict() == "go"
    reasons = " ".join(stack.invalid())
    for words in ("was not asked in this run", "nobody asked for it", "wanted an answer or", "not a run's order"):
        assert words in reasons


def test_a_table_that_is_throttled_costs_no_answer(stack, monkeypatch):
    stack.order(1)
    stack.answer(1)
    messages = stack.messages()
    stack.cloud.before = lambda action: (400, "ThrottlingException") if action == "PutItem" else None
    assert len(stack.invoke(messages)) == 2 and stack.verdict() == ""
    stack.cloud.before = None
    assert stack.invoke(messages) == [] and stack.verdict() == "go"


# Every node may write where answers are: Systems Manager says whose one is.


def test_an_answer_that_systems_manager_does_not_know_is_none(stack, monkeypatch):
    stack.order(2)
    for number, command in ((1, str(uuid.UUID(int=7))), (2, "c-1")):
        stack.put(stack.key(number, command=command), output(number).encode())
    stack.work()
    assert stack.rows() == {} and all("Systems Manager" in reason for reason in stack.invalid())
    assert len(stack.invalid()) == 2
    stack.answer(1, finding("row_remap", "FAIL", remedy="RESET_GPU"))
    stack.over(monkeypatch)
    stack.function.handle({"Records": [message_of(stack, orders.key_of(RUN))]})
    found = {host: (row["check"], row["status"]) for host, row in stack.rows().items()}
    assert found["gpu-02"][1] == "UNREACHABLE" and stack.verdict() == "no-go"


def test_an_answer_that_somebody_wrote_over_is_found_among_its_versions(stack):
    stack.cloud.client("s3").put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    stack.order(1)
    stack.answer(1, finding("row_remap", "FAIL", remedy="RESET_GPU"))
    for forged in (output(1).encode(), b"x" * 100_000_000, b"nothing"):
        stack.put(stack.key(1), forged)
    stack.work()
    assert stack.verdict() == "no-go" and stack.store.records(RUN)
    (row,) = stack.store.records(RUN)
    assert [one["check"] for one in row["findings"] if one["status"] == "FAIL"] == ["row_remap"]


def test_an_answer_before_its_command_is_done_is_waited_for(stack):
    stack.order(1)
    stack.printed[COMMAND, instance(1)] = ""
    stack.put(stack.key(1), output(1).encode())
    assert len(stack.work()) == 2 and stack.rows() == {}
    stack.printed[COMMAND, instance(1)] = output(1, finding("row_remap", "FAIL", remedy="RESET_GPU"))
    stack.answer(1, finding("row_remap", "FAIL", remedy="RESET_GPU"))
    stack.work()
    assert stack.verdict() == "no-go"


def message_of(stack: Stack, key: str) -> dict:
    event = {"eventSource": "aws:s3", "s3": {"bucket": {"name": BUCKET}, "object": {"key": key}}}
    return {**samples.sqs({"Records": [event]})["Records"][0], "receiptHandle": "none"}
