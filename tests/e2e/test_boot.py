"""A node's boot from the script to the message: the real script under sh, emulated AWS, the router, the reader's queue.

moto's S3 tells its SQS of the outcome; the router gets the queue as Lambda's event source mapping would hand it over;
its message goes to moto's SNS and is read from a queue. Stand-ins: the metadata service, the aws command (it speaks
plain HTTP to moto's S3), the group's hooks (moto keeps them and does not act on them), and the node package. No AWS and
no GPU is involved.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from moto.autoscaling.models import autoscaling_backends

from flightline import contract
from flightline.cloud.functions.alert_router import handler as router_handler
from flightline.cloud.functions.alert_router import launches
from flightline.cloud.functions.alert_router.nodes import KnownNode
from flightline.cloud.functions.common import services as common
from flightline.contract import BOOT_PREFIX
from infra import node_roles
from infra.planning.lifecycle import BOOT_OUTCOME
from infra.planning.user_data import BootPlan, render
from tests.emulated import ACCOUNT, REGION, Cloud, Hooked, launching, lead_to
from tests.imds import serving
from tests.unit.functions import samples

ROOT = Path(__file__).resolve().parents[2]
ROLE_HERE = "'base' in group_names"
RESULTS, BUCKET, GROUP, HOOK = "demo-results", "demo-results-bucket", "demo-gpu", "demo-boot-preflight"
DRAIN = contract.drain_hook("demo")
BOOTS = f"{BOOT_PREFIX}arn:aws:ec2:{REGION}:{ACCOUNT}:instance"

AWS = r"""#!/bin/sh
# A stand-in for the aws command: s3 cp by plain HTTP to the emulator; every call into a file.
echo "$*" >>"$CALLS"
case "$*" in *told.json*) [ ! -f "$CALLS.lost" ] || exit 1 ;; esac
[ "$1 $2" = "s3 cp" ] || exit 0
[ -z "${NO_S3:-}" ] || exit 1
ask() {
    # moto looks at who asks and not at the signature.
    curl -fsS -H "Content-Type: application/octet-stream" \
        -H "Authorization: AWS4-HMAC-SHA256 Credential=made-up/20261121/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0" "$@"
}
for word; do source=${target:-}; target=$word; done
case "$source $*" in
    s3://*) ask -o "$target" "$AWS_ENDPOINT_URL/${source#s3://}" ;;
    *--recursive*)
        sleep "${BUNDLE_SLEEPS:-0}"
        for file in "$source"/*; do ask -T "$file" "$AWS_ENDPOINT_URL/${target#s3://}/${file##*/}"; done ;;
    *) ask -T "$source" "$AWS_ENDPOINT_URL/${target#s3://}" ;;
esac
"""

PACKAGE = """#!/usr/bin/env python3
import os, pathlib, sys, time
arguments = sys.argv[1:]
pathlib.Path(os.environ["CALLS"]).open("a").write("package " + " ".join(arguments) + "\\n")
time.sleep(float(os.environ.get("PACKAGE_SLEEPS", "0")))
if "--bundle" in arguments:
    bundle = pathlib.Path(arguments[arguments.index("--bundle") + 1])
    bundle.mkdir()
    (bundle / "kernel.log").write_text("NVRM: Xid")
if os.environ.get("RECORD"):
    pathlib.Path(arguments[arguments.index("--record") + 1]).write_text(os.environ["RECORD"])
