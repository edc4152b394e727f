"""neuron_errors: the driver's counts of what programs met, programs that hang now, and a tool that reports its own error."""

from .neurons import TRN1, fixture, node
from .table import FAIL, INVESTIGATE, PASS, REBOOT, REPLACE, SKIP, UNKNOWN, WARN, changed, judging, row, table


def judge(facts):
    return judging("neuron_errors", facts, TRN1)


test_neuron_errors = table(
    row("healthy", judge(node()), PASS, says="16 devices"),
    row("healthy", judge(node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/trn1-busy-stream.jsonl"))), PASS,
        says="1 programs"),
    *(row("counted by the driver", judge(changed(node(), {f"neuron_sysfs.devices.3.counters.{counter}": 2})), wanted,
        measured=2, remedy=remedy, of={"name": "neuron3"})
        for counter, wanted, remedy in [
            ("hw_nc_ue_error", FAIL, REPLACE), ("hw_hbm_ue_error", FAIL, REPLACE),
            ("hw_dma_abort_error", FAIL, REPLACE), ("hw_repairable_hbm_ue_error", FAIL, REBOOT),
            ("hw_error", FAIL, REBOOT), ("reset_fail_count", FAIL, REBOOT),
            ("hw_collectives_error", WARN, INVESTIGATE), ("timeout", WARN, INVESTIGATE),
        ]),
    *(row("a program that runs now",
        judge(changed(node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/trn1-busy-stream.jsonl")),
        {f"neuron_monitor.runtimes.0.{part}.{key}": 4})), FAIL, says="pretrain", measured=4)
        for part, key in [("errors", "hardware"), ("executions", "timed_out")]),
    row("its own mistakes are the programs",
        judge(changed(node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/trn1-busy-stream.jsonl")),
        {"neuron_monitor.runtimes.0.errors.generic": 3, "neuron_monitor.runtimes.0.errors.numerical": 9})), PASS),
    row("nothing to ask", judge(changed(node(neuron_sysfs={"driver": "2.24.7.0", "devices": []}),
        {"neuron_monitor.runtimes": []})), SKIP),
)  # fmt: skip


def test_the_monitors_own_error_is_unknown():
    facts = node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/no-driver.json"))
    found = [finding for finding in judge(facts) if finding.status is UNKNOWN]
    assert len(found) == 2
    assert "neuron driver is not loaded" in found[0].message
