"""`flightline preflight --via ssm`: the stack's own document as real processes, on simulated tools and an emulated AWS."""

import base64
import json
import re
import threading
import time
import zlib

import pytest

from flightline.cloud.functions.common import services
from flightline.cloud.functions.verdict import handler
from flightline.record.outputs import BEGUN, ENDED
from flightline_node.tell.frames import MARK, frames, join
from tests.beds import ran

from .conftest import instance
from .test_slurm import found_alike, judged

VIA = ("--via", "ssm")


def test_verdict_and_findings_are_those_of_ansible(stack):
    first, said = stack.preflight()
    assert first == 1, said
    by_ansible = judged(stack)
    second, said = stack.preflight(*VIA)
    assert first == second == 1 and "NO-GO  6 of 8 nodes go, 2 no-go" in said, said
    found_alike(judged(stack), by_ansible)


def test_one_command_asks_a_whole_stack_of_alike_nodes_by_its_tag(stack):
    def by_instance(demo: dict) -> None:
        demo["hosts"] = {one["instance_id"]: one for one in demo["hosts"].values()}
        # The simulated nodes differ in where they are on this machine, real ones do not: this is one GPU node under
        # eight names, which the fleet judgement sees.
        place = f"{{{{ inventory_dir }}}}/.nodes/{instance(1)}"
        demo["vars"].update(flightline_root=f"{place}/root", flightline_tool_path=[f"{place}/tools"])

    stack.set(by_instance)
    status, said = stack.preflight(*VIA)
    assert status == 1 and "duplicate_gpu" in said and said.count("/8] i-0") == 8, said
    assert {row["instance_id"] for row in stack.rows().values()} == set(stack.agents.ping)
    (sent,) = stack.agents.sent
    assert [one["Key"] for one in sent["Targets"]] == ["tag:flightline:cluster", "tag:flightline:role"]
    assert len(sent["Parameters"]["asked"][0]) < 2000
    stack.preflight(*VIA, "--limit", instance(1))
    assert stack.agents.sent[1]["Targets"] == [{"Key": "InstanceIds", "Values": [instance(1)]}]


def test_nodes_that_cannot_be_asked_are_rows_with_the_reason(stack):
    ping, becomes = stack.agents.ping, stack.agents.becomes
    del ping[instance(1)]
    ping[instance(2)] = "ConnectionLost"
    ping[instance(99)] = "Online"
    becomes |= {instance(4): "Undeliverable", instance(5): "DeliveryTimedOut", instance(7): "Terminated"}
    status, said = stack.preflight(*VIA)
    rows = stack.rows()
    why = {host: (row["findings"][0]["status"], row["findings"][0]["message"]) for host, row in rows.items()}
    wanted = {"01": "manages no", "02": "ConnectionLost", "04": "Undeliverable", "05": "DeliveryTimedOut"}
    for host, words in {**wanted, "07": "Terminated"}.items():
        assert why[f"gpu-{host}"][0] == "UNREACHABLE" and words in why[f"gpu-{host}"][1], why
    assert rows[instance(99)]["findings"][0]["check"] == "absent"
    assert rows["gpu-08"]["verdict"] == "go" and status == 1, said


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace(instance(1), instance(2)), "wanted i-"),
        (lambda text: text[: len(text) // 2], "ends in the middle"),
        (lambda text: "".join(line + "\n" for line in text.splitlines() if not line.startswith(MARK)), "status 0"),
        (lambda text: text.replace(f"{MARK} 1 ", f"{MARK} 9 "), "refused"),
        (lambda text: "", "wanted i-"),
        (lambda text: "A" * 40_000_000, "endless"),
    ],
    ids=["of another", "cut", "no answer", "damaged", "empty", "endless"],
)
def test_an_output_that_lies_is_an_unknown_of_that_node_alone(stack, spoil, words):
    stack.agents.spoil = lambda name, text: spoil(text) if name == instance(1) else text
    status, said = stack.preflight(*VIA)
    rows = stack.rows()
    assert status == 1 and rows["gpu-01"]["findings"][0]["status"] == "UNKNOWN", said
    assert words in rows["gpu-01"]["findings"][0]["message"]
    assert rows["gpu-02"]["verdict"] == "go"