sys.exit(int(os.environ.get("PACKAGE_EXITS", "0")))
"""


@pytest.fixture(scope="module")
def metadata():
    with serving() as made:
        yield made


@dataclass
class Site:
    """The emulated stack, and machines that boot in it. kind: the type that the metadata service tells, if any.

    routes: whether the router gets what is in its queue while a machine boots. at: of events, instead of now.
    """

    cloud: Cloud
    metadata: Any
    root: Path
    queue: str = ""
    reader: str = ""
    topic: str = ""
    limit: int = 5
    kind: str = ""
    routes: bool = True
    at: str = ""
    plan: BootPlan = field(init=False)

    def __post_init__(self) -> None:
        self.cloud.table(RESULTS)
        self.cloud.bucket(BUCKET)
        self.topic, self.reader = self.cloud.topic("demo-alerts")
        self._group()
        self.hooked = Hooked(self.cloud.client("autoscaling"))
        sqs = self.cloud.client("sqs")
        self.queue = sqs.create_queue(QueueName="demo-alert-router-events")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        rules = [{"Name": "prefix", "Value": BOOT_PREFIX}, {"Name": "suffix", "Value": BOOT_OUTCOME}]
        wanted = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*"], "Filter": {"Key": {"FilterRules": rules}}}
        self.cloud.client("s3").put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": [wanted]}
        )
        sha = hashlib.sha256(PACKAGE.encode()).hexdigest()
        package = f"artifacts/flightline-node-{sha}.pyz"
        self.cloud.client("s3").put_object(Bucket=BUCKET, Key=package, Body=PACKAGE.encode())
        self.plan = BootPlan(
            region=REGION,
            instance_type="p5.48xlarge",
            level="quick",
            time_limit_minutes=20,
            package_url=f"s3://{BUCKET}/{package}",
            package_sha256=sha,
            group=GROUP,
            results_url=f"s3://{BUCKET}/{BOOTS}",
        )
        (self.root / "bin").mkdir()
        tool = self.root / "bin" / "aws"
        tool.write_text(AWS)
        tool.chmod(0o755)

    def _group(self, name: str = GROUP) -> None:
        autoscaling = self.cloud.client("autoscaling")
        autoscaling.create_launch_configuration(
            LaunchConfigurationName=name, ImageId="ami-12345678", InstanceType="t2.micro"
        )
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName=name,
            MinSize=0,
            MaxSize=100,
            AvailabilityZones=[f"{REGION}a"],
            Tags=[{"Key": contract.TAG_CLUSTER, "Value": samples.CLUSTER, "PropagateAtLaunch": True}],
        )

    def launch(self, instance: str, group: str = GROUP, state: str = "Pending:Wait", ago_h: float = 0.05) -> None:
        """An instance that the group launches, of the id that the test wants; moto makes one up and serves it at once."""
        known = {one.instance.id for one in self.states(group)}
        if instance in known:
            return
        with launching(group, state=state), pytest.MonkeyPatch.context() as patch:
            patch.setattr("moto.ec2.models.instances.random_instance_id", lambda: instance)
            self.cloud.client("autoscaling").set_desired_capacity(
                AutoScalingGroupName=group, DesiredCapacity=len(known) + 1
            )
        (made,) = [one.instance for one in self.states(group) if one.instance.id == instance]
        made.launch_time = (datetime.now(UTC) - timedelta(hours=ago_h)).isoformat()

    @staticmethod
    def states(group: str = GROUP) -> list[Any]:
        """The emulator's own objects: nothing in its API sets what a group thinks of an instance."""
        return autoscaling_backends[ACCOUNT][REGION].autoscaling_groups[group].instance_states

    def suspended(self) -> list[str]:
        found = self.cloud.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
        (group,) = found["AutoScalingGroups"]
        return [one["ProcessName"] for one in group["SuspendedProcesses"]]

    def boot(self, instance: str = samples.NODE, **env: str) -> tuple[int, list[str]]:
        """Exit status and aws calls of one boot of a machine; each instance keeps its disk."""
        self.launch(instance)
        disk = self.root / instance
        disk.mkdir(exist_ok=True)
        files = {one["path"]: one["content"] for one in yaml.safe_load(render(self.plan))["write_files"]}
        (disk / "boot.env").write_text(files["/etc/flightline/boot.env"])
        for name, variable in (("LIMIT", "LIMIT_S"), ("CONFIGURE_LIMIT", "CONFIGURE_S")):
            if name in env:
                with (disk / "boot.env").open("a") as stream:
                    stream.write(f"{variable}='{env.pop(name)}'\n")
        (disk / "flightline-boot").write_text(files["/usr/local/sbin/flightline-boot"])
        calls = disk / "calls"
        calls.write_text("")
        self.metadata.values = {"meta-data/instance-id": instance, "meta-data/instance-type": self.kind or None}
        done = subprocess.Popen(
            ["/bin/sh", str(disk / "flightline-boot")],
            env={
                **self.cloud.env,
                # The tests' own Python, which has the ansible-core that a bundle brings to a node.
                "PATH": f"{self.root}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "CALLS": str(calls),
                "FLIGHTLINE_BOOT_ENV": str(disk / "boot.env"),
                "FLIGHTLINE_STATE": str(disk / "state"),
                "FLIGHTLINE_LOG": str(disk / "log"),
                "FLIGHTLINE_METADATA": self.metadata.url,
                "FLIGHTLINE_PAUSE_S": "0",
                "FLIGHTLINE_ANSWER_S": "0.3",
                "FLIGHTLINE_ROUNDS": "20",
                **env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 180
        while done.poll() is None:
            assert time.monotonic() < until
            before = len(self.hooked.completed)
            self.hand() if self.routes else self.drop()
            with calls.open("a") as stream:
                stream.writelines(
                    f"group told {one['LifecycleActionResult']}\n" for one in self.hooked.completed[before:]
                )
            time.sleep(0.05)
        said = done.stderr.read()
        assert "not found" not in said, said
        return done.returncode, calls.read_text().splitlines()

    def leave(self, result: str, kept: str = "", **said: Any) -> None:
        """Put what a boot leaves, without a boot: its outcome, and its record where there is one."""
        node = said.pop("instance", samples.NODE)
        if said.pop("launched", True):
            self.launch(node)
        outcome = {"schema": "flightline-boot/1", "instance_id": node, "result": result, "first": True}
        files = {"record": kept, "outcome": json.dumps({**outcome, "record": bool(kept), **said})}
        for name, body in files.items():
            if body:
                key = f"{BOOTS}/{node}/20261121T100000Z-1/{name}.json"
                self.cloud.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body.encode())

    def upload(self, key: str, body: bytes) -> tuple[str, str]:
        """Put an artifact; returns its place and checksum."""
        self.cloud.client("s3").put_object(Bucket=BUCKET, Key=f"artifacts/{key}", Body=body)
        return f"s3://{BUCKET}/artifacts/{key}", hashlib.sha256(body).hexdigest()

    def roles(self, tasks: list[dict[str, Any]], **variables: Any) -> None:
        """Let nodes configure themselves by a checkout whose one role has these tasks."""
        checkout = self.root / "checkout"
        for path, content in {
            "roles/base/tasks/main.yml": yaml.safe_dump(tasks),
            "inventory/roles.yml": (ROOT / "inventory/roles.yml").read_text(),
            "inventory/group_vars/aws_ec2/main.yml": "marker: '{{ flightline_stack.cluster_name }} {{ instance_id }}'",
            "playbooks/site.yml": yaml.safe_dump(
                [
                    {
                        "hosts": "all",
                        "gather_facts": False,
                        "become": True,
                        "roles": [{"role": "base", "when": ROLE_HERE}],
                    }
                ]
            ),
            "ansible.cfg": (ROOT / "ansible.cfg").read_text(),
        }.items():
            (checkout / path).parent.mkdir(parents=True, exist_ok=True)
            (checkout / path).write_text(content)
        (self.root / "no-runner").mkdir(exist_ok=True)
        roles = self.upload("roles.tar.gz", node_roles.contents(checkout, self.root / "no-runner"))
        given = self.upload(
            "stack.json", json.dumps({"flightline_stack": {"cluster_name": "demo", **variables}}).encode()
        )
        self.plan = replace(
            self.plan,
            roles_url=roles[0],
            roles_sha256=roles[1],
            variables_url=given[0],
            variables_sha256=given[1],
            skip=(),
        )

    def deliver(self, *more: dict[str, Any]) -> list[str]:
        """Hand the queue, and events of EventBridge, to the router; returns what people were told by now."""
        assert self.hand(*more) == {"batchItemFailures": []}
        return self.cloud.told_texts(self.reader)

    def hand(self, *more: Any) -> dict[str, Any]:
        """Hand the queue to the router."""
        bodies = [*more, *self.drop()]
        return self.router().handle(samples.sqs(*bodies)) if bodies else {"batchItemFailures": []}

    def drop(self) -> list[Any]:
        """Take what is in the queue out of it."""
        bodies = []
        for message in self.cloud.received(self.queue):
            body = json.loads(message["Body"])
            for one in body.get("Records", []):
                one["eventTime"] = self.at or one["eventTime"]
            bodies.append(json.dumps(body))
            self.cloud.client("sqs").delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
        return bodies

    def router(self) -> router_handler.Router:
        names = common.ServiceNames(
            samples.CLUSTER,
            "Flightline/demo",
            RESULTS,
            "none",
            BUCKET,
            {"topic": self.topic},
            node_group=GROUP,
            boot_failures=self.limit,
            launch_hook=HOOK,
            drain_hook=DRAIN,
        )
        ec2, cloudwatch, s3 = map(self.cloud.client, ("ec2", "cloudwatch", "s3"))
        return router_handler.build(common.services("alert-router", names), ec2, cloudwatch, s3, self.hooked)

    def invalid(self) -> list[str]:
        return [kept["reason"] for kept in self.cloud.invalid(BUCKET)]


@pytest.fixture
def site(server, metadata, monkeypatch, tmp_path):
    lead_to(server, monkeypatch)
    monkeypatch.setattr(common, "client", server.client)
    made = Site(server, metadata, tmp_path)
    made.deliver()  # S3 tries the queue first
    return made


def record(instance: str = samples.NODE, **more: Any) -> str:
    return json.dumps(samples.record(instance, **more))


def place(calls: list[str], word: str) -> int:
    (found,) = [index for index, call in enumerate(calls) if word in call]
    return found


def judged(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith("package ")]


def fetched(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith("s3 cp --only-show-errors s3://") and "told.json" not in call]


def decided(calls: list[str]) -> list[str]:
    return [call.split()[-1] for call in calls if call.startswith("group told")]


def test_a_first_boot_no_go_tells_people_what_is_wrong_and_where_to_look(site):
    status, calls = site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1")
    assert (status, decided(calls)) == (1, ["ABANDON"])
    (told,) = site.deliver()
    for word in (
        "no_go_at_boot on 1 node",
        f"gpu-01 ({samples.NODE})",
        "GPU 3",
        "measured 7",
        "expected  8",
        "REPLACE",
        "7 of 8 GPUs: 1 missing",
        f"s3://{BUCKET}/{BOOTS}/{samples.NODE}/",
    ):
        assert word in told
    assert "never judged" not in told


def test_what_an_abandon_rests_on_is_kept_before_the_group_is_told(site):
    """Bundle, record, outcome, ABANDON: once the outcome is there, the instance may be gone."""
    _, calls = site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1")
    order = [place(calls, word) for word in ("--recursive", "/record.json", "/outcome.json", "group told")]
    assert order == sorted(order)
    kept = {key.rpartition("/")[2] for key in site.cloud.objects(BUCKET) if key.startswith("bundles/boot/")}
    assert kept == {"record.json", "outcome.json", "kernel.log", contract.BOOT_TOLD}


def test_a_bundle_that_does_not_end_does_not_hold_the_group_up(site):
    _, calls = site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1", BUNDLE_SLEEPS="60", FLIGHTLINE_BUNDLE_S="1")
    assert decided(calls) == ["ABANDON"]
    assert "7 of 8 GPUs" in site.deliver()[0]


def test_a_place_that_takes_nothing_does_not_hold_the_group_up(site):
    """S3 is away after the package was fetched: the verdict stands, the hook is told."""
    site.boot(RECORD=record())
    status, calls = site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1", NO_S3="1")
    assert status == 1 and decided(calls) == []
    other = "i-0aaaaaaaaaaaaaaa1"
    status, calls = site.boot(other, NO_S3="1", FLIGHTLINE_ROUNDS="2")
    assert (status, decided(calls)) == (2, []), "the hook's time is what ends it"
    assert len(fetched(calls)) == 5 and [call for call in calls if call.endswith("/outcome.json")]


@pytest.mark.parametrize("lost", ["event", "answer", "refused"])
def test_a_lost_event_a_lost_answer_and_a_failing_group_cost_no_healthy_node(site, lost):
    """The word is left again until it is answered; done twice it changes nothing."""
    disk, hands = site.root / samples.NODE, []
    complete = site.hooked.complete_lifecycle_action

    def once(*more):
        hands.append(None)
        if lost == "answer":
            again = (disk / "calls").read_text().count("/outcome.json") > 1
            (disk / "calls.lost").unlink(missing_ok=True) if again else (disk / "calls.lost").touch()
        bodies = site.drop()
        if bodies and lost == "event" and "dropped" not in hands:
            hands.append("dropped")
            return {}
        return site.router().handle(samples.sqs(*bodies)) if bodies else {}

    def refuses(**asked):
        if "refused" not in hands:
            hands.append("refused")
            raise RuntimeError("Throttling")
        complete(**asked)

    site.hand, site.hooked.complete_lifecycle_action = once, refuses if lost == "refused" else complete
    status, calls = site.boot(RECORD=record())
    assert (status, decided(calls)) == (0, ["CONTINUE"])
    assert len([call for call in calls if call.endswith("/outcome.json")]) > 1
    assert site.cloud.told_texts(site.reader) == []


def test_a_router_that_is_away_leaves_the_node_to_the_hook(site):
    site.routes = False
    status, calls = site.boot(RECORD=record(), FLIGHTLINE_ROUNDS="2")
    assert (status, decided(calls)) == (2, [])
    assert not list((site.root / samples.NODE / "state").glob("in-service-*"))


def test_a_go_without_its_record_lets_nobody_in(site):
    status, calls = site.boot()
    assert (status, decided(calls)) == (2, ["ABANDON"])
    site.leave("CONTINUE", instance="i-0aaaaaaaaaaaaaaa1", reason="go", status=0)
    site.deliver()
    assert site.hooked.completed[-1]["LifecycleActionResult"] == "ABANDON"


@pytest.mark.parametrize(
    ("state", "completed"),
    [("Terminating:Wait", [DRAIN]), ("Terminating:Proceed", []), ("InService", []), ("Pending:Wait", [])],
)
def test_a_node_that_ends_is_let_go_by_its_own_word_where_its_group_waits_for_that(site, state, completed):
    site.launch(samples.NODE, state=state)
    site.leave("CONTINUE", schema="flightline-ending/1", first=False)
    assert site.deliver() == []
    assert [one["LifecycleHookName"] for one in site.hooked.completed] == completed
    assert all(
        (one["InstanceId"], one["LifecycleActionResult"]) == (samples.NODE, "CONTINUE") for one in site.hooked.completed
    )


def test_an_instance_that_aws_does_not_know_yet_is_asked_for_again(site):
    """What AWS answers may be some seconds old: a healthy node must not be refused for it."""
    site.leave("CONTINUE", record(), reason="go", status=0, launched=False)
    assert len(site.hand()["batchItemFailures"]) == 1 and site.cloud.told_texts(site.reader) == []
    site.launch(samples.NODE, state="Pending")
    site.leave("CONTINUE", record(), reason="go", status=0, launched=False)
    assert len(site.hand()["batchItemFailures"]) == 1
    site.states()[0].lifecycle_state = "Pending:Wait"
    site.leave("CONTINUE", record(), reason="go", status=0, launched=False)
    assert site.deliver() == [] and len(site.hooked.completed) == 1


def test_a_go_enters_service_and_tells_nobody(site):
    status, calls = site.boot(RECORD=record())
    assert (status, decided(calls)) == (0, ["CONTINUE"])
    assert site.deliver() == []
    (asked,) = judged(calls)
    for argument in (
        "--instance-type p5.48xlarge",
        f"--instance-id {samples.NODE}",
        "--level quick",
        "check --settings",
        "/log/records.jsonl",
    ):
        assert argument in asked
    (asked,) = site.hooked.completed
    assert (asked["AutoScalingGroupName"], asked["LifecycleHookName"]) == (GROUP, HOOK)
    assert any("record.json" in call for call in calls) and not any("--recursive" in call for call in calls)


@pytest.mark.parametrize(
    ("kind", "judged_as"),
    [("g6.48xlarge", "g6.48xlarge"), ("p5.48xlarge", "p5.48xlarge"), ("g6.4xlarge", "p5.48xlarge"), ("", "")],
    ids=["another of the list", "the first", "not asked for", "not said"],
)
def test_of_several_types_a_node_is_judged_as_the_one_it_is_and_as_no_other(site, kind, judged_as):
    site.plan, site.kind = replace(site.plan, other_types="g6e.48xlarge,g6.48xlarge"), kind
    status, calls = site.boot(RECORD=record())
    if kind:
        assert status == 0 and f"--instance-type {judged_as} " in judged(calls)[0]
    else:
        assert status != 0 and decided(calls) == judged(calls) == []


def test_a_package_that_changed_on_disk_is_fetched_again(site):
    site.boot(RECORD=record())
    (kept,) = (site.root / samples.NODE / "state").glob("*.pyz")
    kept.write_text("import sys; sys.exit(0)")
    assert fetched(site.boot(RECORD=record())[1]) and kept.read_text() == PACKAGE


def test_without_metadata_nobody_is_told_and_the_hook_times_out(site):
    code, calls = site.boot(FLIGHTLINE_METADATA="http://127.0.0.1:9")
    assert (code, decided(calls)) == (2, [])


def test_a_node_outside_a_group_tells_nobody(site):
    site.plan = replace(site.plan, group="")
    status, calls = site.boot(RECORD=record())
    assert status == 0 and not [call for call in calls if "told.json" in call]


def test_a_node_outside_a_stack_judges_itself_by_the_role_s_settings(site):
    """The same script, without a stack's boot.env: no metadata, no AWS, the library that the role installed."""
    installed, settings = site.root / "installed.pyz", site.root / "node.json"
    installed.write_text(PACKAGE)
    env = {"FLIGHTLINE_BOOT_ENV": str(site.root / "nothing"), "FLIGHTLINE_PACKAGE": str(installed)}
    for code in (1, 0):
        status, (asked,) = site.boot(**env, FLIGHTLINE_SETTINGS=str(settings), PACKAGE_EXITS=str(code))
        assert status == code and asked.startswith(f"package check --settings {settings} --run boot-")
        assert "--level" not in asked and "--instance-type" not in asked


def test_the_same_outcome_comes_twice_and_is_told_once(site):
    site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1")
    (key,) = [key for key in site.cloud.objects(BUCKET) if key.endswith("outcome.json")]
    assert len(site.deliver()) == 1
    again = {
        "eventSource": "aws:s3",
        "eventTime": samples.AT,
        "s3": {"bucket": {"name": BUCKET}, "object": {"key": key}},
    }
    assert site.deliver({"Records": [again]}, {"Records": [again]}) == []


@pytest.mark.parametrize(
    ("env", "status", "words"),
    [
        ({"PACKAGE_SLEEPS": "60", "LIMIT": "1"}, 124, "no verdict within its time limit"),
        ({"PACKAGE_EXITS": "137"}, 137, "no verdict within its time limit"),
        ({"PACKAGE_EXITS": "2"}, 2, "ended without a verdict"),
        ({"PACKAGE_EXITS": "1", "RECORD": "{"}, 1, "its record cannot be used"),
        ({"PACKAGE_EXITS": "1", "RECORD": record("i-0bbbbbbbbbbbbbbb1")}, 1, f"wanted a record of {samples.NODE}"),
        ({"PACKAGE_EXITS": "0", "RECORD": record(verdict="no-go")}, 0, "7 of 8 GPUs"),
    ],
    ids=["hangs", "killed", "ends", "cut", "of another", "go without"],
)
def test_a_boot_without_a_usable_verdict_is_told_too(site, env, status, words):
    """A hang, a crash, a record cut off, another node's record, and a go that its own record does not carry."""
    code, calls = site.boot(**env)
    assert (code, decided(calls)) == (status, ["ABANDON"])
    (told,) = site.deliver()
    assert words in told and samples.NODE in told


def test_a_package_that_was_changed_is_told(site):
    site.plan = replace(site.plan, package_sha256="0" * 64)
    status, calls = site.boot()
    assert (status, decided(calls), judged(calls)) == (2, ["ABANDON"], [])
    assert not list((site.root / samples.NODE / "state").glob("*.pyz"))
    assert "another checksum" in site.deliver()[0]


def test_a_no_go_after_a_reboot_is_told_and_stops_nothing(site):
    site.boot(RECORD=record())
    status, calls = site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1")
    assert (status, decided(calls), len(judged(calls))) == (1, [], 1)
    (told,) = site.deliver()
    assert "no-go after a reboot" in told and "7 of 8 GPUs" in told
    assert site.suspended() == []
    later = record(started_at="2026-11-21T12:00:00+00:00")
    site.boot(RECORD=later)
    assert ["Recovered" in told for told in site.deliver()] == [True]


def test_a_node_that_restarts_before_it_heard_the_answer_is_in_no_first_boot_again(site):
    (site.root / samples.NODE).mkdir(exist_ok=True)
    (site.root / samples.NODE / "calls.lost").touch()
    status, calls = site.boot(RECORD=record(), FLIGHTLINE_ROUNDS="1")
    assert (status, decided(calls)) == (2, ["CONTINUE"]), "the group was told, and the node does not know"
    (site.root / samples.NODE / "calls.lost").unlink()
    site.boot(RECORD=record(verdict="no-go"), PACKAGE_EXITS="1", FLIGHTLINE_ROUNDS="2")
    (told,) = site.deliver()
    assert "no-go after a reboot" in told and "doubted" not in told


def test_a_bad_image_stops_launches_and_the_message_says_how_to_go_on(site):
    for number in range(1, 6):
        assert site.suspended() == []
        node = f"i-0aaaaaaaaaaaaaaa{number}"
        site.launch(node)
        site.leave("ABANDON", record(node, host=node, verdict="no-go"), instance=node, reason="no-go", status=1)
        told = site.deliver()
    assert site.suspended() == ["Launch"]
    assert len(told) == 1
    for word in (
        "demo-gpu launches no more nodes",
        "5 boots without a go in 6 h, 0 with",
        "2% bad",
        "resume-processes",
    ):
        assert word in told[0]


def launch_failed(instance: str, event_id: str) -> dict[str, Any]:
    return samples.launch(instance=instance, event_id=event_id)


def launched(event_id: str, began: str, at: str = "2026-11-21T10:20:00Z") -> dict[str, Any]:
    event = samples.launch("Successful", "i-0bbbbbbbbbbbbbbb1", event_id, StartTime=began)
    return event | {"time": at}


def fails(site: Site, numbers: Iterable[int], at: str = samples.AT) -> list[str]:
    """What people are told, at last, of launches of which the group says that they failed with an instance."""
    told: list[str] = []
    for number in numbers:
        event = launch_failed(f"i-0aaaaaaaaaaaaaa{number:02d}", f"e{number}") | {"time": at}
        told = site.deliver(event)
    return told


def test_a_hang_counts_by_the_groups_own_event_and_a_boot_counts_once(site):
    """Heartbeat time-outs leave no outcome; an abandoned boot comes both ways; no capacity costs nothing."""
    node = "i-0aaaaaaaaaaaaaaa1"
    site.boot(node, RECORD=record(node, verdict="no-go"), PACKAGE_EXITS="1")
    site.deliver(launch_failed(node, "e1"))
    for number in range(5):
        site.deliver(launch_failed("", f"none-{number}"))
    fails(site, range(2, 5))
    assert site.suspended() == []
    assert "launches no more nodes" in fails(site, [5])[-1] and site.suspended() == ["Launch"]


def test_goes_of_before_hide_no_image_that_is_bad_now(site):
    for number in range(30):
        site.deliver(launched(f"s{number}", samples.AT, samples.AT))
    fails(site, range(5), "2026-11-21T10:05:00Z")
    assert site.suspended() == ["Launch"]


def test_goes_beside_boots_without_one_keep_launches_going(site):
    told: list[str] = []
    for number in range(8):
        at = f"2026-11-21T10:{number:02d}:00Z"
        site.deliver(*(launched(f"s{number}-{n}", samples.AT, at) for n in range(10)))
        told = fails(site, [number], at)
    assert site.suspended() == [] and told and "launches no more" not in told[-1]


@pytest.mark.parametrize(
    "code", ["Server.SpotInstanceTermination", "Server.InsufficientInstanceCapacity", "Client.InternalError"]
)
def test_boots_that_the_cloud_ended_count_for_nothing(site, code):
    for number in range(8):
        site.launch(f"i-0aaaaaaaaaaaaaa{number:02d}")
    for state in site.states():
        state.instance.state_reason.code = code
    fails(site, range(8))
    assert site.suspended() == []


@pytest.mark.parametrize("others", [True, False])
def test_nodes_that_came_further_keep_launches_going_before_they_have_ended(site, others):
    """Roles that fail take less time than a go: of thirty nodes, launched one by one, five fail after three minutes."""
    began = datetime(2026, 11, 21, 10, tzinfo=UTC)
    nodes = [
        KnownNode(f"i-0aaaaaaaaaaaaaa{n:02d}", "", samples.CLUSTER, "", "running", began.timestamp() + 36 * n)
        for n in range(30)
    ]
    limit = replace(site.router().launches, peers=lambda: nodes if others else [])
    for number in (0, 7, 14, 21, 28):
        at = datetime.fromtimestamp(nodes[number].launched_s + 180, UTC).isoformat()
        told = limit.failed(nodes[number].instance_id, at, nodes[number])
    assert (told is None) is others and site.suspended() == ([] if others else ["Launch"])


def test_after_a_person_resumed_the_limit_counts_anew_and_a_second_stop_is_told(site):
    fails(site, range(5))
    site.cloud.client("autoscaling").resume_processes(AutoScalingGroupName=GROUP)
    fails(site, range(5, 9))
    assert site.suspended() == []
    assert "launches no more nodes" in fails(site, [9], "2026-11-21T11:00:00Z")[-1]
    assert site.suspended() == ["Launch"]


def test_a_stop_that_nobody_could_be_told_of_is_told_by_the_next_delivery(site, monkeypatch):
    stop = site.router().launches
    for number in range(4):
        assert stop.failed(f"i-0aaaaaaaaaaaaaaa{number}", samples.UTC, None) is None
    first = stop.failed("i-0aaaaaaaaaaaaaaa4", samples.UTC, None)
    again = stop.failed("i-0aaaaaaaaaaaaaaa4", "2026-11-21T10:05:00+00:00", None)
    assert first is not None and again is not None and first.key == again.key and again.check == launches.CHECK


def test_a_launch_from_before_a_stop_is_no_sign_that_launches_go_on(site):
    """Of eight nodes launched together five fail, and a sixth serves a minute later: people read "recovered"."""
    assert "launches no more nodes" in fails(site, range(5))[-1]
    (told,) = site.deliver(launched("before", "2026-11-21T09:50:00.123Z"))
    assert "launch recovered" in told and launches.CHECK not in told
    (told,) = site.deliver(launched("after", "2026-11-21T10:10:00.123Z"))
    assert launches.CHECK in told


def forged(site: Site, node: str, **said: Any) -> list[str]:
    """What people are told of an outcome that another node wrote."""
    site.leave("ABANDON", instance=node, reason="no-go", status=1, launched=False, **said)
    return site.deliver()


def test_outcomes_of_invented_instances_stop_nothing_and_are_told_once(site):
    site.at = samples.AT  # long enough ago for EC2 to know of them
    told = [text for number in range(10) for text in forged(site, f"i-0aaaaaaaaaaaaaa{number:02d}")]
    assert site.suspended() == []
    assert len(told) == 1 and "boot_outcome_doubted" in told[0] and "EC2 knows no such instance" in told[0]
    assert "no_go_at_boot" not in told[0]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"group": "other"}, "an instance of another group (other)"),
        ({"ago_h": 7}, "launched long before"),
        ({"state": "InService"}, "the group has the instance in service"),
    ],
    ids=["another group's", "of another day", "that serves"],
)
def test_outcomes_of_instances_that_are_in_no_first_boot_here_stop_nothing(site, made, why):
    site._group("other")
    for number in range(6):
        site.launch(f"i-0aaaaaaaaaaaaaa{number:02d}", **made)
    told = [text for number in range(6) for text in forged(site, f"i-0aaaaaaaaaaaaaa{number:02d}")]
    assert site.suspended() == [] and len(told) == 1 and why in told[0]


