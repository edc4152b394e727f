"""The account of one boot suite: the plan of the `local` stack, made on the emulator, and what its router tells people.

The nodes' package, the roles' bundle, the variables, the user data, names and the bucket's notification are the plan's own. The
router is called as Lambda's event source mapping would call it; its message goes to the stack's topic, which a queue reads.
"""

import base64
import hashlib
import json
import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from flightline.cloud import batches
from flightline.cloud.functions.alert_router import handler as router_handler
from flightline.cloud.functions.common import services as common
from flightline.contract import BOOT_PREFIX
from infra import link, node_ansible, node_roles
from tests.emulated import Cloud, Hooked, launching
from tests.infra import emulated, program
from tests.infra.stacks import ACCOUNT, ROOT
from tests.unit.functions import samples

REGION, ZONE, ROLE = "us-east-1", "us-east-1a", "flightline-local-node"
WHOLE = ("flightline", "tools", "infra", "playbooks", "ansible.cfg", "inventory/roles.yml")
LINKED = (*WHOLE, *(name for name in node_roles.FOLDERS if not name.startswith(tuple(f"{one}/" for one in WHOLE))))


def checkout(place: Path, site: Mapping[str, Any]) -> Path:
    """This checkout with a site's own variables beside the stack's, as docs/deploy.md says where to put them."""
    for name in LINKED:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(ROOT / name)
    group = place / node_roles.VARIABLES
    group.mkdir(parents=True)
    for path in (ROOT / node_roles.VARIABLES).glob("*.yml"):
        (group / path.name).write_text(path.read_text())
    (group / "site.yml").write_text(yaml.safe_dump(dict(site), sort_keys=False))
    return place


