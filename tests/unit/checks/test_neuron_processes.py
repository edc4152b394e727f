"""neuron_processes: reported beside a job, a failure where the devices must be free."""

from flightline_node.read.parsers import PARSERS
from tests.harness import status

from .neurons import TRN1, busy, node
from .table import FAIL, INFO, PASS, RESTART_APP, UNKNOWN, changed, judging, row, table

test_neuron_processes = table(
    row("idle", judging("neuron_processes", node(), TRN1), PASS),
    row("tools that look do not count",
        judging("neuron_processes",
        changed(node(), {"neuron_ls.devices.0.processes": [{"pid": 1,
        "command": "/opt/aws/neuron/bin/neuron-monitor -c x"}]}), TRN1, level="standard"), PASS),
    row("no list", judging("neuron_processes", node(neuron_ls={"devices": []}), TRN1), UNKNOWN, count=1),
)  # fmt: skip


def test_a_job():
    facts = node(neuron_ls=PARSERS["neuron_ls"].parse({"neuron-ls.json": busy()}))
    assert status(judging("neuron_processes", facts, TRN1, level="quick")) is INFO
    findings = judging("neuron_processes", facts, TRN1, level="standard")
    assert {(finding.status, finding.remedy) for finding in findings} == {(FAIL, RESTART_APP)}
    assert "pid 4711 python3 pretrain.py" in findings[0].message
