"""pci_devices: all there, a GPU gone, fallen off the bus, EFA missing, switches missing."""

from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, INVESTIGATE, PASS, REBOOT, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def judged(kind="p5.48xlarge", **changes):
    return judging("pci_devices", {"lspci": {**read("lspci", "lspci/p5-D-nn.txt"), **changes}}, kind)


def linked(kind, *widths, most=16):
    """GPUs at these widths, of one vendor's list."""
    links = {
        f"0000:{n:02x}:00.0": {"speed_gt_s": 2.5, "width": width, "width_max": most} for n, width in enumerate(widths)
    }
    return judging("pci_devices", {"lspci": {"gpu_addresses": [*links], "links": links, "filtered": True}}, kind)


test_pci_devices = table(
    row("a T4 has half of its lanes on every g4dn", linked("g4dn.xlarge", 8), SKIP),
    row("fewer lanes than the type", linked("g4dn.xlarge", 4), FAIL, alone=True, measured=4, expected=8, remedy=REBOOT),
    row("fewer lanes than its twin", linked("none", 16, 8), FAIL, alone=True, measured=8, expected=16),
    row("of no known type", linked("none", 8), WARN, alone=True, measured=8, expected=16),
    row("all lanes", linked("none", 16, 16), SKIP),
    row("healthy fixtures", judged(), PASS, message="on the PCI bus: 8 GPUs, 32 EFA devices, 4 NVSwitches"),
    row("healthy fixtures", judging("pci_devices", {"lspci": read("lspci", "lspci/p4d-plain.txt")}, "p4d.24xlarge"),
        PASS),
    *(row("one thing wrong", judged(**changes), wanted, alone=True, remedy=remedy)
        for changes, wanted, remedy in (
            ({"nvidia_gpus": 7}, "FAIL", REBOOT), ({"nvidia_gpus": 9}, "FAIL", FIX_CONFIG),
            ({"efa": 31}, "FAIL", REPLACE), ({"efa": 30}, "FAIL", REPLACE), ({"efa": 29}, "FAIL", FIX_CONFIG),
            ({"efa": 8}, "FAIL", FIX_CONFIG), ({"efa": 0}, "FAIL", FIX_CONFIG),
            ({"nvidia_bridges": 3}, "FAIL", REPLACE), ({"nvidia_bridges": 0}, "WARN", INVESTIGATE),
            ({"nvidia_gpus": None}, "UNKNOWN", INVESTIGATE),
        )),
    row("fallen off the bus on any type", judging("pci_devices", {"lspci": read("lspci", "lspci/g5-n.txt")}, "none"),
        FAIL, device={"pci": "0000:00:1c.0"}, remedy=REBOOT),
    row("Blackwell switches are not counted", judged("p6-b200.48xlarge", efa=8, nvidia_bridges=0), PASS),
    row("Neuron type has no nvidia GPU", judged("trn1.32xlarge", nvidia_gpus=0, efa=8, nvidia_bridges=0), PASS),
    row("no type", [judged("none"), judging("pci_devices", {}, "none")], SKIP),
    row("EFA devices not counted is unknown", judged(efa=None), UNKNOWN, expected=32),
    row("few EFA devices less may be lost and many were never attached", judged(efa=30), FAIL,
        says="lost, or not attached at launch"),
    row("few EFA devices less may be lost and many were never attached", judged(efa=29), FAIL,
        says="the others are not attached at launch"),
    row("only what is expected is told", judged("trn1.32xlarge", nvidia_gpus=0, efa=8, nvidia_bridges=0), PASS,
        message="on the PCI bus: 8 EFA devices"),
    row("only what is expected is told",
        judging("pci_devices", {"lspci": {"nvidia_gpus": 8}}, "none", expected={"accelerator": "nvidia_gpu"}), SKIP),
)  # fmt: skip
