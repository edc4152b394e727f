"""The gate: what a node's answer has to be, and what becomes of one that is not."""

import copy
import json
from datetime import datetime, timezone

import pytest

from flightline.demo import prepare
from flightline.record import intake, shape
from flightline.record import schema as record
from flightline_node import bounds, node, settings
from flightline_node.ask.probes import plan
from flightline_node.ask.runner import Node
from flightline_node.judge.must import Wanted
from flightline_node.judge.waivers import parse
from flightline_node.know.expected import resolve
from flightline_node.read import strictjson
from flightline_node.tell.shorten import shorten
from tools import schemas

ASKED = intake.Asked(host="n", instance_type="p5.48xlarge", level="quick", call_id="c1")
CHECKS = frozenset({"memory", "xid"})


def finding(check, status="PASS", **rest):
    return {"check": check, "status": status, "message": f"{check} seen", **rest}


def good(**rest):
    made = {
        "schema": "flightline-node/1", "flightline": "0.1.0", "call_id": "c1", "host": "n", "instance_id": "",
        "instance_type": "p5.48xlarge", "level": "quick", "verdict": "go", "started_at": "2026-11-22T10:00:00+00:00",
        "seconds": 1.0, "findings": [finding("memory"), finding("xid")],
        "measures": {"load1": {"unit": "", "values": {"": 1.5}}}, "versions": {"driver": "580"},
        "gpus": [{"index": 0, "uuid": "GPU-1", "serial": None}], "probes": [{"id": "df", "rc": 0}],
    }  # fmt: skip
    return {**made, **rest}


def asked(**rest):
    return intake.Asked(**{**vars(ASKED), "checks": CHECKS, **rest})


def test_a_complete_record_passes_and_carries_the_stamp():
    admitted = intake.admit(good(), asked())
    assert admitted["verdict"] == "go" and admitted[intake.STAMP] == intake.STAMPED
    assert intake.stored(admitted, "n") is admitted


WAIVER = {"check": "memory", "scope": "n*", "reason": "small on purpose", "owner": "ops", "expiry": "2099-01-01"}


def waived(*waivers):
    return asked(waivers=tuple(parse(waivers, ("memory", "xid", "uniform_driver"))), table={"memory": Wanted({})})


def said_of(record):
    return {one["check"]: (one["status"], one.get("reason", "")) for one in record["findings"]}


def test_the_control_side_sets_a_finding_aside_and_says_what_it_was():
    failed = good(findings=[finding("memory", "FAIL"), finding("xid")])
    assert intake.admit(failed, waived())["verdict"] == "no-go"
    admitted = intake.admit(failed, waived(WAIVER))
    assert admitted["verdict"] == "go" and said_of(admitted)["memory"] == ("SKIP", "waived")
    assert "small on purpose (was FAIL: memory seen)" in admitted["findings"][0]["message"]
    assert admitted["findings"][0]["waiver"] == WAIVER


@pytest.mark.parametrize("reason", ["waived", "", "made_up"])
def test_a_node_sets_nothing_aside_itself(reason):
    own = finding("memory", "SKIP", reason=reason, message="by ops: all is well", waiver=WAIVER)
    admitted = intake.admit(good(findings=[own, finding("xid")]), waived())
    assert admitted["verdict"] == "no-go" and said_of(admitted)["memory"] == ("UNKNOWN", "not_taken")
    assert "all is well" in admitted["findings"][0]["message"] and "waiver" not in admitted["findings"][0]


def test_the_fleet_s_waivers_are_those_of_the_inventory():
    uniform = {**WAIVER, "check": "uniform_driver"}
    assert "fleet_waivers" not in intake.admit(good(fleet_waivers=[uniform]), waived(WAIVER))
    assert intake.admit(good(), waived(uniform))["fleet_waivers"] == [uniform]


def test_an_answer_of_another_time_says_so_and_takes_the_time_it_came():
    begun = datetime(2026, 11, 22, 12, tzinfo=timezone.utc).timestamp()
    old = intake.admit(good(), asked(begun=begun))
    assert old["verdict"] == "no-go" and said_of(old)["node_clock"] == ("UNKNOWN", "other_time")
    assert old["started_at"] > "2026-11-22T12" and old["findings"][0]["measured"] == good()["started_at"]
    within = datetime(2026, 11, 22, 10, 4, tzinfo=timezone.utc).timestamp()
    assert intake.admit(good(), asked(begun=within))["verdict"] == "go", "four minutes are skew"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"findings": 5}, "findings: saw 5, wanted a list"),
        ({"findings": None}, "findings: saw null"),
        ({"findings": [finding("memory")]}, "saw none of xid"),
        ({"findings": [finding("memory"), finding("xid"), finding("zebra")]}, "saw one of zebra"),
        ({"findings": [finding(["x"]), finding("xid")]}, "findings[0].check: saw a list"),
        ({"findings": [{"status": "PASS", "message": ""}]}, "findings[0]: saw no check"),
        ({"findings": [finding("memory"), finding("memory"), finding("xid")]}, "the same finding of memory 2 times"),
        ({"findings": [finding("memory", "SPLENDID"), finding("xid")]}, "wanted one of PASS"),
        ({"findings": [finding("memory", "UNREACHABLE"), finding("xid")]}, "only the control side"),
        ({"findings": [finding("memory", message="x" * 5_000_000), finding("xid")]}, "(5000000 characters)"),
        ({"seconds": "abc"}, "seconds: saw 'abc', wanted a number"),
        ({"seconds": 10**400}, "seconds: saw 1000"),
        ({"seconds": 10**5000}, "a huge number"),
        ({"seconds": float("nan")}, "saw nan"),
        ({"measures": {"ecc_uncorrected_aggregate": 5}}, "measures.'ecc_uncorrected_aggregate': saw 5"),
        ({"versions": ["x"]}, "versions: saw a list"),
        ({"host": "other"}, "host: saw 'other', wanted 'n', as asked"),
        ({"level": "deep"}, "level: saw 'deep', wanted 'quick'"),
        ({"call_id": "c0"}, "call_id: saw 'c0'"),
        ({"instance_type": "p4d.24xlarge"}, "wanted 'p5.48xlarge'"),
        ({"schema": "flightline-node/9"}, "schema"),
        ({"extra": 1}, "saw the key 'extra'"),
    ],
)
def test_what_is_no_record_is_refused_with_where_what_and_how_it_begins(change, words):
    with pytest.raises(intake.AnswerRefusedError) as caught:
        intake.admit(good(**change), asked())
    assert words in str(caught.value) and "it began: " in str(caught.value)
    assert len(str(caught.value)) < 1000 and str(caught.value).isprintable()