def test_a_launch_of_another_group_counts_for_nothing(site):
    """The rule of this stack asks for its group alone; its queue takes what any rule of a like name sends."""
    for number in range(3):
        event = launch_failed(f"i-0aaaaaaaaaaaaaaa{number}", f"e{number}")
        event["detail"]["AutoScalingGroupName"] = "demo-2-gpu"
        assert site.deliver(event) == []
    assert site.suspended() == []


@pytest.mark.parametrize("odd", [{"reason": ["no-go"]}, {"reason": {}}, {"status": [1]}, {"first": "true"}])
def test_an_outcome_with_odd_values_is_told_all_the_same(site, odd):
    """A reason that is a list came again and again and ended as a dead letter: nobody was told of the boot."""
    site.leave("ABANDON", **{"reason": "no-go", "status": 1, **odd})
    (told,) = site.deliver()
    assert "no_go_at_boot" in told and samples.NODE in told


def test_a_boot_s_record_from_the_future_is_told_and_not_believed(site):
    site.boot(RECORD=record(started_at="2099-01-01T00:00:00+00:00"))
    (told,) = site.deliver()
    assert "later than now" in told


def test_the_end_of_a_capacity_block_is_told_with_time_for_a_checkpoint_and_ends_relaunching(site):
    detail = {"capacity-reservation-id": "cr-0123456789abcdef0", "end-date": "2026-11-21T11:30:00Z"}
    told = site.deliver(samples.bridge("Capacity Block Reservation Expiration Warning", "aws.ec2", detail))
    assert len(told) == 1
    for word in (
        "cr-0123456789abcdef0 ends at 2026-11-21T11:30:00Z",
        "Write a checkpoint now",
        "capacityReservationId",
    ):
        assert word in told[0]
    assert site.suspended() == ["Launch"]


