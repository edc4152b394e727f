"""The functions' pure parts: what is read, what is refused and why."""

import base64
import gzip
import io
import json
import zlib
from datetime import datetime, timedelta, timezone

import boto3
import pytest
from botocore.stub import Stubber

from flightline.cloud.functions.alert_router import events, nodes
from flightline.cloud.functions.common import log, queue, stamps, training
from flightline.cloud.functions.common.errors import ConfigMissing, InvalidEvent, TryAgain
from flightline.cloud.functions.common.services import ServiceNames
from flightline.cloud.functions.storage import envelope, records
from flightline.cloud.functions.training_input import request
from flightline.cloud.functions.training_input.handler import MOST_NAMED, named, not_good
from tests.unit.functions import samples

# The envelope of CloudWatch Logs.


def test_an_envelope_gives_its_events_in_order():
    opened = envelope.decode(samples.envelope(["one", "two"]))
    assert [event.message for event in opened.events] == ["one", "two"]
    assert (opened.group, opened.stream) == ("/flightline/demo/results", samples.stream_of())


def test_a_control_message_has_nothing_to_store():
    assert envelope.decode(samples.envelope(["ping"], kind="CONTROL_MESSAGE")).events == ()


def _data(raw: bytes) -> dict:
    return {"awslogs": {"data": base64.b64encode(raw).decode()}}


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        ({"awslogs": {}}, "missing"),
        ({"awslogs": {"data": "%%%"}}, "not base64"),
        (_data(b"no gzip"), "not base64 of gzip"),
        (_data(zlib.compress(b"{}")), "not base64 of gzip"),
        (_data(gzip.compress(b"no json")), "not base64 of gzip of JSON"),
        (_data(gzip.compress(b"[]")), "list"),
        (_data(gzip.compress(b'{"messageType":"DATA_MESSAGE"}')), "logEvents"),
        (_data(gzip.compress(b'{"messageType":"OTHER","logEvents":[]}')), "OTHER"),
        (_data(gzip.compress(b'{"messageType":"DATA_MESSAGE","logEvents":[{}]}')), "without a message"),
        (_data(gzip.compress(b"x" * 1000)[:-12]), "cut off"),
        (_data(gzip.compress(b" " * (envelope.MAX_BYTES + 1))), "unpacks to more"),
    ],
)
def test_a_damaged_envelope_is_bad_and_says_why(event, wrong):
    with pytest.raises(InvalidEvent, match=wrong):
        envelope.decode(event)


# Records.


def test_a_good_record_passes_and_a_nodes_alert_names_everything():
    records.admitted(samples.record(verdict="no-go"), samples.NODE)
    (alert,) = records.alerts(records.NodeResult("id", "run-1", samples.record(verdict="no-go")))
    assert (alert.node, alert.host, alert.check, alert.device) == (samples.NODE, "gpu-01", "gpu_count", "GPU 3")
    assert (alert.measured, alert.expected, alert.remedy) == ("7", "8", "REPLACE")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"schema": "other/1"}, "schema"),
        ({"host": ""}, "host"),
        ({"host": "x" * 256}, "host"),
        ({"instance_id": "i-XYZ"}, "instance_id"),
        ({"instance_id": "i-0aaaaaaaaaaaaaaaa"}, "wrote a record of"),
        ({"started_at": "yesterday"}, "started_at"),
        ({"started_at": "2026-11-21T10:00:00"}, "started_at"),
        ({"verdict": "maybe"}, "verdict"),
        ({"findings": None}, "findings"),
        ({"findings": [{"check": "x"}]}, "findings"),
        ({"findings": [{"check": "x", "status": "BETTER", "message": ""}]}, "status"),
        ({"findings": [{"check": "x", "status": "PASS", "device": "gpu"}]}, "findings"),
    ],
)
def test_a_record_that_is_none_is_bad(change, wrong):
    with pytest.raises(InvalidEvent, match=wrong):
        records.admitted({**samples.record(), **change}, samples.NODE)


