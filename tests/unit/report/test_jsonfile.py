"""report.json: valid against its schema, complete, and one node a line."""

import io
import json

import jsonschema
import pytest

from flightline.fleet.result import NodeRow
from flightline.report import jsonfile
from flightline.store import jsontext
from flightline_node.model import Status, Verdict
from tests.unit.report.factory import finding, fleet, hostile


def loaded(report, records):
    stream = io.StringIO()
    jsonfile.write(report, records, stream)

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(stream.getvalue(), parse_constant=refuse)


def test_the_schema_is_a_valid_schema_and_every_member_is_described():
    schema = jsonfile.schema()
    jsonschema.Draft202012Validator.check_schema(schema)

    def undescribed(part, path):
        for name, member in part.get("properties", {}).items():
            if "$ref" not in member and not (member.get("title") and member.get("description")):
                yield f"{path}.{name}"
            yield from undescribed(member, f"{path}.{name}")
            yield from undescribed(member.get("items", {}), f"{path}.{name}[]")

    parts = {"": schema, **schema["$defs"]}
    assert [name for key, part in parts.items() for name in undescribed(part, key)] == []


@pytest.mark.parametrize("make", [lambda: fleet(8, 2), lambda: fleet(60, 20), lambda: fleet(0, 0), hostile])
def test_reports_are_valid_against_the_schema(make):
    report, records = make()
    document = loaded(report, records())
    jsonschema.Draft202012Validator(jsonfile.schema()).validate(document)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.update(schema="flightline-report/2"),
        lambda document: document["nodes"][0].update(status="FINE"),
        lambda document: document["nodes"][0].pop("cells"),
        lambda document: document["counts"].update(go=-1),
        lambda document: document["groups"][0]["where"][0].pop("host"),
        lambda document: document.update(verdict="maybe"),
    ],
)
def test_the_schema_refuses_what_is_wrong(spoil):
    report, records = fleet(8, 2)
    document = loaded(report, records())
    spoil(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(jsonfile.schema()).validate(document)


def test_every_host_is_there_once_with_all_its_findings():
    report, records = fleet(40, 12)
    document = loaded(report, records())
    assert sorted(node["host"] for node in document["nodes"]) == sorted(row.host for row in report.rows)
    for node in document["nodes"]:
        rows = [row for row in report.rows if row.host == node["host"]]
        assert node["verdict"] == rows[0].verdict
        assert node["recorded"] == (rows[0].status is not Status.UNREACHABLE)
        assert {item["check"] for item in node["findings"]} == set(node["cells"])
        order = [document["checks"].index(item["check"]) for item in node["findings"]]
        assert order == sorted(order)
    assert document["counts"] == report.counts
    assert document["verdict"] == report.verdict


def test_the_run_has_the_last_word_over_the_record():
    report, records = fleet(1, 0, checks=3)
    waived = finding(check="gpu_model", status="UNKNOWN", message="lost while it ran")
    host = report.rows[0].host
    report.rows[0] = NodeRow(
        host, Verdict.NO_GO, Status.UNKNOWN, cells={"gpu_model": Status.UNKNOWN}, findings=[waived]
    )
    (node,) = loaded(report, records())["nodes"]
    assert (node["verdict"], node["status"]) == ("no-go", "UNKNOWN")
    assert waived in node["findings"]
    assert node["measures"], "what the node measured stays"


def test_the_record_of_an_unreachable_host_needs_no_measures():
    report, _ = fleet(1, 0, checks=2)
    (node,) = loaded(report, [{"schema": "flightline-node/1", "host": report.rows[0].host, "findings": []}])["nodes"]
    assert node["measures"] == {}
    assert node["recorded"]


def test_records_that_come_twice_or_of_no_inventory_host_add_no_node():
    report, records = fleet(3, 0)
    twice = [*records(), *records(), {"host": "stranger", "findings": []}]
    assert len(loaded(report, twice)["nodes"]) == 3


def test_one_node_a_line():
    report, records = fleet(5, 1)
    stream = io.StringIO()
    jsonfile.write(report, records(), stream)
    lines = stream.getvalue().splitlines()
    start = lines.index('"nodes": [') + 1
    nodes = [json.loads(line.rstrip(",")) for line in lines[start : start + 5]]
    assert len({node["host"] for node in nodes}) == 5


def test_numbers_that_json_lacks_become_text():
    assert json.loads(jsontext.encode({"a": [float("nan"), float("inf"), 1.5]})) == {"a": ["nan", "inf", 1.5]}


def test_records_with_odd_values_survive_decoding_and_encoding():
    assert jsontext.decode(b'{"a": NaN, "b": -Infinity, "c": 1}') == {"a": "NaN", "b": "-Infinity", "c": 1}
    huge = {"n": 1 << 80, "lone": "\ud800", "t": "\x1b"}
    assert json.loads(jsontext.encode_decoded(huge)) == huge
    with pytest.raises(ValueError):
        jsontext.decode(b"{")
