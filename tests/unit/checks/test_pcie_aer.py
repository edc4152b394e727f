"""pcie_aer: fatal blocks, the rest warns or informs, one error told twice counts once."""

import pytest

from flightline_node.read.parsers import kernel
from tests.harness import status

from .table import FAIL, INFO, INVESTIGATE, PASS, REBOOT, UNKNOWN, WARN, judging, row, table

CORRECTED = "pcieport 0000:60:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
NONFATAL = (
    "nvidia 0000:53:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)"
)
FATAL = (
    "nvidia 0000:53:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)"
)
REPORT = "pcieport 0000:50:01.0: AER: Uncorrectable (Fatal) error message received from 0000:53:00.0"
SMI = {"gpus": [{"index": 0, "uuid": "GPU-0", "pci_bus_id": "00000000:53:00.0"}]}


def judge(*lines, smi=None, **rest):
    text = "".join(f"[{9.0 * n:12.6f}] {line}\n" for n, line in enumerate(lines, 1))
    facts = {"kernel": kernel.parse({"kernel.log": text.encode()}), **({"nvidia_smi": smi} if smi else {})}
    return judging("pcie_aer", facts, **rest)


test_pcie_aer = table(
    row("fatal blocks and names the GPU", judge(FATAL, smi=SMI), FAIL, remedy=REBOOT, index=0, of={"uuid": "GPU-0"}),
    row("fatal blocks and names the GPU", judge(FATAL), FAIL, device={"pci": "0000:53:00.0"}, expected=0, all=1),
    row("report and detail are one error", judge(REPORT, FATAL), FAIL, measured=1, shows="Transaction Layer"),
    row("report and detail are one error", judge(REPORT, FATAL, FATAL), FAIL, measured=2),
    row("report and detail are one error", judge(REPORT), FAIL, device={"pci": "0000:53:00.0"}),
    row("not fatal is refused", judge(NONFATAL), FAIL, reason="stands.nonfatal", remedy=INVESTIGATE),
    row("not fatal is refused",
        judge("pcieport 0000:50:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:53:00.0"), FAIL),
    row("corrected by their number", judge(*[CORRECTED] * 99), INFO, expected="under 100").also(PASS,
        message="no uncorrected PCIe error since the last boot"),
    row("corrected by their number", judge(*[CORRECTED] * 100), WARN, measured=100),
    row("corrected by their number", judge(CORRECTED, thresholds={"pcie_aer.corrected_count": 1}), WARN),
    row("corrected by their number", judge(*[CORRECTED] * 3000), WARN, measured=3000),
    *(row("two corrected reports of old and new kernels", judge(line), INFO, device={"pci": "0000:01:00.0"})
        for line in ("pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0",
        "pcieport 0000:00:1c.0: AER: Multiple Corrected error message received from 0000:01:00.0",
        "pcieport 0000:00:1c.0: AER: Correctable error message received from 0000:01:00.0")),
    row("a storm of corrected errors", judging("pcie_aer", {"kernel": kernel.parse(
        {"kernel.log": "".join(f"[   9.00000{n}] {CORRECTED}\n" for n in range(3)).encode()})}), FAIL, measured=3),
    *(row("a storm in a log whose stamps have whole seconds, or none", judging("pcie_aer", {"kernel": kernel.parse(
        {"kernel.log": f"{stamp}{CORRECTED}\n".encode() * 3})}), FAIL, reason="stands.corrected")
        for stamp in ["Nov 20 08:00:01 ip-10-0-0-10 kernel: ", ""]),
    row("quiet log passes", judge("pcieport 0000:00:01.0: AER: enabled with IRQ 24"), PASS,
        message="no PCIe error since the last boot"),
    *(each for lines in [[*[CORRECTED] * 3000, *["usb 1-1: new device"] * 401, CORRECTED]] for each in (
        row("what a storm before the window left out is not counted in it", judge(*lines), WARN, measured=3001),
        row("what a storm before the window left out is not counted in it",
            judge(*lines, thresholds={"pcie_aer.window_hours": 1}), INFO, measured=1),
    )),
)  # fmt: skip


@pytest.mark.parametrize(
    ("severity", "wanted"),
    [
        ("Uncorrectable (Fatal)", UNKNOWN),
        ("Uncorrectable (Non-Fatal)", UNKNOWN),
        ("Correctable", PASS),
    ],
)
def test_a_line_behind_an_unreadable_head(severity, wanted):
    line = f"nvidia 0000:53:00.0: PCIe Bus Error: severity={severity}, type=Transaction Layer, (Requester ID)"
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n".encode()})
    assert status(judging("pcie_aer", {"kernel": facts})) is wanted