@pytest.mark.parametrize("findings", [[], [{"check": "x", "status": "UNKNOWN", "message": "hung"}]])
def test_a_go_that_its_findings_do_not_carry_never_becomes_one(findings):
    record = records.admitted(samples.record(verdict="go", findings=findings), samples.NODE)
    assert record["verdict"] == "no-go"


def test_only_what_was_measured_and_good_is_healthy():
    found = [
        {"check": "a", "status": "PASS"},
        {"check": "b", "status": "PASS"},
        {"check": "b", "status": "FAIL"},
        {"check": "c", "status": "SKIP"},
        {"check": "d", "status": "UNKNOWN"},
        {"check": "e", "status": "WARN"},
    ]
    result = records.NodeResult("id", "r", {**samples.record(), "findings": found})
    assert records.healthy(result) == {(samples.NODE, "a"), (samples.NODE, "e")}


# Events.


@pytest.mark.parametrize(
    ("raw", "kind", "name", "status", "remedy"),
    [
        (samples.alarm(), "alarm", "demo-node-gpu-temperature", "FAIL", "INVESTIGATE"),
        (samples.alarm("OK"), "alarm", "demo-node-gpu-temperature", "PASS", "INVESTIGATE"),
        (samples.alarm("INSUFFICIENT_DATA"), "alarm", "demo-node-gpu-temperature", "UNKNOWN", "INVESTIGATE"),
        (samples.contributor(), "contributor", "demo-node-gpu-temperature", "FAIL", "INVESTIGATE"),
        (samples.sns_alarm(), "alarm", "demo-node-gpu-temperature", "FAIL", "INVESTIGATE"),
        (samples.spot(), "node", "spot_interruption", "FAIL", "REPLACE"),
        (samples.rebalance(), "node", "spot_rebalance", "WARN", "REPLACE"),
        (samples.state("stopping"), "node", "instance_state", "WARN", "INVESTIGATE"),
        (samples.state("running"), "node", "instance_state", "PASS", "INVESTIGATE"),
        (samples.health(), "node", "health_aws_ec2_persistent_instance_retirement_scheduled", "WARN", "REPLACE"),
        (samples.health(code="AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"), "node",
         "health_aws_ec2_instance_reboot_maintenance_scheduled", "WARN", "REBOOT"),
        (samples.health(status="closed"), "node", "health_aws_ec2_persistent_instance_retirement_scheduled", "PASS",
         "REPLACE"),
        (samples.test_alert(), "test", "monitor_test", "INFO", "INVESTIGATE"),
        (samples.schedule(), "watch", "watch", "INFO", "INVESTIGATE"),
    ],
)  # fmt: skip
def test_every_shape_is_read(raw, kind, name, status, remedy):
    event = events.read(raw)
    assert (event.kind, event.name, event.status, event.remedy) == (kind, name, status, remedy)
    if kind in ("node", "contributor"):
        assert event.instances == (samples.NODE,)


def test_a_failed_launch_is_the_groups_trouble():
    event = events.read(samples.launch())
    assert (event.kind, event.name, event.status, event.instances) == ("node", "launch", "FAIL", ())
    assert event.message == (
        f"{samples.CLUSTER}-gpu could not launch a node: {samples.NODE}: "
        "Instance failed to complete user's Lifecycle Action: it was abandoned"
    )
    bare = samples.launch(instance="", StatusMessage="", Cause="no capacity")
    assert events.read(bare).message.endswith("could not launch a node: no capacity")
    assert events.read(samples.launch("Successful")).status == "PASS"


def test_an_alarm_says_what_was_measured():
    event = events.read(samples.alarm())
    assert (event.measured, event.expected, event.at) == ("91.5", "85", samples.UTC)


def test_the_same_alarm_has_the_same_id_in_both_shapes_and_a_later_one_another():
    assert events.read(samples.alarm()).id == events.read(samples.sns_alarm()).id
    assert events.read(samples.alarm(at="2026-11-21T11:00:00.000+0000")).id != events.read(samples.alarm()).id


