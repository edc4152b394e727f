"""pcie_aer: fatal blocks, the rest warns or informs, one error told twice counts once."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import kernel
from tests.harness import judge_facts, only, status

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
    return judge_facts("pcie_aer", facts, **rest)


def test_fatal_blocks_and_names_the_gpu():
    finding = only(judge(FATAL, smi=SMI), Status.FAIL)
    assert (finding.remedy, finding.device["index"], finding.device["uuid"]) == (Remedy.REBOOT, 0, "GPU-0")
    assert only(judge(FATAL), Status.FAIL).device == {"pci": "0000:53:00.0"}


def test_report_and_detail_are_one_error():
    finding = only(judge(REPORT, FATAL), Status.FAIL)
    assert (finding.measured, "Transaction Layer" in finding.evidence[0]) == (1, True)
    assert only(judge(REPORT, FATAL, FATAL), Status.FAIL).measured == 2
    assert only(judge(REPORT), Status.FAIL).device == {"pci": "0000:53:00.0"}


def test_not_fatal_warns():
    assert only(judge(NONFATAL), Status.WARN).remedy is Remedy.INVESTIGATE
    short = "pcieport 0000:50:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:53:00.0"
    assert status(judge(short)) is Status.WARN


def test_corrected_by_their_number():
    assert status(judge(*[CORRECTED] * 99)) is Status.INFO
    assert only(judge(*[CORRECTED] * 100), Status.WARN).measured == 100
    assert status(judge(CORRECTED, thresholds={"pcie_aer.corrected_count": 1})) is Status.WARN
    assert only(judge(*[CORRECTED] * 3000), Status.WARN).measured == 3000


def test_two_corrected_reports_of_old_and_new_kernels():
    for line in (
        "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0",
        "pcieport 0000:00:1c.0: AER: Multiple Corrected error message received from 0000:01:00.0",
        "pcieport 0000:00:1c.0: AER: Correctable error message received from 0000:01:00.0",
    ):
        assert only(judge(line), Status.INFO).device == {"pci": "0000:01:00.0"}


def test_quiet_log_passes():
    assert status(judge("pcieport 0000:00:01.0: AER: enabled with IRQ 24")) is Status.PASS


def test_what_a_storm_before_the_window_left_out_is_not_counted_in_it():
    lines = [*[CORRECTED] * 3000, *["usb 1-1: new device"] * 401, CORRECTED]
    assert only(judge(*lines), Status.WARN).measured == 3001
    assert only(judge(*lines, thresholds={"pcie_aer.window_hours": 1}), Status.INFO).measured == 1


@pytest.mark.parametrize(
    ("severity", "wanted"),
    [
        ("Uncorrectable (Fatal)", Status.UNKNOWN),
        ("Uncorrectable (Non-Fatal)", Status.WARN),
        ("Correctable", Status.PASS),
    ],
)
def test_a_line_behind_an_unreadable_head(severity, wanted):
    line = f"nvidia 0000:53:00.0: PCIe Bus Error: severity={severity}, type=Transaction Layer, (Requester ID)"
    facts = kernel.parse({"kernel.log": f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n".encode()})
    assert status(judge_facts("pcie_aer", {"kernel": facts})) is wanted
