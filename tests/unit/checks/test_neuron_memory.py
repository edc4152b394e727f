"""neuron_memory: a device with less than the type's, one of another size, one that does not say."""

from tests.harness import only

from .neurons import TRN1, node
from .table import FAIL, FIX_CONFIG, INVESTIGATE, NONE, PASS, REPLACE, UNKNOWN, changed, judging, row, table

GIB = 1 << 30


def judge(facts, instance_type=TRN1, **more):
    return judging("neuron_memory", facts, instance_type, **more)


test_neuron_memory = table(
    *(row("one device", judge(changed(node(), {"neuron_ls.devices.2.memory_bytes": size})), wanted, remedy=remedy)
        for size, wanted, remedy in [
            (28 * GIB, FAIL, REPLACE), (31 * GIB, PASS, NONE), (96 * GIB, FAIL, FIX_CONFIG), (0, FAIL, REPLACE),
            (None, UNKNOWN, INVESTIGATE),
        ]),
    row("without a type only none at all fails", judge(node(), "none"), PASS),
    row("without a type only none at all fails",
        judge(changed(node(), {"neuron_ls.devices.2.memory_bytes": 0}), "none"), FAIL),
    row("no device no pass", judge(node(neuron_ls={"devices": []})), UNKNOWN),
    row("twice the size at a tolerance of half is still the type's",
        judge(changed(node(), {"neuron_ls.devices.2.memory_bytes": 64 * GIB}),
        thresholds={"neuron_memory.tolerance_percent": 50}), PASS),
)  # fmt: skip


def test_healthy():
    measures = {}
    assert "32768 MiB" in only(judge(node(), measures=measures), PASS).message
    assert len(measures["neuron_memory"]["values"]) == 16
