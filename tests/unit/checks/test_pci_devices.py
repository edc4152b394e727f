"""pci_devices: all there, a GPU gone, fallen off the bus, EFA missing, switches missing."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read


def judged(kind="p5.48xlarge", **changes):
    return judge_facts("pci_devices", {"lspci": {**read("lspci", "lspci/p5-D-nn.txt"), **changes}}, kind)


def test_healthy_fixtures():
    assert only(judged(), Status.PASS).message == "on the PCI bus: 8 GPUs, 32 EFA devices, 4 NVSwitches"
    p4d = {"lspci": read("lspci", "lspci/p4d-plain.txt")}
    assert status(judge_facts("pci_devices", p4d, "p4d.24xlarge")) is Status.PASS


@pytest.mark.parametrize(
    ("changes", "wanted", "remedy"),
    [
        ({"nvidia_gpus": 7}, "FAIL", Remedy.REBOOT),
        ({"nvidia_gpus": 9}, "FAIL", Remedy.FIX_CONFIG),
        ({"efa": 31}, "FAIL", Remedy.REPLACE),
        ({"efa": 30}, "FAIL", Remedy.REPLACE),
        ({"efa": 29}, "FAIL", Remedy.FIX_CONFIG),
        ({"efa": 8}, "FAIL", Remedy.FIX_CONFIG),
        ({"efa": 0}, "FAIL", Remedy.FIX_CONFIG),
        ({"nvidia_bridges": 3}, "FAIL", Remedy.REPLACE),
        ({"nvidia_bridges": 0}, "WARN", Remedy.INVESTIGATE),
        ({"nvidia_gpus": None}, "UNKNOWN", Remedy.INVESTIGATE),
    ],
)
def test_one_thing_wrong(changes, wanted, remedy):
    (finding,) = judged(**changes)
    assert (finding.status, finding.remedy) == (Status(wanted), remedy)


def test_fallen_off_the_bus_on_any_type():
    lspci = {"lspci": read("lspci", "lspci/g5-n.txt")}
    finding = only(judge_facts("pci_devices", lspci, "none"), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"pci": "0000:00:1c.0"}, Remedy.REBOOT)


def test_blackwell_switches_are_not_counted():
    assert status(judged("p6-b200.48xlarge", efa=8, nvidia_bridges=0)) is Status.PASS


def test_neuron_type_has_no_nvidia_gpu():
    assert status(judged("trn1.32xlarge", nvidia_gpus=0, efa=8, nvidia_bridges=0)) is Status.PASS


def test_no_type():
    assert status(judged("none")) is Status.SKIP
    assert status(judge_facts("pci_devices", {}, "none")) is Status.SKIP


def test_efa_devices_not_counted_is_unknown():
    assert only(judged(efa=None), Status.UNKNOWN).expected == 32


def test_few_efa_devices_less_may_be_lost_and_many_were_never_attached():
    assert "lost, or not attached at launch" in only(judged(efa=30), Status.FAIL).message
    assert "the others are not attached at launch" in only(judged(efa=29), Status.FAIL).message


def test_only_what_is_expected_is_told():
    neuron = judged("trn1.32xlarge", nvidia_gpus=0, efa=8, nvidia_bridges=0)
    assert only(neuron, Status.PASS).message == "on the PCI bus: 8 EFA devices"
    facts = {"lspci": {"nvidia_gpus": 8}}
    assert status(judge_facts("pci_devices", facts, "none", expected={"accelerator": "nvidia_gpu"})) is Status.SKIP
