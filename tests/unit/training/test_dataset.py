"""The data set of a requested run against its manifest: the AWS command line on emulated S3 (moto)."""

import json

import boto3
import pytest

from flightline.cloud.functions.training_input.data import Data
from flightline.cloud.functions.training_input.request import read
from flightline_node.train.obstacles import data_changed

from .test_launcher import Site

pytestmark = pytest.mark.usefixtures("aws_command")
NODE = "i-0123456789abcdef0"


@pytest.fixture
def s3(monkeypatch):
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    for bucket in ("data", "results"):
        client.create_bucket(Bucket=bucket)
    for name in ("c4/a.parquet", "c4/b.parquet", "c4/readme.txt"):
        client.put_object(Bucket="data", Key=name, Body=name.encode())
    yield client
    server.stop()


def asked(s3, mode="list"):
    """The manifest that the function writes for a request."""
    nodes, data = {"instance_ids": [NODE]}, {"prefix": "c4/", "suffixes": [".parquet"], "mode": mode}
    request = read(
        {"request_id": "req-00001", "job": "demo", "dataset": "c4", "model": "m", "data": data, "nodes": nodes}
    )
    made = Data(s3, "data", "results", lambda: 600_000)
    return made.prepare(request, made.find(request))


def test_what_the_function_wrote_down_is_trained_on_until_it_changes(s3):
    assert data_changed(asked(s3, "stage")) == ""
    address = asked(s3)
    s3.put_object(Bucket="data", Key="c4/readme.txt", Body=b"not of the data set")
    assert data_changed(address) == ""
    key = next(row["key"] for row in json.load(s3.get_object(Bucket="results", Key=address[13:])["Body"])["objects"])
    s3.put_object(Bucket="data", Key=key, Body=b"longer than it was before")
    said = data_changed(address)
    assert f"1 of 2 objects in data are not what {address} says, first {key}: saw size 25" in said
    s3.delete_object(Bucket="data", Key=key)
    assert "saw nothing, wanted size 12" in data_changed(address)
    s3.put_object(Bucket="data", Key=key, Body=key[:-1].encode() + b"X")
    assert f"first {key}: saw size 12, ETag" in data_changed(address), "the same size, and other bytes"
    s3.put_object(Bucket="results", Key="m.json", Body=b'{"bucket": "nobody", "objects": []}')
    for name in ("none", "m"):
        assert f"saw no data set as s3://results/{name}.json says" in data_changed(f"s3://results/{name}.json")


@pytest.fixture
def aws(tmp_path, monkeypatch):
    """Writes the `aws` that is found: a shell script with this body."""

    def found(body):
        (tmp_path / "aws").write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "aws").chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return found


@pytest.mark.parametrize("body", ["", "{}", "[]", '{"bucket": "data", "objects": [1]}'])
def test_a_manifest_that_is_none_is_refused(aws, body):
    aws(f"echo '{body}'")
    assert "saw no data set" in data_changed("s3://results/m.json")


def test_no_way_to_ask_is_refused_and_starts_nothing(tmp_path, aws):
    aws("echo 'An error occurred (AccessDenied): no' >&2\nexit 254")
    site = Site(tmp_path, "exit 0")
    (tmp_path / "asked" / "demo.manifest").write_text("s3://results/training/demo/req-00001.json\n")
    status, said = site.run()
    assert (status, site.count("starts")) == (77, 0) and "AccessDenied" in said
    (tmp_path / "aws").unlink()
    assert "No such file" in data_changed("s3://results/m.json")
