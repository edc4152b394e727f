"""gpu_lost: error text in place of a GPU, the kernel log, the bus."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

from . import gpus


def smi_error(text, pci=None, count=7):
    facts = gpus.node(count=count)
    facts["nvidia_smi"]["errors"] = [{"pci_bus_id": pci, "text": text}]
    return facts


def test_healthy_by_all_sources():
    facts = {**gpus.node(), "kernel": {"fallen_off_bus": [], "last_boot": 0}, "lspci": {"nvidia_gpus": 8}}
    assert "nvidia_smi, kernel, lspci" in only(judge_facts("gpu_lost", facts), Status.PASS).message


def test_words_of_a_lost_gpu_in_its_fields():
    facts = gpus.put(gpus.node(), 3, "temperature_c", "GPU is lost")
    finding = only(judge_facts("gpu_lost", facts), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (3, Remedy.REBOOT)


def test_identity_that_is_an_error():
    facts = gpus.put(gpus.node(), 3, "uuid", "[Unknown Error]")
    assert only(judge_facts("gpu_lost", facts), Status.FAIL).evidence == ("uuid: [Unknown Error]",)


@pytest.mark.parametrize("words", ["System is not in ready state", "Invalid State", "In use by another client"])
def test_gpu_that_answers_with_another_of_nvmls_errors(words):
    facts = gpus.put(gpus.put(gpus.node(), 3, "name", words), 3, "memory_total_mib", words)
    assert only(judge_facts("gpu_lost", facts), Status.FAIL).device["index"] == 3
    assert status(judge_facts("gpu_model", facts)) is Status.UNKNOWN


def test_a_handle_that_is_refused_says_nothing_of_the_gpu():
    facts = smi_error("Unable to determine the device handle for GPU 0000:53:00.0: Insufficient Permissions")
    assert status(judge_facts("gpu_lost", facts)) is Status.UNKNOWN


def test_one_unreadable_sensor_is_not_a_lost_gpu():
    facts = gpus.put(gpus.node(), 3, "power.draw_w", "[Unknown Error]")
    assert status(judge_facts("gpu_lost", facts)) is Status.PASS


def test_an_unreadable_temperature_counts_with_a_second_field_only():
    facts = gpus.put(gpus.node(), 3, "temperature_c", "ERR!")
    assert status(judge_facts("gpu_lost", facts)) is Status.PASS
    assert status(judge_facts("gpu_temperature", facts)) is Status.UNKNOWN
    gpus.put(facts, 3, "performance_state", "ERR!")
    assert only(judge_facts("gpu_lost", facts), Status.FAIL).device["index"] == 3


@pytest.mark.parametrize("words", ["[GPU requires reset]", "GPU requires restart"])
def test_requires_reset(words):
    facts = gpus.put(gpus.node(), 3, "memory_total_mib", words)
    assert only(judge_facts("gpu_lost", facts), Status.FAIL).remedy is Remedy.RESET_GPU


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Unable to determine the device handle for GPU0000:53:00.0: Unknown Error", Remedy.REBOOT),
        ("Unable to determine the device handle for gpu 0000:53:00.0: GPU is lost.  Reboot the system", Remedy.REBOOT),
        ("Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.95", Remedy.REBOOT),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", Remedy.UPDATE_SOFTWARE),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", Remedy.UPDATE_SOFTWARE),
        ("No devices were found", Remedy.REBOOT),
        ("7 of 8 attached GPUs are listed", Remedy.REBOOT),
    ],
)
def test_messages_of_nvidia_smi(text, remedy):
    finding = only(judge_facts("gpu_lost", smi_error(text)), Status.FAIL)
    assert (finding.remedy, finding.evidence) == (remedy, (text,))


def test_a_message_not_known_is_unknown():
    assert (
        status(judge_facts("gpu_lost", smi_error("Failed to initialize NVML: Insufficient Permissions")))
        is Status.UNKNOWN
    )


def test_inforom_warning_is_for_another_check():
    text = "WARNING: infoROM is corrupted at gpu 0000:41:00.0"
    assert status(judge_facts("gpu_lost", smi_error(text, "0000:41:00.0", 8))) is Status.PASS


def test_gpu_and_its_message_are_one_finding():
    facts = gpus.put(gpus.node(), 0, "name", "GPU is lost")
    facts["nvidia_smi"]["errors"] = [{"pci_bus_id": "00000000:53:00.0", "text": "GPU is lost"}]
    assert len(judge_facts("gpu_lost", facts)) == 1


def test_kernel_log_when_nvidia_smi_hangs():
    event = {
        "pci": "0000:53:00",
        "time": "",
        "text": "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus.",
        "boot": 0,
    }
    facts = {"nvidia_smi": BROKEN, "kernel": {"fallen_off_bus": [event, event], "last_boot": 0}}
    finding = only(judge_facts("gpu_lost", facts), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"pci": "0000:53:00"}, Remedy.REBOOT)


def test_one_gpu_spelled_in_several_ways_is_one_finding():
    events = [
        {"pci": pci, "text": "NVRM: GPU has fallen off the bus.", "boot": 0}
        for pci in ("0000:53:00", "0000:53:00.0", "53:00.0", "00000000:53:00.0")
    ]
    kernel = {"fallen_off_bus": events, "last_boot": 0}
    alone = only(judge_facts("gpu_lost", {"nvidia_smi": BROKEN, "kernel": kernel}), Status.FAIL)
    assert alone.device["pci"] == "0000:53:00"
    smi = smi_error("Unable to determine the device handle for GPU0000:53:00.0: Unknown Error", "0000:53:00.0")
    assert len(judge_facts("gpu_lost", {**smi, "kernel": kernel})) == 1


def test_earlier_boot_is_history():
    event = {"pci": "0000:53:00", "text": "GPU has fallen off the bus", "boot": 0}
    facts = {**gpus.node(), "kernel": {"fallen_off_bus": [event], "last_boot": 1}}
    assert status(judge_facts("gpu_lost", facts)) is Status.PASS


def test_missing_on_the_bus():
    finding = only(judge_facts("gpu_lost", {**gpus.node(count=7), "lspci": {"nvidia_gpus": 7}}), Status.FAIL)
    assert (finding.measured, finding.expected) == (7, 8)


def test_on_the_bus_but_not_in_the_driver_needs_no_type():
    facts = {**gpus.node(count=7), "lspci": {"nvidia_gpus": 8}}
    assert status(judge_facts("gpu_lost", facts, "none")) is Status.FAIL


def test_rev_ff():
    lspci = {"nvidia_gpus": 8, "gpu_addresses": ["0000:53:00.0"], "rev_ff": ["0000:53:00.0"]}
    finding = only(judge_facts("gpu_lost", {**gpus.node(), "lspci": lspci}), Status.FAIL)
    assert finding.device == {"pci": "0000:53:00.0"}


def test_nothing_listed_and_nothing_said_is_unknown():
    assert status(judge_facts("gpu_lost", gpus.node(count=0))) is Status.UNKNOWN


@pytest.mark.parametrize(
    ("text", "wanted", "remedy"),
    [
        ("Unable to determine the device handle for GPU 0000:5A:00.0: Unknown Error", Status.FAIL, Remedy.REBOOT),
        ("Unknown Error", Status.FAIL, Remedy.REBOOT),
        ("Unknown Error: Insufficient Permissions", Status.UNKNOWN, Remedy.INVESTIGATE),
        ("words not seen yet", Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_a_message_in_place_of_one_gpu_is_about_that_gpu(text, wanted, remedy):
    (finding,) = judge_facts("gpu_lost", smi_error(text, "00000000:5A:00.0"))
    assert (finding.status, finding.remedy, finding.device) == (wanted, remedy, {"pci": "00000000:5A:00.0"})


def test_a_kernel_log_that_cannot_be_read_is_no_pass_beside_a_healthy_nvidia_smi():
    facts = {**gpus.node(), "kernel": BROKEN, "lspci": {"nvidia_gpus": 8}}
    assert only(judge_facts("gpu_lost", facts), Status.UNKNOWN).message == "could not be measured: broken on purpose"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [(79, Status.UNKNOWN), (None, Status.UNKNOWN), (9999, Status.UNKNOWN), (43, Status.PASS), (63, Status.PASS)],
)
def test_a_line_that_may_be_a_lost_gpu_is_no_pass_and_a_harmless_xid_is(code, wanted):
    event = {"code": code, "text": f"an Xid {code} behind a head that nobody can read", "boot": 0}
    kernel = {"fallen_off_bus": [], "unread_xids": [event], "last_boot": 0}
    assert status(judge_facts("gpu_lost", {**gpus.node(), "kernel": kernel, "lspci": {"nvidia_gpus": 8}})) is wanted