def with_reason(data):
    event = samples.alarm()
    event["detail"]["state"]["reasonData"] = data
    return event


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({"recentDatapoints": ["91.5"], "threshold": 85.0}),
        json.dumps({"recentDatapoints": 5}),
        json.dumps({"recentDatapoints": {"a": 1}}),
        json.dumps({"recentDatapoints": [True, [], None]}),
        '{"recentDatapoints": [NaN]}',
        "[" * 100_000,
        "\ud800",
        5,
    ],
    ids=["text", "number", "object", "mixed", "nan", "deep", "surrogate", "no text"],
)
def test_an_alarm_with_odd_numbers_is_told_without_them(data):
    """It came again and again and ended as a dead letter: nobody was told of the alarm."""
    event = events.read(with_reason(data))
    assert (event.status, event.measured) == ("FAIL", "")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
def test_a_moment_beyond_the_calendar_is_a_bad_event(time):
    with pytest.raises(InvalidEvent, match="stamp"):
        events.read({**samples.spot(), "time": time})


def test_instances_of_aws_health_are_read_from_arns_as_well():
    """As an ARN it was none, and what was planned for somebody's instance was told of the whole cluster."""
    arn = f"arn:aws:ec2:eu-west-1:123456789012:instance/{samples.NODE}"
    assert events.read(samples.health([arn])).instances == (samples.NODE,)
    assert events.read(samples.health(["vol-0123456789abcdef0"])).instances == ()


@pytest.mark.parametrize("ahead_h", [2, 24 * 365 * 70])
def test_a_record_from_the_future_is_none(ahead_h):
    """As the newest of its node for years it hid every later one."""
    ahead = (datetime.now(timezone.utc) + timedelta(hours=ahead_h)).isoformat(timespec="seconds")
    with pytest.raises(InvalidEvent, match="later than now"):
        records.admitted(samples.record(started_at=ahead), samples.NODE)
    near = (datetime.now(timezone.utc) + timedelta(minutes=5)).isoformat(timespec="seconds")
    assert records.admitted(samples.record(started_at=near), samples.NODE)


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        (None, "NoneType"),
        ([], "list"),
        ({}, "detail-type"),
        ({**samples.spot(), "detail-type": "Something Else"}, "Something Else"),
        ({**samples.spot(), "detail": {}}, "instance-id"),
        ({**samples.spot(), "id": ""}, "without an id"),
        (samples.spot("i-; rm -rf /"), "instance id"),
        ({**samples.spot(), "time": "soon"}, "stamp"),
        ({**samples.alarm(), "detail": {"alarmName": "x"}}, "state"),
        ({**samples.sns_alarm(), "StateChangeTime": None}, "stamp"),
        ({"AlarmName": "x", "NewStateValue": "ALARM"}, "StateChangeTime"),
        ({**samples.health(), "detail": {"eventTypeCode": "X"}}, "eventTypeCategory"),
        ({**samples.launch(), "detail": {"StatusCode": "Failed"}}, "AutoScalingGroupName"),
    ],
)
def test_a_malformed_event_is_bad_and_says_what_is_missing(raw, wrong):
    with pytest.raises(InvalidEvent, match=wrong):
        events.read(raw)


def test_status_in_words_leaves_out_what_is_over():
    # Shape of EC2's DescribeInstanceStatus, written by hand after its API reference.
    item = {
        "InstanceId": samples.NODE,
        "InstanceState": {"Name": "running"},
        "SystemStatus": {"Status": "impaired"},
        "InstanceStatus": {"Status": "ok"},
        "Events": [
            {"Code": "system-reboot", "Description": "scheduled reboot", "NotBefore": "2026-12-05"},
            {"Code": "instance-stop", "Description": "[Completed] stopped", "NotBefore": "2026-11-01"},
        ],
    }
    assert nodes.status_text(item) == (
        "instance running; system impaired, instance ok; scheduled: system-reboot from 2026-12-05"
    )


