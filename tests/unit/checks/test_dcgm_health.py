"""dcgm_health: what DCGM's watches saw, in JSON and as a table; nothing watched is no evidence."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import dcgm_health
from tests.harness import only

from .table import FAIL, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table

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
    return judging("dcgm_health", {"dcgm_health": facts, **more}, instance_type)


test_dcgm_health = table(
    row("healthy", judge(document()), PASS, measured="Healthy"),
    row("each GPU and system has its finding",
        judge(document("Failure",
        g3=("Failure", "Memory system", "Detected 2 volatile double-bit|ECC error(s) in GPU 3."),
        g5=("Warning", "PCIe system", "replays")),
        nvidia_smi={"gpus": [{"index": 3, "uuid": "GPU-3", "serial": "77"}]}), FAIL, of={"serial": "77"},
        remedy=REPLACE, starts="GPU 3: DCGM watches Memory system: ",
        says="Detected 2 volatile double-bit ECC error(s) in GPU 3.").also(WARN, device={"index": 5}),
    row("the table", judge("\n".join(["+---------------------------+----------+",
        "| Health Monitor Report                 |", "+===========================+==========+",
        "| Overall Health            | Warning  |", "| GPU                       |          |",
        "| -> 0                      | Warning  |", "|    -> Errors              |          |",
        "|       -> PCIe system      | Warning  |",
        "|                           | Detected more than 8 PCIe replays |",
        "|                           | per minute for GPU 0 : 13         |",
        "+---------------------------+----------+"]).encode()), WARN, device={"index": 0},
        says="PCIe system: Detected more than 8 PCIe replays per minute for GPU 0 : 13"),
    *(row("an overall state that nothing explains is unknown", judge(document(overall)), UNKNOWN)
        for overall in ["Warning", "Failure", "Internal error", "Fine"]),
    row("a state that is not known is no pass", judge(document("Failure", g0=("Odd", "SM system", "x"))), UNKNOWN,
        message="GPU 0: DCGM watches SM system: x (health: Odd)"),
    row("unreadable and missing", judging("dcgm_health", {}, "trn1.32xlarge"), SKIP),
)  # fmt: skip


@pytest.mark.parametrize(
    "text", [OFF, "dcgmi: not installed\n", "Error: unable to establish a connection to the host\n"]
)
def test_nothing_watched_is_skipped_with_the_reason(text):
    assert only(judge(text.encode()), SKIP).message


@pytest.mark.parametrize("data", [b"", b"hello\n", b'{"body": 5}', b'{"body": {"GPU": {}}}', b"[]"])
def test_what_is_no_report_is_refused(data):
    with pytest.raises(ParseError):
        dcgm_health.parse({"dcgm-health.json": data})
