"""Emulated AWS: moto's server on a free loopback port, with a place to count, refuse or cut requests.

Nothing in it is the real service: it proves requests, order and content, not IAM, throughput or delivery.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import boto3
from botocore.exceptions import ClientError
from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import amis
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.sns.models import Subscription
from werkzeug.serving import WSGIRequestHandler, make_server

from flightline.cloud import items
from flightline.cloud.clients import config

if TYPE_CHECKING:
    import pytest

# After every reset moto makes hundreds of images anew, and an RSA key for each subscription. One of each does: the image
# is the one that Pulumi.local.yaml names.
amis.AMIS[:] = [image for image in amis.AMIS if image["ami_id"] == "ami-dca37ea5"]
amis.load_resource = lambda _: []  # type: ignore[attr-defined, assignment]  # moto has no setting for it
_one_key = cache(Subscription.private_key.__wrapped__)
Subscription.private_key = lambda _: _one_key(None)  # type: ignore[method-assign, assignment]

REGION = "eu-west-1"
ACCOUNT = "123456789012"
Hook = Callable[[str], "tuple[int, str] | None"]


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """No line per request."""


@contextlib.contextmanager
def launching(group: str, region: str = REGION, state: str = "Pending:Wait") -> Iterator[None]:
    """What an Auto Scaling group launches inside waits at its hook; moto has every instance in service at once.

    Nothing in its API sets that, and it launches another for each instance that is not in service.
    """
    found = autoscaling_backends[ACCOUNT][region].autoscaling_groups[group]
    before = {one.instance.id: one.lifecycle_state for one in found.instance_states}
    for one in found.instance_states:
        one.lifecycle_state = "InService"
    yield
    for one in found.instance_states:
        one.lifecycle_state = before.get(one.instance.id, state)


class Hooked:
    """An Auto Scaling client whose hooks act: moto keeps them and completes nothing. completed: what was asked."""

    def __init__(self, client: Any, region: str = REGION) -> None:
        self._client, self._region, self.completed = client, region, list[dict[str, str]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def complete_lifecycle_action(self, **asked: str) -> None:
        """Source: EC2 Auto Scaling user guide, "How lifecycle hooks work": there has to be one that waits."""
        group = autoscaling_backends[ACCOUNT][self._region].autoscaling_groups[asked["AutoScalingGroupName"]]
        waits = [one for one in group.instance_states if one.instance.id == asked["InstanceId"]]
        if not waits or not waits[0].lifecycle_state.endswith(":Wait"):
            said = {"Code": "ValidationError", "Message": "No active Lifecycle Action found"}
            raise ClientError({"Error": said}, "CompleteLifecycleAction")
        begins = waits[0].lifecycle_state.startswith("Pending") and asked["LifecycleActionResult"] == "CONTINUE"
        waits[0].lifecycle_state = "InService" if begins else "Terminating:Proceed"
        self.completed.append(asked)


@dataclass
class Cloud:
    """A server. before: is asked with each request's action ("PutItem", "PUT /bucket", "DescribeInstances"); an
    answer is an error code.

    instead: what answers an action of a JSON service in moto's place; it takes the request and returns the response.
    """

    port: int = 0
    before: Hook | None = None
    after: Callable[[str], None] | None = None
    instead: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    _clients: dict[str, Any] = field(default_factory=dict)
    _one_write: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", self.port, self._answer, threaded=True, request_handler=_Quiet)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to talk to it, and to nothing else."""
        secrets = dict.fromkeys(("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"), "made-up")
        files = dict.fromkeys(("CONFIG_FILE", "SHARED_CREDENTIALS_FILE"), "/nonexistent")
        own = {"ENDPOINT_URL": self.url, "DEFAULT_REGION": REGION, "EC2_METADATA_DISABLED": "true"}
        return {f"AWS_{name}": value for name, value in {**own, **secrets, **files}.items()}

    def client(self, service: str) -> Any:
        """One client per service: making one takes longer than most tests."""
        if service not in self._clients:
            keys = {"aws_access_key_id": "made-up", "aws_secret_access_key": "made-up"}
            made = boto3.client(service, region_name=REGION, endpoint_url=self.url, config=config(), **keys)
            self._clients[service] = made
        return self._clients[service]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def reset(self) -> None:
        """Forget everything; hooks as well."""
        self.before = self.after = None
        self.instead.clear()
        self.client("sts")  # loads botocore's models once, outside of what is timed
        import urllib.request

        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST"), timeout=30)
        self.seen.clear()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        action = _action(environ)
        self.seen[action] += 1
        refused = self.before(action) if self.before else None
        if refused:
            status, code = refused
            return _plain(start_response, f"{status} refused", *_error(environ, code))
        if action in self.instead:
            given = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            text = json.dumps(self.instead[action](given)).encode()
            return _plain(start_response, "200 OK", "application/x-amz-json-1.1", text)
        # DynamoDB's writes are atomic; moto looks at the condition first and writes then.
        with self._one_write if "DynamoDB" in environ.get("HTTP_X_AMZ_TARGET", "") else contextlib.nullcontext():
            answer = list(self._app(environ, start_response))
        if self.after:
            self.after(action)
        return answer

    # What a stack would make.

    def table(self, name: str = items.DEFAULT_TABLE) -> str:
        self.client("dynamodb").create_table(**items.table_definition(name))
        return name

    def bucket(self, name: str = "flightline-bundles") -> str:
        self.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return name

    def topic(self, name: str = "flightline") -> tuple[str, str]:
        """A topic's ARN, and the URL of a queue that has everything it is told."""
        arn = self.client("sns").create_topic(Name=name)["TopicArn"]
        sqs = self.client("sqs")
        queue = sqs.create_queue(QueueName=f"{name}-reader")["QueueUrl"]
        queue_arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.client("sns").subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue_arn)
        return arn, queue

    # What is there.

    def items(self, table: str = items.DEFAULT_TABLE) -> dict[tuple[str, str], dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for page in self.client("dynamodb").get_paginator("scan").paginate(TableName=table):
            for raw in page["Items"]:
                item = items.unmarshal(raw)
                found[(item["pk"], item["sk"])] = item
        return found

    def objects(self, bucket: str = "flightline-bundles") -> dict[str, bytes]:
        client = self.client("s3")
        keys = [item["Key"] for item in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
        return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}

    def told(self, queue: str) -> list[dict[str, Any]]:
        """Messages that the topic delivered, in the order of arrival; each is read once."""
        client, found = self.client("sqs"), []
        for message in self.received(queue):
            found.append(json.loads(message["Body"]))
            client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        return found

    def told_texts(self, queue: str) -> list[str]:
        """The same as text: subject and message."""
        return [f"{message['Subject']}\n{message['Message']}" for message in self.told(queue)]

    def received(self, queue: str) -> Iterator[dict[str, Any]]:
        """What a queue shows now."""
        asked = {"QueueUrl": queue, "MaxNumberOfMessages": 10}
        while messages := self.client("sqs").receive_message(**asked).get("Messages"):
            yield from messages

    def invalid(self, bucket: str, function: str = "") -> list[dict[str, Any]]:
        """Events that functions, or one of them, could not use."""
        found, start = self.objects(bucket), f"bad-events/{function}{'/' if function else ''}"
        return [json.loads(body) for key, body in found.items() if key.startswith(start)]


def lead_to(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Empty the server and lead this process's environment to it and nowhere else. Retries wait in life, not here."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "FLIGHTLINE")):
            monkeypatch.delenv(name)
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("flightline.cloud.batches.RetryPolicy.wait", lambda *_: None)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    cloud.reset()
    return cloud


def _plain(start_response: Any, status: str, kind: str, body: bytes) -> list[bytes]:
    start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def _action(environ: dict[str, Any]) -> str:
    if _is_ec2(environ):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        return parse_qs(body.decode())["Action"][0]
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    return target.rpartition(".")[2] if target else f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"


def _is_ec2(environ: dict[str, Any]) -> bool:
    return "/ec2/aws4_request" in environ.get("HTTP_AUTHORIZATION", "")


def _error(environ: dict[str, Any], code: str) -> tuple[str, bytes]:
    if _is_ec2(environ):
        error = f"<Error><Code>{code}</Code><Message>refused by the test</Message></Error>"
        return "text/xml", f"<Response><Errors>{error}</Errors></Response>".encode()
    if environ.get("HTTP_X_AMZ_TARGET"):
        return "application/x-amz-json-1.0", json.dumps({"__type": code, "message": "refused by the test"}).encode()
    text = f"<Error><Code>{code}</Code><Message>refused by the test</Message></Error>"
    return "text/xml", (f"<ErrorResponse>{text}</ErrorResponse>" if environ["PATH_INFO"] == "/" else text).encode()
