"""playbooks/monitor.yml against emulated AWS: a metric and an alert are sent and seen, or it is said what is not.

moto delivers EventBridge to SQS and SNS to SQS; in Lambda's place a thread hands the queue to the alert router.
"""

import os
import subprocess
import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from flightline.cloud import items, signals
from flightline.cloud.functions.alert_router import handler as router_handler
from flightline.cloud.functions.alert_router import watch
from flightline.cloud.functions.common import services as common
from flightline_host.trial import monitor
from infra.planning import monitoring
from tests.beds import BIN, ROOT, own_env, ran
from tests.emulated import ACCOUNT, REGION, Cloud, lead_to
from tests.infra import stacks

CLUSTER = "demo"
NODE = "i-0123456789abcdef0"


@pytest.fixture
def cloud(server, monkeypatch):
    return lead_to(server, monkeypatch)


@pytest.fixture
def topic(cloud) -> str:
    return cloud.client("sns").create_topic(Name="demo-alerts")["TopicArn"]


def _clients(cloud: Cloud) -> dict:
    return {name: cloud.client(name) for name in ("cloudwatch", "events", "sns", "sqs")}


def _probe(topic: str, **changes) -> monitor.MonitorProbe:
    settings = {"via": "topic", "timeout_s": 60.0, "poll_s": 0.2, **changes}
    return monitor.MonitorProbe(CLUSTER, f"Flightline/{CLUSTER}", topic, **settings)


def _report(cloud: Cloud, instance: str = NODE) -> None:
    dimensions = [{"Name": "InstanceId", "Value": instance}]
    data = {
        "MetricName": monitor.HEARTBEAT,
        "Dimensions": dimensions,
        "Value": 5.0,
        "Timestamp": datetime.now(timezone.utc),
    }
    cloud.client("cloudwatch").put_metric_data(Namespace=f"Flightline/{CLUSTER}", MetricData=[data])


def test_the_probe_and_the_router_speak_of_the_same_things():
    assert (monitor.EVENT_SOURCE, monitor.EVENT_TYPE) == (signals.TEST_SOURCE, signals.TEST_TYPE)
    assert monitor.HEARTBEAT == watch.HEARTBEAT


def test_metric_and_alert_are_seen_and_nothing_stays(cloud, topic):
    _report(cloud)
    seen = monitor.run(_clients(cloud), _probe(topic, instance_ids=(NODE,)))
    assert seen.complete and seen.silent == []
    assert cloud.client("sqs").list_queues().get("QueueUrls", []) == []
    assert cloud.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []


def test_the_queue_of_a_stack_is_used_and_stays(cloud, topic):
    """Whoever proves the monitoring of a stack subscribes nobody, and nobody's subscription can be taken away."""
    sqs = cloud.client("sqs")
    queue = sqs.create_queue(QueueName=f"{CLUSTER}-monitor-probe", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    cloud.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    _report(cloud)
    cloud.seen.clear()
    assert monitor.run(_clients(cloud), _probe(topic, instance_ids=(NODE,))).complete
    assert sqs.list_queues()["QueueUrls"] == [queue] and "CreateQueue" not in cloud.seen
    assert len(cloud.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]) == 1


def test_an_earlier_probes_metric_does_not_count(cloud, topic):
    """The clock says that an hour has passed; what was published an hour ago is too old and too small."""
    monitor.run(_clients(cloud), _probe(topic))
    clients = _clients(cloud)
    real, clients["cloudwatch"] = clients["cloudwatch"], None

    class Deaf:
        def put_metric_data(self, **_):
            return {}

        def get_metric_data(self, **request):
            return real.get_metric_data(**request)

    clients["cloudwatch"] = Deaf()
    base = datetime.now(timezone.utc).timestamp() + 60
    ticks = iter(base + n for n in range(1000))
    seen = monitor.run(clients, _probe(topic, timeout_s=8), clock=lambda: next(ticks), sleep=lambda seconds: None)
    assert seen.metric_s is None and seen.alert_s is not None
    assert "seen: no MonitorProbe" in monitor.advice(_probe(topic), seen)


def test_what_does_not_arrive_is_named_and_the_queue_removed(cloud, topic):
    ticks = iter(datetime.now(timezone.utc).timestamp() + n for n in range(1000))
    probe = _probe(topic, via="event", timeout_s=4, instance_ids=(NODE,))
    seen = monitor.run(_clients(cloud), probe, clock=lambda: next(ticks), sleep=lambda seconds: None)
    assert seen.alert_s is None and seen.silent == [NODE]
    text = monitor.advice(probe, seen)
    assert "no test alert" in text and "alert router's log" in text and NODE in text
    assert cloud.client("sqs").list_queues().get("QueueUrls", []) == []