def test_the_answer_of_an_earlier_run_is_refused(stack):
    kept: list[str] = []

    def replayed(name: str, text: str) -> str:
        if name != instance(1):
            return text
        kept.append(text)
        return kept[0]

    stack.agents.spoil = replayed
    assert stack.preflight(*VIA)[0] == 1 and stack.rows()["gpu-01"]["verdict"] == "go"
    stack.preflight(*VIA)
    assert stack.rows()["gpu-01"]["findings"][0]["status"] == "UNKNOWN"


def healthy(text: str, number: int, asked: str) -> str:
    """An answer of go in a node's name, by who knows its call id: all nodes of a command can read what all are asked."""
    known = json.loads(zlib.decompress(base64.b64decode(asked)))["nodes"]
    frames_of = [line for line in text.splitlines() if line.startswith(MARK)]
    answer = json.loads(join(frames_of, 1 << 24))
    record = answer["record"]
    own = known[instance(number)][1]
    record.update(host=own["host"], instance_id=own["instance_id"], call_id=own["call_id"])
    own_end = f"{number:02}"
    record["gpus"] = [
        {**gpu, **{name: gpu[name][:-2] + own_end for name in ("uuid", "serial")}} for gpu in record["gpus"]
    ]
    return "\n".join([f"{BEGUN} {instance(number)}", *frames(json.dumps(answer)), f"{ENDED} 0", ""])


def test_root_on_a_node_answers_go_for_no_other_in_the_bucket(stack):
    """It writes over the sick node's output; 3 and 6 are sick, 1 is well."""
    kept: dict[str, str] = {}
    well = threading.Event()

    def written(name: str, text: str, asked: str) -> str:
        if name == instance(1):
            kept["text"] = text
            well.set()
        if name not in (instance(3), instance(6)):
            return text
        well.wait(60)
        return healthy(kept["text"], 3 if name == instance(3) else 6, asked)

    stack.agents.written = written
    status, said = stack.preflight(*VIA)
    rows = stack.rows()
    assert status == 1 and {rows[host]["verdict"] for host in ("gpu-03", "gpu-06")} == {"no-go"}, said
    assert "another than the one that Systems Manager has of it" in rows["gpu-03"]["findings"][0]["message"], rows
    assert rows["gpu-03"]["findings"][0]["status"] == "UNKNOWN" and rows["gpu-01"]["verdict"] == "go"


def test_an_output_that_reaches_no_bucket_is_read_from_systems_manager(stack):
    stack.agents.no_bucket = {instance(1), instance(2)}
    stack.agents.spoil = lambda name, text: text[:900] if name == instance(2) else text
    stack.preflight(*VIA)
    rows = stack.rows()
    assert rows["gpu-01"]["verdict"] == "go"
    assert "AccessDenied" in rows["gpu-02"]["findings"][0]["message"]
    assert rows["gpu-02"]["findings"][0]["status"] == "UNKNOWN"


def test_an_output_that_cannot_be_read_keeps_no_other_from_being_read(stack, cloud):
    """A node may write an object that nobody else can open; Systems Manager's own copy is what is left."""
    foreign = f"/{instance(1)}/awsrunShellScript/"
    cloud.before = lambda asked: (403, "AccessDenied") if asked.startswith("GET") and foreign in asked else None
    status, said = stack.preflight(*VIA)
    assert status == 1 and "NO-GO  6 of 8 nodes go, 2 no-go" in said, said
    assert any(foreign in asked for asked in cloud.seen), "it was tried"


def throttled(cloud, action: str, times: int) -> list[int]:
    """Refuse an action so many times; how many are left."""
    left = [times]

    def before(asked: str) -> tuple[int, str] | None:
        if asked == action and left[0]:
            left[0] -= 1
            return 400, "ThrottlingException"
        return None

    cloud.before = before
    return left


def test_a_refused_copy_is_asked_for_again(stack, cloud):
    stack.agents.no_bucket = {instance(1)}
    left = throttled(cloud, "GetCommandInvocation", 6)
    said = stack.preflight(*VIA)[1]
    assert stack.rows()["gpu-01"]["verdict"] == "go" and not left[0], said