@pytest.mark.parametrize("part", ["device", "remedy", "unit", "evidence"])
def test_a_part_of_a_finding_of_the_wrong_type_is_refused(part):
    with pytest.raises(intake.AnswerRefusedError, match=part):
        intake.admit(good(findings=[finding("memory", **{part: 5}), finding("xid")]), asked())


@pytest.mark.parametrize(
    "answer", [None, 5, "go", [], [[]] * 3, {}, {"verdict": "go", "findings": [finding("memory")]}]
)
def test_what_is_no_object_is_refused(answer):
    with pytest.raises(intake.AnswerRefusedError):
        intake.admit(answer, asked())


def test_the_node_s_own_verdict_decides_nothing():
    bad = good(findings=[finding("memory", "FAIL"), finding("xid")], verdict="go")
    assert intake.admit(bad, asked())["verdict"] == "no-go"
    assert intake.admit(good(verdict="no-go"), asked())["verdict"] == "go"


def test_admitted_text_is_printable():
    escapes = good(findings=[finding("memory", message="\x1b[2J\x9b31m a\nb \u202e"), finding("xid")])
    said = intake.admit(escapes, asked())["findings"][0]["message"]
    assert said.isprintable() and "a b" in said


def test_a_key_given_twice_is_refused():
    with pytest.raises(ValueError, match="'status' is given twice"):
        strictjson.loads('{"check": "xid", "status": "FAIL", "status": "PASS"}')
    for text in ('{"a": NaN}', "[" * 100_000, "{", '{"a": 1e5000'):
        with pytest.raises(ValueError):
            strictjson.loads(text)


@pytest.mark.parametrize("found", [None, 5, [], {}, {"host": "a", "findings": 5}, {"host": "b", "findings": []}])
def test_a_stored_record_that_cannot_be_used_is_its_host_s_unknown_row(found):
    row = intake.stored(found, "a")
    assert row["host"] == "a" and row["verdict"] == "no-go" and row["findings"][0]["status"] == "UNKNOWN"
    assert "stored record cannot be used" in row["findings"][0]["message"]


def test_a_stored_record_of_an_older_version_passes_by_its_own_list_of_checks():
    old = {"host": "a", "verdict": "go", "findings": [finding("a_check_of_old")], "measures": {}}
    assert intake.stored(old, "a")["verdict"] == "go"


def test_the_published_schema_is_what_the_gate_takes():
    assert {path: path.read_text() for path in schemas.texts()} == schemas.texts(), "run python -m tools.schemas"


def test_the_schema_and_the_gate_agree_on_a_node_s_real_record(tmp_path):
    import jsonschema

    for faults in ([], ["gpu_fallen_off_bus"], ["remap_pending"]):
        demo = tmp_path / f"n{len(faults)}{faults}"
        prepare({demo.name: {"demo_dir": str(demo), "instance_type": "p5.48xlarge", "demo_faults": faults}})
        found = node.run(
            Node(f"{demo}/root", (f"{demo}/tools",)), resolve("p5.48xlarge"), settings.build(), node.Identity("n")
        )
        jsonschema.Draft202012Validator(record.published()).validate(found)
        intake.shaped(copy.deepcopy(found))


def test_a_level_s_deadline_is_above_that_of_all_its_probes():
    for level, deadline_s in bounds.DEADLINE_S.items():
        probes = plan(level)
        together = sum(probe.deadline_s for probe in probes if probe.exclusive)
        assert deadline_s > together + max(probe.deadline_s for probe in probes if not probe.exclusive) + 60


def test_a_record_beyond_the_bounds_is_cut_by_the_node_and_keeps_its_verdict():
    many = [finding("memory", device={"index": n}, message=f"{n}" * 3000) for n in range(600)]
    many += [finding("xid", "FAIL", evidence=["e" * 999] * 30, measured=[1.5] * 999, expected=float("inf"))]
    made = good(findings=many, measures={"m": {"unit": "", "values": {"a": 10**400, "b": 1}}}, call_id="c1")
    cut = intake.admit(shorten(made), asked())
    assert cut["verdict"] == "no-go" and len(cut["findings"]) == bounds.MAX_FINDINGS
    assert cut["measures"]["m"]["values"] == {"b": 1}
    assert "more findings than a record takes" in cut["findings"][-1]["message"]
    assert "(" in cut["findings"][0]["message"] and len(json.dumps(cut)) < bounds.MAX_RECORD_BYTES


def test_what_is_seen_is_said_in_a_few_escaped_words():
    assert shape.seen("\x1b[2J") == "'\\x1b[2J'"
    assert shape.seen({}) == "an object of 0" and shape.seen(True) == "true"
