"""neuron_processes: reported beside a job, a failure where the devices must be free."""

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import PARSERS
from tests.harness import judge_facts, only, status

from .neurons import TRN1, busy, node


def test_idle():
    assert status(judge_facts("neuron_processes", node(), TRN1)) is Status.PASS


def test_a_job():
    facts = node(neuron_ls=PARSERS["neuron_ls"].parse({"neuron-ls.json": busy()}))
    assert status(judge_facts("neuron_processes", facts, TRN1, level="quick")) is Status.INFO
    findings = judge_facts("neuron_processes", facts, TRN1, level="standard")
    assert {(finding.status, finding.remedy) for finding in findings} == {(Status.FAIL, Remedy.RESTART_APP)}
    assert "pid 4711 python3 pretrain.py" in findings[0].message


def test_tools_that_look_do_not_count():
    facts = node()
    facts["neuron_ls"]["devices"][0]["processes"] = [{"pid": 1, "command": "/opt/aws/neuron/bin/neuron-monitor -c x"}]
    assert status(judge_facts("neuron_processes", facts, TRN1, level="standard")) is Status.PASS


def test_no_list():
    facts = node(neuron_ls={"devices": []})
    assert only(judge_facts("neuron_processes", facts, TRN1), Status.UNKNOWN)