def test_a_result_in_words():
    assert nodes.result_text({}) == "never judged by a preflight"
    text = nodes.result_text({"verdict": "no-go", "started_at": samples.UTC, "wrong": {"xid": "FAIL"}})
    assert text == f"last preflight no-go at {samples.UTC} (xid FAIL)"


def test_contributors_are_read_page_by_page():
    """moto has no alarm contributors: botocore's stub checks request and answer against the model of the API."""
    client = boto3.client("cloudwatch", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")

    def page(number: int, **more: str) -> dict:
        attributes = {"InstanceId": f"i-0123456789abcdef{number}"}
        found = {"ContributorId": str(number), "ContributorAttributes": attributes, "StateReason": "high"}
        return {"AlarmContributors": [found], **more}

    with Stubber(client) as stub:
        stub.add_response("describe_alarm_contributors", page(0, NextToken="t"), {"AlarmName": "a"})
        stub.add_response("describe_alarm_contributors", page(1), {"AlarmName": "a", "NextToken": "t"})
        found = nodes.NodeLookup(None, None, client, "results", "demo").contributors("a")
    assert found == ["i-0123456789abcdef0", "i-0123456789abcdef1"]


# Requests to start a run.


def _request(**changes):
    made = {
        "request_id": "req-00001",
        "job": "llama-1",
        "dataset": "c4/en",
        "model": "llama-70b",
        "data": {"prefix": "c4/", "suffixes": [".parquet"]},
        "nodes": {"instance_ids": [samples.NODE]},
        "parameters": {"epochs": 3, "lr": "3e-4"},
    }
    return {**made, **changes}


def test_a_request_is_read():
    read = request.read(_request())
    assert (read.job, read.mode, read.instance_ids, dict(read.parameters)) == (
        "llama-1",
        "list",
        (samples.NODE,),
        {"epochs": "3", "lr": "3e-4"},
    )


def test_of_thousands_left_out_an_item_names_what_it_has_room_for():
    assert named(["a: x"] * MOST_NAMED) == ["a: x"] * MOST_NAMED
    assert named(["a: x"] * 5000)[-2:] == ["a: x", f"and {5000 - MOST_NAMED} more"]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"request_id": "short"}, "request_id"),
        ({"job": "Bad Job"}, "job"),
        ({"job": "a;reboot"}, "job"),
        ({"dataset": "../secrets!"}, "dataset"),
        ({"data": {"prefix": "/abs"}}, "data.prefix"),
        ({"data": {"prefix": "a/../../b"}}, "data.prefix"),
        ({"data": {"prefix": "c4/", "mode": "steal"}}, "data.mode"),
        ({"data": {"prefix": "c4/", "suffixes": [""]}}, "data.suffixes"),
        ({"nodes": {}}, "nodes"),
        ({"nodes": {"all": True, "instance_ids": [samples.NODE]}}, "nodes"),
        ({"nodes": {"instance_ids": ["i-nope"]}}, "no instance ids"),
        ({"nodes": {"all": True, "need": 0}}, "nodes.need 0"),
        ({"nodes": {"all": True, "need": True}}, "nodes.need True"),
        ({"nodes": {"all": True, "need": "15"}}, "nodes.need '15'"),
        ({"parameters": {"x": "$(reboot)"}}, "parameters x"),
        ({"parameters": {"x": "a\nb"}}, "parameters x"),
        ({"parameters": {f"p{n}": 1 for n in range(51)}}, "51 parameters"),
        ({"parameters": {f"p{n}": "x" * 200 for n in range(40)}}, "parameters of 8,430 bytes: at most 6,000"),
        ({"max_result_age_hours": 0}, "max_result_age_hours"),
        ({"max_result_age_hours": True}, "max_result_age_hours"),
        ({"command": "rm -rf /"}, "unknown keys command"),
    ],
)
def test_a_request_that_must_not_run_is_refused(change, wrong):
    with pytest.raises(InvalidEvent, match=wrong):
        request.read(_request(**change))