class Account:
    """One stack in an emulated account."""

    def __init__(self, place: Path, settings: Mapping[str, Any], site: Mapping[str, Any]) -> None:
        self.cloud = Cloud()
        self.place, self.settings, self.site = place, dict(settings), dict(site)
        self.planned = self.plan(place / "checkout", site)
        self.world = emulated.create(self.planned, self.cloud.url, REGION)
        self.outputs: dict[str, Any] = self.world.real(self.planned.outputs)
        self.bucket = str(self.outputs["results_bucket"])
        self.queue, self.reader = self._queues()
        self.hooked = Hooked(self.world.client("autoscaling"), REGION)

    def plan(self, place: Path, site: Mapping[str, Any]) -> Any:
        """Run the Pulumi program with the bundle of a checkout whose site says this."""
        body = node_roles.contents(checkout(place, site), node_ansible.runner(ROOT))
        path = place / "roles.tar.gz"
        path.write_bytes(body)
        built = node_roles.RolesBundle(path, hashlib.sha256(body).hexdigest())

        def main() -> None:
            with mock.patch.object(node_roles, "package", lambda: built):
                runpy.run_path(str(ROOT / "infra" / "__main__.py"), run_name="__main__")

        return program.run("local", changes=self.settings, program=main)

    def plan_again(self, name: str, settings: Mapping[str, Any], site: Mapping[str, Any] | None = None) -> Any:
        """The same stack with some settings, and a site's variables, changed."""
        before = self.settings
        self.settings = {**before, **settings}
        try:
            return self.plan(self.place / name, {**self.site, **(site or {})})
        finally:
            self.settings = before

    def suspended(self) -> list[str]:
        """What the group no longer does, beside what the plan has suspended."""
        (group,) = self.world.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=[self.outputs["node_group"]]
        )["AutoScalingGroups"]
        return [one["ProcessName"] for one in group["SuspendedProcesses"] if one["ProcessName"] != "AZRebalance"]

    @contextmanager
    def changed_bundle(self) -> Iterator[None]:
        """Other bytes under the key of the roles' bundle."""
        s3, key = self.world.client("s3"), str(self.planned.one("node-roles").props["key"])
        body = s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        s3.put_object(Bucket=self.bucket, Key=key, Body=body + b"\n")
        try:
            yield
        finally:
            s3.put_object(Bucket=self.bucket, Key=key, Body=body)

    def user_data(self, planned: Any = None) -> str:
        """What EC2 would give to the group's instances."""
        return base64.b64decode((planned or self.planned).one("nodes-template").props["userData"]).decode()

    def deliver_artifacts(self, planned: Any) -> None:
        """Put what another plan uploads beside what is there, as the next `pulumi up` does."""
        for name in ("node-package", "node-roles", "node-variables"):
            emulated.CREATORS["aws:s3/bucketObjectv2:BucketObjectv2"](self.world, planned.one(name).props)

    def variables(self) -> dict[str, Any]:
        """The stack's variables as a node fetches them."""
        found: dict[str, Any] = json.loads(self.planned.one("node-variables").props["content"])
        assert set(found) == {link.VARIABLE}
        return found

    def seen_by_ec2(self) -> dict[str, Any]:
        """What the inventory's plugin finds out at EC2 about an instance of the group."""
        (template,) = self.planned.of("aws:ec2/launchTemplate:LaunchTemplate")
        tags = {part["resourceType"]: part["tags"] for part in template.props["tagSpecifications"]}
        return {
            "ec2_tags": self.world.real(tags["instance"]),
            "ec2_instance_type": self.outputs["instance_type"],
            "ec2_placement": {"availability_zone": self.outputs["gpu_zone"]},
        }

    def launch(self) -> str:
        """The group starts one more instance; returns its id."""
        autoscaling, name = self.world.client("autoscaling"), self.outputs["node_group"]

        def there() -> set[str]:
            (group,) = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
            return {one["InstanceId"] for one in group["Instances"]}

        before = there()
        size = len(before) + 1
        with launching(name, REGION):
            autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=size, DesiredCapacity=size)
        (found,) = there() - before
        return found

    def metadata(self, instance: str, address: str, user_data: str) -> dict[str, str]:
        """What the metadata service of the instance says."""
        kind = str(self.outputs["instance_type"])
        document = {"accountId": "123456789012", "instanceId": instance, "instanceType": kind, "region": REGION}
        keys = {"Code": "Success", "Type": "AWS-HMAC", "Expiration": "2099-01-01T00:00:00Z", "Token": "made-up"}
        keys |= {"LastUpdated": "2026-01-01T00:00:00Z", "AccessKeyId": "ASIAMADEUP", "SecretAccessKey": "made-up"}
        name = f"ip-{address.replace('.', '-')}.ec2.internal"
        return {
            "meta-data/instance-id": instance,
            "meta-data/instance-type": kind,
            "meta-data/ami-id": str(self.outputs["image_id"]),
            "meta-data/local-ipv4": address,
            "meta-data/local-hostname": name,
            "meta-data/hostname": name,
            "meta-data/placement/availability-zone": ZONE,
            "meta-data/placement/region": REGION,
            f"meta-data/iam/security-credentials/{ROLE}": json.dumps(keys),
            "dynamic/instance-identity/document": json.dumps(document),
            "user-data": user_data,
        }

    def boots(self, instance: str) -> str:
        """Where the boots of an instance leave their evidence."""
        return f"{BOOT_PREFIX}arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance}/"

    def objects(self, instance: str) -> dict[str, bytes]:
        """What a boot of an instance left in S3, by the name after its stamp."""
        s3, prefix = self.world.client("s3"), self.boots(instance)
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])]
        return {
            key.removeprefix(prefix).partition("/")[2]: s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            for key in keys
        }

    def _queues(self) -> tuple[str, str]:
        """The router's queue with the bucket's notification, and a reader of the alerts topic."""
        sqs = self.world.client("sqs")
        (wanted,) = (one for one in self.planned.one("functions-boots").props["queues"] if one["id"] == "boots")
        router = sqs.create_queue(QueueName=wanted["queueArn"].rpartition(":")[2])["QueueUrl"]
        reader = sqs.create_queue(QueueName="reader")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=reader, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.world.client("sns").subscribe(TopicArn=self.outputs["alerts_topic_arn"], Protocol="sqs", Endpoint=arn)
        rules = [
            {"Name": "prefix", "Value": wanted["filterPrefix"]},
            {"Name": "suffix", "Value": wanted["filterSuffix"]},
        ]
        one = {"QueueArn": wanted["queueArn"], "Events": wanted["events"], "Filter": {"Key": {"FilterRules": rules}}}
        self.world.client("s3").put_bucket_notification_configuration(
            Bucket=self.bucket, NotificationConfiguration={"QueueConfigurations": [one]}
        )
        return router, reader

    def told(self, *more: dict[str, Any]) -> list[str]:
        """Hand the queue, and events of EventBridge, to the router; returns what people were told meanwhile."""
        self.route(*more)
        return [f"{one['Subject']}\n{one['Message']}" for one in map(json.loads, self._read(self.reader))]

    def route(self, *more: dict[str, Any]) -> None:
        """Hand the queue, and events of EventBridge, to the router."""
        bodies: list[Any] = [*more, *self._read(self.queue)]
        if bodies:
            with self._at_the_emulator():
                router = router_handler.build(common.services("alert-router", self._names()), *self._clients())
                assert router.handle(samples.sqs(*bodies)) == {"batchItemFailures": []}

    def _read(self, queue: str) -> Iterator[str]:
        sqs = self.world.client("sqs")
        while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
                yield message["Body"]

    def _clients(self) -> list[Any]:
        return [*(self.world.client(name) for name in ("ec2", "cloudwatch", "s3")), self.hooked]

    def _names(self) -> common.ServiceNames:
        environment = self.planned.one("functions-alert-router").props["environment"]["variables"]
        return common.ServiceNames.read({key: str(self.world.real(value)) for key, value in environment.items()})

    @contextmanager
    def _at_the_emulator(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.cloud.env, "AWS_DEFAULT_REGION": REGION}.items():
                patch.setenv(name, value)
            patch.setattr(batches.RetryPolicy, "wait", lambda self, attempt, at_least_s=0.0: None)
            patch.setattr(common, "client", self.world.client)
            yield