def test_a_node_without_the_library_says_what_to_do(stack):
    stack.without_library(*VIA)


@pytest.mark.parametrize(
    ("action", "refusal", "words"),
    [
        ("DescribeInstanceInformation", (400, "AccessDeniedException"), "the role needs the permission"),
        ("SendCommand", (400, "ExpiredTokenException"), "have expired"),
        ("SendCommand", (400, "InvalidDocument"), "run demo-preflight"),
    ],
)
def test_what_aws_refuses_before_a_node_is_asked_ends_the_run_in_words(stack, cloud, action, refusal, words):
    cloud.before = lambda asked: refusal if asked == action else None
    status, said = stack.preflight(*VIA)
    assert status == 2 and words in said and "Traceback" not in said, said
    last = said.strip().rpartition("\n")[2]
    assert last.count("saw ") == last.count("wanted ") == 1, said


def test_a_throttled_poll_loses_no_node(stack, cloud):
    left = throttled(cloud, "ListCommands", 12)
    status, said = stack.preflight(*VIA)
    assert status == 1 and "NO-GO  6 of 8 nodes go, 2 no-go" in said and not left[0], said


def test_an_interrupted_run_judges_what_it_has_and_cancels_its_command(stack):
    stack.agents.spoil = lambda name, text: time.sleep(60) or text if name == instance(2) else text
    stack.interrupted(*VIA)
    assert stack.rows()["gpu-02"]["verdict"] == "no-go" and stack.rows()["gpu-01"]["verdict"] == "go"
    assert len(stack.agents.cancelled) == 1


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda demo: [demo["vars"].pop(name) for name in ("flightline_stack", "ec2_tags")], "make outputs"),
        (lambda demo: demo["hosts"]["gpu-01"].update(instance_id=""), "gpu-01"),
        (lambda demo: demo["hosts"]["gpu-01"].update(instance_id=instance(2)), "gpu-02"),
    ],
    ids=["no stack", "no id", "twins"],
)
def test_an_inventory_that_cannot_be_asked_this_way_is_refused_before_any_node_is(stack, spoil, words):
    stack.set(spoil)
    status, said = stack.preflight(*VIA)
    assert status == 2 and words in said and "Traceback" not in said and not stack.agents.sent, said


def test_no_words_are_handed_on(stack):
    status, said = stack.preflight(*VIA, "--via-option=--reservation=x")
    assert status == 2 and "--reservation=x" in said and "Traceback" not in said, said


def test_a_run_that_nobody_waits_for_has_the_same_verdict(stack, cloud):
    """The function is called by the test, with what S3 would send; Lambda and its queue are not here."""
    assert stack.preflight(*VIA)[0] == 1
    waited = judged(stack)
    table = cloud.table("train-p5-results")
    status, said = stack.preflight(*VIA, "--detach")
    assert status == 3 and "asked 8 of 8 nodes" in said and "GO" not in said, said
    (run_id,) = re.findall(r"flightline report (\S+)", said)
    for thread in stack.agents._threads:
        thread.join(120)
    arn, _ = cloud.topic("demo-alerts")
    names = services.ServiceNames("demo", "Flightline/demo", table, "t", "demo-results", {"topic": arn})
    s3, sqs, ssm = map(cloud.client, ("s3", "sqs", "ssm"))
    function = handler.build(services.services("verdict", names), s3, sqs, ssm, "q")
    keys = [key for key in cloud.objects("demo-results") if run_id in key]
    events = [{"s3": {"bucket": {"name": "demo-results"}, "object": {"key": key}}} for key in keys]
    body = json.dumps({"Records": events})
    record = {"eventSource": "aws:sqs", "messageId": "1", "receiptHandle": "r", "body": body}
    assert function.handle({"Records": [record]}) == {"batchItemFailures": []} and len(keys) == 9
    done = ran("flightline", "report", run_id, "--store", stack.place / "runs.sqlite", env=stack.env)
    assert done.returncode == 1 and "NO-GO  6 of 8 nodes go, 2 no-go" in done.stdout, done.stdout + done.stderr
    found_alike(judged(stack), waited)
