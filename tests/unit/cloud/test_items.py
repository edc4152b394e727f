"""Items: every value survives, every item fits, and the same result is the same item."""

import ast
import math
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from flightline.cloud import items
from flightline.fleet.judgement import NO_SERIAL
from tests.unit.made import finding, record

HERE = Path(items.__file__).parent
RUN = {"run_id": "r1", "started_at": "2026-11-21T10:00:00+00:00", "level": "quick", "inventory": "inv"}
BAD = finding("row_remap", "FAIL", device={"index": 3, "serial": "S-3"}, measured=True, remedy="REPLACE")


def test_a_serial_that_says_nothing_is_the_same_in_every_store():
    assert items.NO_SERIAL == NO_SERIAL


TELL = HERE.parent / "tell"


@pytest.mark.parametrize(
    "path",
    [*(HERE / f"{name}.py" for name in ("items", "batches", "signals")), *TELL.rglob("*.py")],
    ids=lambda path: path.stem,
)
def test_files_that_lambda_functions_ship_need_nothing_else(path):
    """Beside the standard library only the node library's words, which are shipped as well."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if isinstance(node, ast.ImportFrom) and node.level == 1 + (path.parent.name == "channels"):
                continue  # of its own room
            module = node.names[0].name if isinstance(node, ast.Import) else str(node.module)
            assert module.split(".")[0] in {*sys.stdlib_module_names, "flightline_node", "boto3", "record"}, module


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        0,
        -7,
        10**37,
        1.5,
        -0.25,
        1e-9,
        True,
        False,
        None,
        b"\x00\xff",
        [],
        [1, "a", None],
        {"a": {"b": [1.5]}},
    ],
)
def test_values_come_back_as_they_were(value):
    back = items.unmarshal(items.marshal({"x": value}))["x"]
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize(
    ("value", "back"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (10**40 + 1, str(10**40 + 1)),
        (1e300, "1e+300"),
        (Decimal("1.50"), 1.5),
        (Decimal(7), 7),
        ((1, 2), [1, 2]),
        ("\ud800", "?"),
    ],
)
def test_what_dynamodb_cannot_hold_becomes_text_and_never_an_error(value, back):
    assert items.unmarshal(items.marshal({"x": value}))["x"] == back


def test_items_are_what_the_service_takes():
    """botocore's own model of the request: types and names, not the service's behaviour."""
    shape = Session().get_service_model("dynamodb").operation_model("BatchWriteItem").input_shape
    made = items.node_items(RUN, record("gpu-1", BAD, finding()), 90)
    requests = [{"PutRequest": {"Item": items.marshal(item)}} for item in [*made, items.run_item(RUN, 90)]]
    assert ParamValidator().validate({"RequestItems": {"t": requests}}, shape).has_errors() is False


def test_a_node_is_a_finding_per_wrong_check_and_one_record_last():
    made = items.node_items(RUN, record("gpu-1", BAD, BAD, finding("memory"), finding("load", "WARN")), 90)
    assert [(item["pk"], item["sk"]) for item in made] == [
        ("RUN#r1", "NODE#i-gpu-1#row_remap"),
        ("RUN#r1", "NODE#i-gpu-1#load"),
        ("RUN#r1", "RECORD#gpu-1"),
    ]
    assert made[0]["status_day"] == "FAIL#2026-11-21" and len(made[0]["findings"]) == 2
    assert made[-1]["wrong"] == {"row_remap": "FAIL", "load": "WARN"} and made[-1]["verdict"] == "no-go"
    assert items.unpack(made[-1]["body"]) == record("gpu-1", BAD, BAD, finding("memory"), finding("load", "WARN"))


def test_only_what_is_wrong_is_in_the_index_of_statuses():
    good, bad = items.record_item(RUN, record("a"), 90), items.record_item(RUN, record("b", BAD), 90)
    assert "status_day" not in good and bad["status_day"] == "FAIL#2026-11-21"
    assert good["at"] == "2026-11-21T10:00:00+00:00#r1"


def test_the_same_result_is_the_same_item_whenever_it_is_made():
    assert items.node_items(RUN, record("a", BAD), 90) == items.node_items(RUN, record("a", BAD), 90)


def test_expiry_counts_from_the_run():
    # 2026-11-21T10:00:00Z is 1795255200 seconds after 1970; 90 days are 7,776,000.
    assert items.record_item(RUN, record("a"), 90)["expires_at"] == 1795255200 + 7_776_000
    assert "expires_at" not in items.record_item(RUN, record("a"), 0), "0 days is for ever"


def test_names_cannot_break_a_key():
    made = items.node_items(RUN, record("a#b%c", BAD, instance_id=""), 90)
    assert made[0]["sk"] == "NODE#a%23b%25c#row_remap" and made[-1]["sk"] == "RECORD#a%23b%25c"
    assert "instance_id" not in made[-1], "an index key may not be empty"


def test_two_hosts_that_claim_one_instance_do_not_overwrite_each_other():
    run = {**RUN, "hosts": [{"host": "a", "instance_id": "i-1"}, {"host": "b", "instance_id": "i-1"}]}
    shared = items.shared_instances(run)
    keys = [items.finding_items(run, record(host, BAD, instance_id="i-1"), 90, shared)[0]["sk"] for host in "ab"]
    assert keys == ["NODE#i-1@a#row_remap", "NODE#i-1@b#row_remap"]


def test_gpus_are_named_by_serial_and_uuid_and_only_by_real_ones():
    gpus = [{"serial": "S-1", "uuid": "GPU-1"}, {"serial": "0", "uuid": None}, {"serial": "N/A"}]
    made = items.gpu_items(record("a", gpus=gpus))
    assert [(item["pk"], item["sk"]) for item in made] == [("GPU#GPU-1", "NODE#a#i-a"), ("GPU#S-1", "NODE#a#i-a")]
    assert not any(set(item) & {"host", "instance_id", "at", "expires_at"} for item in made), "in no index, for ever"


HUGE = "\N{GREEK SMALL LETTER ALPHA}" * 5_000


def test_an_oversized_finding_is_bounded_in_its_item_and_whole_in_the_record():
    huge = finding("xid", "FAIL", message=HUGE, measured={"text": HUGE}, evidence=[HUGE] * 3)
    made = items.node_items(RUN, record("a", *[huge] * 40), 90)
    assert items.size(made[0]) < items.MAX_ITEM_BYTES and made[0]["more"] == 40 - items.MAX_FINDINGS
    assert made[0]["message"].endswith("...")
    assert items.unpack(made[-1]["body"])["findings"][0]["message"] == HUGE


def test_characters_of_four_bytes_do_not_make_an_item_too_large():
    wide = "\N{MAHJONG TILE RED DRAGON}" * 5_000
    huge = finding("xid", "FAIL", message=wide, measured=wide, expected=wide, evidence=[wide] * 9)
    (made,) = items.finding_items(RUN, record("a", *[huge] * 40), 90)
    assert items.size(made) < items.MAX_ITEM_BYTES
    assert 0 < len(made["findings"]) < items.MAX_FINDINGS and made["more"] + len(made["findings"]) == 40


def test_a_record_without_a_place_is_shortened_and_stays_as_bad_as_it_was():
    noise = [
        finding(f"c{number}", "PASS", message=str(hash((number, part)))) for number in range(200) for part in range(9)
    ]
    made = items.shortened(record("a", *noise, BAD, filler="x"))
    assert len(items.pack(made)) <= items.MAX_BODY_BYTES
    assert (
        made["findings"][0]["check"] == "row_remap"
        and made["verdict"] == "no-go"
        and items.worst(made["findings"]) == "FAIL"
    )
    assert "left out" in made["shortened"]


def test_size_counts_as_dynamodb_documents_it():
    # Developer guide, "Item sizes": names and strings in UTF-8, null and boolean 1 byte.
    assert items.size({"pk": "é", "n": None}) == (2 + 2) + (1 + 1)


def test_a_status_of_a_later_version_is_unknown():
    assert items.worst([{"status": "EXCELLENT"}]) == "UNKNOWN" and items.worst([]) == "SKIP"


def test_garbage_is_no_record():
    with pytest.raises(ValueError, match="not a packed record"):
        items.unpack(b"garbage")
