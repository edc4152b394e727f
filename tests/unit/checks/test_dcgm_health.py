"""dcgm_health: what DCGM's watches saw, in JSON and as a table; nothing watched is no evidence."""

import json

import pytest

from flightline_node.model import ParseError, Remedy, Status
from flightline_node.read.parsers import dcgm_health
from tests.harness import judge_facts, only, status

OFF = "Error: Health watches not enabled. Please enable watches. \n"


def document(overall="Healthy", **gpus):
    """By hand after NVIDIA/DCGM 4.6, dcgmi/Health.cpp: a group, an entity, its systems and their messages."""
    entities = {
        number.lstrip("g"): {
            "value": health,
            "children": {"Errors": {"children": {system: {"value": health, "overflow": text.split("|")}}}},
        }
        for number, (health, system, text) in gpus.items()
    }
    body = {"Overall Health": {"value": overall}, **({"GPU": {"children": entities}} if entities else {})}
    return json.dumps({"body": body, "header": ["Health Monitor Report"]}, indent="\t").encode()


def judge(data, instance_type="p5.48xlarge", **more):
    facts = dcgm_health.parse({"dcgm-health.json": data})
    return judge_facts("dcgm_health", {"dcgm_health": facts, **more}, instance_type)


def test_healthy():
    assert only(judge(document()), Status.PASS).measured == "Healthy"


def test_each_gpu_and_system_has_its_finding():
    smi = {"gpus": [{"index": 3, "uuid": "GPU-3", "serial": "77"}]}
    text = "Detected 2 volatile double-bit|ECC error(s) in GPU 3."
    found = judge(document("Failure", g3=("Failure", "Memory system", text), g5=("Warning", "PCIe system", "replays")),
                  nvidia_smi=smi)  # fmt: skip
    bad = only(found, Status.FAIL)
    assert (bad.device["serial"], bad.remedy) == ("77", Remedy.REPLACE)
    assert bad.message.startswith("GPU 3: DCGM watches Memory system: ")
    assert "Detected 2 volatile double-bit ECC error(s) in GPU 3." in bad.message
    assert only(found, Status.WARN).device == {"index": 5}


def test_the_table():
    rows = [
        "+---------------------------+----------+",
        "| Health Monitor Report                 |",
        "+===========================+==========+",
        "| Overall Health            | Warning  |",
        "| GPU                       |          |",
        "| -> 0                      | Warning  |",
        "|    -> Errors              |          |",
        "|       -> PCIe system      | Warning  |",
        "|                           | Detected more than 8 PCIe replays |",
        "|                           | per minute for GPU 0 : 13         |",
        "+---------------------------+----------+",
    ]
    finding = only(judge("\n".join(rows).encode()), Status.WARN)
    assert finding.device == {"index": 0}
    assert "PCIe system: Detected more than 8 PCIe replays per minute for GPU 0 : 13" in finding.message


@pytest.mark.parametrize(
    "text", [OFF, "dcgmi: not installed\n", "Error: unable to establish a connection to the host\n"]
)
def test_nothing_watched_is_skipped_with_the_reason(text):
    assert only(judge(text.encode()), Status.SKIP).message


@pytest.mark.parametrize("overall", ["Warning", "Failure", "Internal error", "Fine"])
def test_an_overall_state_that_nothing_explains_is_unknown(overall):
    assert status(judge(document(overall))) is Status.UNKNOWN


def test_a_state_that_is_not_known_is_no_pass():
    found = only(judge(document("Failure", g0=("Odd", "SM system", "x"))), Status.UNKNOWN)
    assert found.message == "GPU 0: DCGM watches SM system: x (health: Odd)"


@pytest.mark.parametrize("data", [b"", b"hello\n", b'{"body": 5}', b'{"body": {"GPU": {}}}', b"[]"])
def test_what_is_no_report_is_refused(data):
    with pytest.raises(ParseError):
        dcgm_health.parse({"dcgm-health.json": data})


def test_unreadable_and_missing():
    assert status(judge_facts("dcgm_health", {}, "trn1.32xlarge")) is Status.SKIP