def test_everything_wrong_is_said_at_once():
    with pytest.raises(InvalidEvent) as caught:
        request.read({"job": "X"})
    assert all(word in str(caught.value) for word in ("request_id", "job", "dataset", "model", "data.prefix", "nodes"))


@pytest.mark.parametrize(
    ("result", "good"),
    [
        ({"verdict": "go", "started_at": "2026-11-21T09:00:00+00:00"}, True),
        ({"verdict": "go", "started_at": "2026-11-19T09:00:00+00:00"}, False),
        ({"verdict": "go", "started_at": "2099-01-01T00:00:00+00:00"}, False),
        ({"verdict": "no-go", "started_at": "2026-11-21T09:00:00+00:00"}, False),
        ({}, False),
    ],
)
def test_only_a_recent_go_may_train(result, good):
    oldest = datetime(2026, 11, 20, 10, tzinfo=timezone.utc)
    assert (not_good(samples.NODE, result, oldest) == []) is good


# Batches, metrics, stamps, names.


def test_a_batch_names_only_what_failed_and_keeps_what_is_bad():
    kept = []

    def one(body):
        if body.get("fail"):
            raise TryAgain("later")
        if body.get("bad"):
            raise InvalidEvent("never")

    event = samples.sqs({"ok": 1}, {"fail": 1}, {"bad": 1}, "no json", "[]")
    answer = queue.handle_batch(event, one, lambda raw, reason: kept.append(reason))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert [reason.split(":")[0] for reason in kept] == ["never", "the message is not JSON", "the message is no object"]


def test_a_bad_message_that_cannot_be_kept_comes_again():
    def keep(raw, reason):
        raise OSError("S3 is away")

    answer = queue.handle_batch(samples.sqs("no json"), lambda body: None, keep)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}


@pytest.mark.parametrize(
    "event", [None, {}, {"Records": []}, samples.sns({}), {"Records": [{"eventSource": "aws:sqs"}]}]
)
def test_what_did_not_come_through_a_queue_is_no_batch(event):
    assert not queue.is_batch(event)


def test_metrics_are_in_the_embedded_format():
    out = io.StringIO()
    log.count("Flightline/demo", {"Function": "storage"}, {"BadEvents": 2}, now_s=1.5, out=out)
    line = json.loads(out.getvalue())
    assert line["_aws"]["Timestamp"] == 1500
    (metrics,) = line["_aws"]["CloudWatchMetrics"]
    assert metrics == {
        "Namespace": "Flightline/demo",
        "Dimensions": [["Function"]],
        "Metrics": [{"Name": "BadEvents", "Unit": "Count"}],
    }
    assert (line["Function"], line["BadEvents"]) == ("storage", 2)


@pytest.mark.parametrize("text", ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00.123+0000", "2026-11-21T11:00:00+01:00"])
def test_stamps_sort_as_text(text):
    assert stamps.utc(text) == samples.UTC


def test_a_missing_variable_is_named():
    with pytest.raises(ConfigMissing, match="FLIGHTLINE_RESULTS_TABLE, FLIGHTLINE_TRAINING_TABLE"):
        ServiceNames.read({"FLIGHTLINE_CLUSTER": "c", "FLIGHTLINE_NAMESPACE": "n", "FLIGHTLINE_RESULTS_BUCKET": "b"})


def test_training_metadata_has_its_keys_or_is_bad():
    meta = {"job": "j", "dataset": "d", "model": "m", "status": "finished", "at": "2026-11-21T10:00:00Z", "loss": 1.5}
    item = training.item(meta, "run#1")
    assert (item["pk"], item["sk"], item["day"]) == ("JOB#j", f"{samples.UTC}#run%231#finished", "2026-11-21")
    assert item["loss"] == 1.5
    for change in ({"job": "a b"}, {"status": "odd"}, {"at": "now"}, {"notes": "x" * 70_000}):
        with pytest.raises(InvalidEvent):
            training.item({**meta, **change}, "run")
