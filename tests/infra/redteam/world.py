"""A stack on emulated AWS with three nodes, its real functions, and what may not change when root on one node attacks.

Names, rights and notifications are those of the plan. moto judges no right here (the evaluator does), has no lifecycle
action, and runs no Lambda: the handlers get what S3, CloudWatch Logs and the schedule would bring them. Records are made up.
"""

import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from moto.autoscaling.models import autoscaling_backends

from flightline import contract
from flightline.cloud import orders
from flightline.cloud.functions.alert_router import handler as router
from flightline.cloud.functions.common import services as common
from flightline.cloud.functions.storage import handler as storage
from flightline.cloud.functions.verdict import handler as verdict
from flightline.record.answers import asked_of
from flightline.record.outputs import BEGUN, ENDED
from flightline.store.sqlite import ExpectedHost, Run
from flightline_node.inputs import defaults
from flightline_node.tell import logline
from flightline_node.tell.frames import frames
from tests.emulated import ACCOUNT, REGION, Cloud, Hooked, launching
from tests.infra.engine import Run as Plan
from tests.infra.stacks import place, planned_names
from tests.unit.functions import samples
from tests.unit.made import finding
from tests.unit.made import record as whole_record

STACK = "p5en-capacity-block"
NAMES, PLACE = planned_names(STACK), place(STACK)
TYPE, RUN, COMMAND = "p5.48xlarge", "20261121T100000Z-abc123", str(uuid.UUID(int=1))
STAMP = "20261121T100000Z-1"


@dataclass(frozen=True)
class Node:
    """host, and what EC2 knows of it. number: in the order of a run."""

    host: str
    number: int
    instance: str
    ip: str

    @property
    def arn(self) -> str:
        return PLACE.arn("ec2", f"instance/{self.instance}")

    @property
    def boots(self) -> str:
        """Where its boots leave their evidence."""
        return f"bundles/boot/{self.arn}/{STAMP}"

    @property
    def stream(self) -> str:
        """Of its logs."""
        return f"{self.ip}_{self.instance}"

    @property
    def answer_key(self) -> str:
        return f"{contract.CALLS_PREFIX}{RUN}/{COMMAND}/{self.instance}/awsrunShellScript/ask/stdout"


def stamp(minutes_ago: int = 0) -> str:
    return (datetime.now(timezone.utc) - timedelta(minutes=minutes_ago)).isoformat(timespec="seconds")


def boot_record(node: Node, state: str, minutes_ago: int = 0) -> dict[str, Any]:
    return samples.record(node.instance, node.host, state, started_at=stamp(minutes_ago))


def outcome(node: Node, result: str, **more: Any) -> bytes:
    said = {"schema": "flightline-boot/1", "instance_id": node.instance, "result": result, "first": True, "status": 1}
    return json.dumps({**said, "reason": "no-go", "record": True, **more}).encode()


def ending(node: Node) -> bytes:
    return json.dumps({"schema": "flightline-ending/1", "instance_id": node.instance, "result": "CONTINUE"}).encode()


def params(node: Node) -> dict[str, Any]:
    own = {"call_id": f"c{node.number}", "timeout_s": 60, "host": node.host, "instance_id": node.instance}
    return {**defaults(), "instance_type": TYPE, **own}


def answer(node: Node, *wrong: dict[str, Any]) -> bytes:
    """What a node's task prints; without a finding that is wrong it is go."""
    bad = {one["check"]: one for one in wrong}
    found = [bad.get(check) or finding(check) for check in sorted(asked_of(params(node)).checks)]
    known = {"instance_id": node.instance, "started_at": stamp(), "flightline": "1", "call_id": f"c{node.number}"}
    made = {**whole_record(node.host, *found), **known, "probes": [], "measures": {}}
    del made["admitted"]
    lines = [f"{BEGUN} {node.instance}", *frames(json.dumps({"record": made})), f"{ENDED} 0", ""]
    return "\n".join(lines).encode()