@pytest.mark.parametrize(
    ("key", "body", "reason"),
    [
        (f"{BOOTS}/i-0123456789abcdef0/20261121T100000Z-1/outcome.json", b"[]", "wanted an outcome"),
        (f"{BOOTS}/i-0123456789abcdef0/20261121T100000Z-1/outcome.json", b"{", "not JSON"),
        ("bundles/boot/x/y/outcome.json", b"{}", "wanted bundles/boot/<instance's ARN>"),
        (
            f"{BOOTS}/i-0123456789abcdef0/20261121T100000Z-1/outcome.json",
            b'{"schema": "flightline-boot/1", "instance_id": "i-0aaaaaaaaaaaaaaaa"}',
            "of i-0123456789abcdef0 itself",
        ),
    ],
)
def test_an_outcome_that_is_none_is_kept_and_costs_no_other(site, key, body, reason):
    site.cloud.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
    site.boot("i-0aaaaaaaaaaaaaaa1", RECORD=record("i-0aaaaaaaaaaaaaaa1", verdict="no-go"), PACKAGE_EXITS="1")
    assert len(site.deliver()) == 1
    assert [reason in text for text in site.invalid()] == [True]


# A node that configures itself: a real ansible-core applies a bundle of a small checkout, with the connection local.


def write(path: Path, content: str = "{{ marker }}") -> dict[str, Any]:
    return {"name": "Leave a mark", "ansible.builtin.copy": {"dest": str(path), "content": content, "mode": "0644"}}