def test_a_refused_event_is_an_error_with_the_reason(cloud, topic):
    class Refusing:
        def put_events(self, Entries):
            entry = {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"}
            return {"FailedEntryCount": 1, "Entries": [entry]}

    clients = {**_clients(cloud), "events": Refusing()}
    with pytest.raises(monitor.ProbeError, match="slow down"):
        monitor.run(clients, _probe(topic, via="event"))
    assert cloud.client("sqs").list_queues().get("QueueUrls", []) == []


class Router(threading.Thread):
    """Hands the router's queue to the router, as Lambda's event source mapping would."""

    def __init__(self, cloud: Cloud, topic: str, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(daemon=True)
        monkeypatch.setattr(common, "client", cloud.client)
        names = common.ServiceNames(CLUSTER, f"Flightline/{CLUSTER}", "demo-results", "t", "b", {"topic": topic})
        on = common.services("alert-router", names)
        clients = [cloud.client(name) for name in ("ec2", "cloudwatch", "s3", "autoscaling")]
        self._router = router_handler.build(on, *clients)
        self._sqs, self._queue, self.stop = cloud.client("sqs"), queue, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.2):
            answer = self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10)
            for message in answer.get("Messages", []):
                record = {"messageId": message["MessageId"], "eventSource": "aws:sqs", "body": message["Body"]}
                self._router.handle({"Records": [record]})
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])


@pytest.fixture
def way(cloud, topic, monkeypatch):
    """Rule, queue and router, as the stack makes them."""
    cloud.table("demo-results")
    sqs, bridge = cloud.client("sqs"), cloud.client("events")
    queue = sqs.create_queue(QueueName="demo-alert-router-events")["QueueUrl"]
    names = stacks.planned_names("p5-reservation")
    (rule,) = [rule for rule in monitoring.rules(names) if rule.key == "test"]
    bridge.put_rule(Name="demo-test", EventPattern=rule.pattern.replace(f'"{names.cluster}"', f'"{CLUSTER}"'))
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:demo-alert-router-events"
    bridge.put_targets(Rule="demo-test", Targets=[{"Id": "router", "Arn": arn}])
    router = Router(cloud, topic, queue, monkeypatch)
    router.start()
    yield router
    router.stop.set()
    router.join(30)


def _play(cloud: Cloud, tmp_path: Path, topic: str, *more: str) -> subprocess.CompletedProcess[str]:
    hosts = {"gpu-01": {"ansible_connection": "local", "instance_id": NODE, "instance_type": "p5.48xlarge"}}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    given: dict = {"cluster": CLUSTER, "topic_arn": topic, "aws_endpoint_url": cloud.url}
    given |= {"monitor_install": False, "monitor_poll_s": 0.5}
    given = {"aws_region": REGION, **{f"flightline_{name}": value for name, value in given.items()}}
    own = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    env = own_env("ANSIBLE", "FLIGHTLINE", **cloud.env, **own)
    variables = yaml.safe_dump(given, default_flow_style=True, width=10_000)
    command = ("ansible-playbook", "-i", inventory, "playbooks/monitor.yml", "-e", variables)
    return ran(*command, *more, env=env, cwd=ROOT, timeout=300)


def test_the_playbook_proves_the_whole_way(cloud, topic, way, tmp_path):
    """Event, rule, queue, alert router, topic, reader; and the node's own metric."""
    _report(cloud)
    done = _play(cloud, tmp_path, topic)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(key[0].startswith("EVENT#event") for key in cloud.items("demo-results")), "the router handled it"
    assert items.PK == "pk"


def test_the_playbook_fails_with_what_is_missing(cloud, topic, tmp_path):
    done = _play(cloud, tmp_path, topic, "-e", "flightline_monitor_timeout_s=3")
    assert done.returncode != 0
    assert "no test alert" in done.stdout and NODE in done.stdout, done.stdout


def test_check_mode_sends_nothing(cloud, topic, tmp_path):
    _report(cloud)
    cloud.seen.clear()
    done = _play(cloud, tmp_path, topic, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = cloud.client("cloudwatch").list_metrics(MetricName=monitor.METRIC)["Metrics"]
    assert metrics == [] and cloud.client("sqs").list_queues().get("QueueUrls", []) == []


def test_without_a_topic_the_playbook_says_what_it_wants(cloud, tmp_path):
    done = _play(cloud, tmp_path, "")
    assert done.returncode != 0 and "wanted: the cluster's name and its topic's ARN" in " ".join(done.stdout.split())
