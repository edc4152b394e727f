"""neuron_cores: physical cores whatever the grouping, and a device that lost its own."""

from tests.harness import only, status

from .neurons import TRN1, fixture, node
from .table import FAIL, FIX_CONFIG, INVESTIGATE, PASS, REBOOT, SKIP, UNKNOWN, changed, judging, row, table


def judge(facts, instance_type=TRN1):
    return judging("neuron_cores", facts, instance_type)


test_neuron_cores = table(
    *(row("a device with another number", judge(changed(node(), {"neuron_ls.devices.5.cores": cores})), wanted,
        of={"name": "neuron5", "serial": "5a00ff00c0de0005"}, remedy=remedy)
        for cores, wanted, remedy in [
            (0, FAIL, REBOOT), (1, FAIL, REBOOT), (4, FAIL, FIX_CONFIG), (None, UNKNOWN, INVESTIGATE),
        ]),
    row("no core is a failure without a type too", judge(changed(node(), {"neuron_ls.devices.5.cores": 0}), "none"),
        FAIL, remedy=REBOOT),
    row("devices grouped differently",
        judge(changed(node(neuron_ls=fixture("neuron_ls", "neuron_ls/trn2-48xlarge.json")),
        {"neuron_ls.devices.3.cores": 8, "neuron_ls.devices.3.lnc": 1}), "trn2.48xlarge"), FAIL, remedy=FIX_CONFIG),
    row("no device no pass", judge(node(neuron_ls={"devices": []})), UNKNOWN),
    row("no device no pass", judge(node(), "g5.xlarge"), SKIP),
)  # fmt: skip


def test_healthy():
    facts = node()
    for device in facts["neuron_ls"]["devices"]:
        device["lnc"] = None
    assert only(judge(facts), PASS).message == "2 cores on each of 16 devices"


def test_logical_cores_are_counted_as_physical_ones():
    facts = node(neuron_ls=fixture("neuron_ls", "neuron_ls/trn2-48xlarge.json"))
    assert only(judge(facts, "trn2.48xlarge"), PASS).message.endswith(
        "8 cores on each of 16 devices, 2 to a logical core"
    )
    for device in facts["neuron_ls"]["devices"]:
        device.update(cores=8, lnc=1)
    assert status(judge(facts, "trn2.48xlarge")) is PASS
    for device in facts["neuron_ls"]["devices"]:
        device.update(cores=8, lnc=2)
    assert status(judge(facts, "trn2.48xlarge")) is PASS, "older tools print the physical cores"


def test_a_group_of_unknown_size_is_unknown_not_a_lost_core():
    facts = node(neuron_ls=fixture("neuron_ls", "neuron_ls/trn2-48xlarge.json"), neuron_monitor=None)
    for device in facts["neuron_ls"]["devices"]:
        device["lnc"] = None
    assert status(judge(facts, "trn2.48xlarge")) is UNKNOWN
    facts["neuron_monitor"] = {"hardware": {"lnc": 2}, "devices": []}
    assert status(judge(facts, "trn2.48xlarge")) is PASS
    facts["neuron_ls"]["devices"][3]["cores"] = 3
    assert only(judge(facts, "trn2.48xlarge"), FAIL).measured == 6
