"""neuron_devices: every source against the type, and what neuron-ls says when there is no device."""

from flightline_node.model import Remedy
from tests.harness import BROKEN

from .neurons import TRN1, fixture, node
from .table import FAIL, PASS, SKIP, UNKNOWN, changed, judging, row, table, without


def judge(facts, instance_type=TRN1, **more):
    return judging("neuron_devices", facts, instance_type, **more)


test_neuron_devices = table(
    row("all there", judge(node()), PASS, measured=16, says="PCI (lspci) 16"),
    row("one missing everywhere is the machine",
        judge(without(node(lspci={"neuron": 15}), "neuron_ls.devices.7", "neuron_sysfs.devices.7")), FAIL, measured=15,
        expected=16, remedy=Remedy.REPLACE),
    row("one that the bus has and the driver lacks wants a reboot",
        judge(without(node(), "neuron_ls.devices.7", "neuron_sysfs.devices.7")), FAIL, remedy=Remedy.REBOOT,
        says="driver (sysfs) 15"),
    *(each
        for facts in [
            node(neuron_ls=fixture("neuron_ls", "neuron_ls/no-device.txt"),
                neuron_sysfs={"driver": None, "devices": []}),
        ]
        for each in (
        row("no device without the driver", judge(facts), FAIL, measured=0, expected=16, remedy=Remedy.UPDATE_SOFTWARE,
            says="no neuron device found"),
        row("no device without the driver", judge(facts, "none"), SKIP),
        row("no device without the driver", judge({"neuron_ls": facts["neuron_ls"]}, "none"), FAIL),
    )),
    row("an empty list is no pass", judge(node(neuron_ls={"devices": []})), FAIL, remedy=Remedy.REBOOT),
    row("the same device twice counts once", judge(changed(node(), {"neuron_ls.devices.7.index": 6})), FAIL,
        measured=15),
    row("more than the type has", judge(node(), "trn1.2xlarge"), FAIL, remedy=Remedy.FIX_CONFIG),
    row("without a type the sources must agree", judge(node(), "none"), PASS),
    row("without a type the sources must agree", judge(without(node(), "neuron_ls.devices.3"), "none"), FAIL),
    *(row("without an answer it is unknown", judge(node(neuron_ls=answer)), UNKNOWN) for answer in [BROKEN, None]),
    row("other accelerators", judge({}, "p5.48xlarge"), SKIP, message="no Neuron device in p5.48xlarge"),
    row("other accelerators", judge({"neuron_sysfs": {"driver": None, "devices": []}}, "none"), SKIP),
)  # fmt: skip