@dataclass
class World:
    """sick: no-go, and people know; well: go. done: what was done to another node that moto keeps nowhere."""

    cloud: Cloud
    plan: Plan
    root: Node = field(init=False)
    sick: Node = field(init=False)
    well: Node = field(init=False)
    done: list[str] = field(default_factory=list)
    _events: dict[str, list[str]] = field(default_factory=lambda: {"router": [], "verdict": []})

    def __post_init__(self) -> None:
        client = self.cloud.client
        self.cloud.table(NAMES.results_table)
        for bucket in (NAMES.results_bucket, NAMES.data_bucket, NAMES.checkpoints_bucket, NAMES.transfer_bucket):
            self.cloud.bucket(bucket)
            client("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        self.topic, self.reader = self.cloud.topic("red-alerts")
        self.queue = client("sqs").create_queue(QueueName="red-verdict")["QueueUrl"]
        image = {"ImageId": "ami-12345678", "InstanceType": "t2.micro", "LaunchConfigurationName": "lc"}
        client("autoscaling").create_launch_configuration(**image)
        group = {"AutoScalingGroupName": NAMES.node_group, "LaunchConfigurationName": "lc", "MinSize": 0, "MaxSize": 9}
        client("autoscaling").create_auto_scaling_group(**group, AvailabilityZones=["eu-west-1a"])
        self.hooked = Hooked(client("autoscaling"))
        self.root, self.sick, self.well = (self._node(number) for number in (1, 2, 3))
        self.answers = {self.sick: answer(self.sick, finding("row_remap", "FAIL", remedy="RESET_GPU"))}
        self.cloud.instead["ListCommandInvocations"] = self._invocations
        self._before()

    def _node(self, number: int) -> Node:
        tags = {"Name": f"gpu-{number:02d}", contract.TAG_CLUSTER: NAMES.cluster, contract.TAG_ROLE: contract.ROLE_GPU}
        named = [{"Key": key, "Value": value} for key, value in tags.items()]
        with launching(NAMES.node_group):
            self.hooked.set_desired_capacity(AutoScalingGroupName=NAMES.node_group, DesiredCapacity=number)
        made = self._states()[-1].instance
        self.cloud.client("ec2").create_tags(Resources=[made.id], Tags=named)
        return Node(tags["Name"], number, made.id, made.private_ip)

    @staticmethod
    def _states() -> list[Any]:
        return list(autoscaling_backends[ACCOUNT][REGION].autoscaling_groups[NAMES.node_group].instance_states)

    def _before(self) -> None:
        """What is there when the attack begins: evidence, alerts, verdicts, and a run whose first answer just came."""
        for node, state, result in ((self.sick, "no-go", "ABANDON"), (self.well, "go", "CONTINUE")):
            self.log(node, boot_record(node, state, 20), "before")
            self.put(f"{node.boots}/record.json", json.dumps(boot_record(node, state, 10)).encode())
            self.put(f"{node.boots}/outcome.json", outcome(node, result))
            self.put(f"{node.boots}/bundle/kernel.log", b"NVRM: Xid")
        self.put("artifacts/flightline-node.pyz", b"package")
        self.put(f"runs/{RUN}/report.json", b"{}")
        self.put("training/job/request.json", b"{}")
        hosts = tuple(ExpectedHost(one.host, TYPE, one.instance) for one in (self.sick, self.well))
        nodes = {
            one.instance: (number, one.host, f"c{one.number}") for number, one in enumerate((self.sick, self.well))
        }
        run = Run(RUN, stamp(), "quick", "inventory", hosts)
        asked = [params(one) for one in (self.sick, self.well)]
        self.put(orders.key_of(RUN), orders.pack(orders.Order(run, 600, "Systems Manager", asked, nodes)))
        self.deliver()
        # The group waits for both again: for the one that begins, and for the other, which ends.
        for state in self._states()[1:]:
            begins = state.instance.id == self.sick.instance
            state.lifecycle_state = "Pending:Wait" if begins else "Terminating:Wait"
        self.hooked.completed.clear()
        self.cloud.told_texts(self.reader)
        for node, body in self.answers.items():
            self.put(node.answer_key, body)

    # What nodes can make happen.

    def put(self, key: str, body: bytes, bucket: str = NAMES.results_bucket) -> None:
        """Write an object; whom the bucket tells of it, by the plan, is told by `deliver`."""
        self.cloud.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
        told = self.plan.one("functions-boots").props["queues"] if bucket == NAMES.results_bucket else []
        for one in told:
            if key.startswith(one["filterPrefix"]) and key.endswith(one["filterSuffix"]):
                event = {"eventSource": "aws:s3", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}
                event |= {"eventTime": stamp(), "eventName": "ObjectCreated:Put"}
                self._events["router" if one["id"] == "boots" else "verdict"].append(json.dumps({"Records": [event]}))

    def log(self, writer: Node | str, record: dict[str, Any], run: str, group: str = NAMES.results_log_group) -> None:
        """Write a record's lines to a log stream; of the results' group, the storage function gets them."""
        stream = writer if isinstance(writer, str) else writer.stream
        if group == NAMES.results_log_group:
            self._storage().handle(samples.envelope(logline.lines("node", run, record), stream=stream))

    def deliver(self) -> None:
        """Hand the functions what waits for them, the verdict's as often as it comes again within a minute."""
        router_events, self._events["router"] = self._events["router"], []
        if router_events:
            self._router().handle(samples.sqs(*router_events))
        verdict_events, self._events["verdict"] = self._events["verdict"], []
        for event in verdict_events:
            self._verdict().handle(samples.sqs(event))

    # The functions, as the plan sets them.

    def _services(self, function: str) -> common.Services:
        env = self.plan.one(f"functions-{function}").props["environment"]["variables"]
        given = {**env, "FLIGHTLINE_CHANNELS": json.dumps({"topic": self.topic})}
        return common.services(function, common.ServiceNames.read(given))

    def _storage(self) -> storage.StorageFunction:
        return storage.build(self._services("storage"), self.cloud.client("s3"), self.cloud.client("ec2"))

    def _router(self) -> router.Router:
        ec2, cloudwatch, s3 = map(self.cloud.client, ("ec2", "cloudwatch", "s3"))
        return router.build(self._services("alert-router"), ec2, cloudwatch, s3, self.hooked)

    def _verdict(self) -> verdict.VerdictFunction:
        s3, sqs, ssm = map(self.cloud.client, ("s3", "sqs", "ssm"))
        return verdict.build(self._services("verdict"), s3, sqs, ssm, self.queue)

    def _invocations(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What Systems Manager has of the run's command: what each node's own agent sent."""
        rows = []
        for node in (self.sick, self.well):
            text = self.answers.get(node, b"").decode()
            status = "Success" if text else "InProgress"
            plugins = [{"Name": "ask", "Output": text[:2500]}]
            rows.append({"InstanceId": node.instance, "Status": status, "CommandPlugins": plugins})
        wanted = asked.get("InstanceId")
        return {"CommandInvocations": [row for row in rows if wanted in (None, row["InstanceId"])]}

    def _completed(self, asked: dict[str, str]) -> str:
        return "" if asked["InstanceId"] == self.root.instance else self._named(str(asked))

    # What must stay.

    def seen(self) -> dict[str, Any]:
        """All that is known of other nodes, with their names for the ids that each world makes anew."""
        return {
            "table": sorted(self._rows()),
            "evidence": sorted(self._evidence()),
            "told": [text for text in self.cloud.told_texts(self.reader) if not self._of_root(text)],
            "group": self._suspended(),
            "done": [*self.done, *filter(None, map(self._completed, self.hooked.completed))],
        }

    def _rows(self) -> list[str]:
        found = []
        for (pk, sk), item in self.cloud.items(NAMES.results_table).items():
            text = f"{pk} {sk} {item.get('verdict', '')} {item.get('message', '')} {item.get('status', '')}"
            if not pk.startswith("EVENT#") and not self._of_root(text):
                found.append(self._named(text))
        return found

    def _evidence(self) -> list[str]:
        """Objects but for kept bad events; of answers only what was first: a run's rows say what was taken of them."""
        found = self.cloud.objects(NAMES.results_bucket)
        kept = {key: body for key, body in found.items() if not key.startswith(("bad-events/", contract.CALLS_PREFIX))}
        return [
            self._named(f"{key} {_content(key, body)}")
            for key, body in kept.items()
            if not key.startswith(f"{contract.BOOT_PREFIX}{self.root.arn}/") and not self._of_root(key)
        ]

    def _suspended(self) -> list[str]:
        (group,) = self.cloud.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        return [one["ProcessName"] for one in group["SuspendedProcesses"]]

    def _of_root(self, text: str) -> bool:
        """Whether it is about the attacker, by its instance id: what a node calls itself is a label beside that."""
        return self.root.instance in text and not any(one.instance in text for one in (self.sick, self.well))

    def _named(self, text: str) -> str:
        for node in (self.root, self.sick, self.well):
            for word in (node.instance, node.ip):
                text = text.replace(word, f"<{node.host}>")
        return text


def _content(key: str, body: bytes) -> str:
    """What an object says, but for what each world has of its own: times, and what is packed."""
    if key.endswith(contract.BOOT_TOLD) and body != b"{}":
        return str(json.loads(body)["state"])
    if key.endswith("record.json"):
        return str(json.loads(body)["verdict"])
    return "" if key.endswith("asked.json.zlib") and body != b"forged" else repr(body)
