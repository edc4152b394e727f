"""Instance metadata: paths, the identity document, notices; the reader against a service on loopback."""

import json
import time

import pytest

from flightline_node.ask import metadata
from flightline_node.ask.readers import READERS
from tests.harness import sample
from tests.imds import serving
from tests.unit.parsers.hosttools import parse, read


def test_paths():
    facts = read("imds", "imds/p5.json")
    assert facts["available"] is True
    assert (facts["instance_type"], facts["availability_zone"]) == ("p5.48xlarge", "us-east-1a")
    assert (facts["availability_zone_id"], facts["placement_group"], facts["partition"]) == (
        "use1-az4",
        "train-a",
        None,
    )
    assert (facts["maintenance_events"], facts["spot_action"], facts["rebalance"]) == ([], None, None)
    assert facts["image_id"] == "ami-0123456789abcdef0"


def test_notices():
    facts = read("imds", "imds/p5-leaving.json")
    assert facts["spot_action"] == {"action": "terminate", "time": "2026-11-21T12:02:00Z"}
    assert facts["rebalance"] == {"notice_time": "2026-11-21T11:50:00Z"}
    assert [(event["code"], event["state"]) for event in facts["maintenance_events"]] == [
        ("system-reboot", "active"),
        ("system-maintenance", "completed"),
    ]


def test_identity_document_alone():
    facts = read("imds", "imds/identity-document.json")
    assert (facts["available"], facts["instance_type"], facts["instance_id"]) == (
        True,
        "p5.48xlarge",
        "i-0123456789abcdef0",
    )
    assert "maintenance_events" not in facts


def test_long_prefixes_and_tokens():
    facts = parse("imds", '{"/latest/meta-data/instance-type": "g5.xlarge", "http_tokens": "optional"}')
    assert (facts["instance_type"], facts["tokens_required"]) == ("g5.xlarge", False)


def test_not_available():
    facts = parse("imds", '{"available": false, "reason": "not an EC2 instance"}')
    assert facts == {"available": False, "reason": "not an EC2 instance"}


@pytest.fixture
def service(monkeypatch):
    with serving(json.loads(sample("imds/p5.json"))) as made:
        monkeypatch.setenv(metadata.ENDPOINT_VARIABLE, made.url)
        yield made


def test_reader_against_a_service(service):
    assert parse("imds", READERS["imds"]("/")) == read("imds", "imds/p5.json")
    assert service.tokenless == 0


def test_reader_when_the_service_is_switched_off(service):
    service.token_status = 403
    facts = parse("imds", READERS["imds"]("/"))
    assert facts["available"] is False
    assert facts["reason"] == "no session token, HTTP status 403"
    assert facts["asked"].startswith("http://127.0.0.1:")


def test_reader_gives_up_after_its_time(service, monkeypatch):
    service.delay_s = 60
    monkeypatch.setattr(metadata, "TIMEOUT_S", 0.1)
    begun = time.monotonic()
    facts = parse("imds", READERS["imds"]("/"))
    assert facts["available"] is False
    assert "imed out" in facts["reason"]
    assert time.monotonic() - begun < 30


def test_reader_keeps_to_its_budget(service, monkeypatch):
    monkeypatch.setattr(metadata, "BUDGET_S", -1.0)
    facts = parse("imds", READERS["imds"]("/"))
    assert facts["available"] is True
    assert len(facts["errors"]) == len(metadata.PATHS)
    assert "instance_type" not in facts


def test_nothing_listens(monkeypatch):
    monkeypatch.setenv(metadata.ENDPOINT_VARIABLE, "http://127.0.0.1:1")
    assert parse("imds", READERS["imds"]("/"))["available"] is False


def test_simulated_node(tmp_path):
    assert parse("imds", READERS["imds"](str(tmp_path)))["available"] is False
    (tmp_path / "run/flightline").mkdir(parents=True)
    (tmp_path / "run/flightline/imds.json").write_bytes(sample("imds/p5.json"))
    assert parse("imds", READERS["imds"](str(tmp_path)))["instance_type"] == "p5.48xlarge"


@pytest.mark.parametrize(
    ("vendor", "version", "ours"),
    [("Amazon EC2", "", True), ("Xen", "4.11.amazon", True), ("QEMU", "1.0", False), ("", "", True)],
)
def test_other_machines_are_not_asked(tmp_path, vendor, version, ours):
    folder = tmp_path / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    (folder / "sys_vendor").write_text(vendor + "\n")
    (folder / "product_version").write_text(version + "\n")
    assert (metadata._other_machine(str(tmp_path)) is None) is ours