def test_an_empty_node_configures_itself_before_it_is_judged(site, tmp_path):
    site.roles([write(tmp_path / "mark")])
    status, calls = site.boot(RECORD=record())
    assert (status, decided(calls)) == (0, ["CONTINUE"])
    assert (tmp_path / "mark").read_text() == f"demo {samples.NODE}"
    assert place(calls, "roles.tar.gz") < place(calls, "stack.json") < place(calls, "group told")
    (tmp_path / "mark").unlink()
    site.boot(RECORD=record())
    assert not (tmp_path / "mark").exists(), "the same bundle is applied once: later changes come by hand"


def test_a_node_that_cannot_be_configured_is_kept_out_and_told(site, tmp_path):
    site.roles([{"name": "Break", "ansible.builtin.fail": {"msg": "no mirror answers"}}, write(tmp_path / "mark")])
    status, calls = site.boot(RECORD=record())
    assert (status, decided(calls)) == (2, ["ABANDON"])
    (told,) = site.deliver()
    assert "the roles could not be applied" in told and samples.NODE in told
    logs = {key: body for key, body in site.cloud.objects(BUCKET).items() if key.endswith("configure.log")}
    assert [b"no mirror answers" in body for body in logs.values()] == [True]


def test_roles_that_hang_are_ended(site):
    site.roles([{"name": "Hang", "ansible.builtin.command": {"cmd": "sleep 100"}}])
    _, calls = site.boot(RECORD=record(), CONFIGURE_LIMIT="3")
    assert decided(calls) == ["ABANDON"]
    assert "not applied within configureMinutes" in site.deliver()[0]


@pytest.mark.parametrize("changed", ["roles_sha256", "variables_sha256"])
def test_roles_or_variables_that_were_changed_in_the_bucket_are_not_applied(site, tmp_path, changed):
    site.roles([write(tmp_path / "mark")])
    site.plan = replace(site.plan, **{changed: "0" * 64})
    _, calls = site.boot(RECORD=record())
    assert decided(calls) == ["ABANDON"] and not (tmp_path / "mark").exists()
    assert "could not be fetched or have another checksum; they were not applied" in site.deliver()[0]
