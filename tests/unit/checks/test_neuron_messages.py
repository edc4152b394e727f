"""neuron_messages: every message of the catalogue by its class, repetition, older boots, and a log that is none."""

import pytest

from flightline_node.know.catalog import neuron as catalogue
from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import PARSERS
from tests.harness import judge_facts, only, status

from .neurons import TRN1, fixture, node

# One line per rule, as the sources named in catalog/neuron.py build it.
LINES = {
    "hw_err_collectives": "NEURON_HW_ERR=HANG_ON_COLLECTIVES nd-id=1 nc-id=0",
    "hw_err_repairable": "NEURON_HW_ERR=HBM_REPAIRABLE_UNCORRECTABLE_ERROR nd-id=1 action=REBOOT_INSTANCE",
    "hw_err": "NEURON_HW_ERR=DMA_ERROR instance-id=i-0 nd-id=1 nc-id=0 serial-num=ab12 action=TERMINATE_INSTANCE",
    "sram_uncorrectable": "neuron app: [ND 1][NC 0] Uncorrectable memory error is detected, metadata: 0x16.",
    "hbm_repairable": "neuron: Uncorrectable HBM memory error is detected. Please reload the neuron driver or reboot",
    "hbm_uncorrectable": "neuron: Uncorrectable HBM memory error is detected. Please terminate this instance",
    "dma_abort": "neuron: [MLA 1][NC 0] DMA TX engine 4 is in an abort state",
    "hang_collectives": "neuron: missing collectives status on Neuron Device 1 NC 0, model 0",
    "hang_compute": "(FATAL-RT-UNDEFINED-STATE) execution timeout (30000 ms) on Neuron Device 1 NC 0, waiting",
    "device_in_use": "NRT:nrt_allocate_neuron_cores NeuronCore(s) not available - Requested:nc1-nc1 Available:0",
    "old_driver": "NRT:nrt_init This runtime requires Neuron Driver version 2.0 or greater.",
    "no_driver": "NRT:nrt_init Unable to determine Neuron Driver version.",
    "no_collectives": "neuron NCCL init error: Error opening libnccom.so, cannot use collective operations!",
    "init_failed": "neuron: nd1 nc0 Failed to stop neuron core",
    "reset_failed": "neuron:nr_process: nd1: reset request 9 failed",
    "reset_unfinished": "neuron:nr_process: nd1: failed to initialize dma after reset",
    "invalid_state": "neuron:ncdev_open: nd1 is in an invalid state",
    "thread_failed": "neuron:nr_create_thread: nd1 reset thread creation failed",
    "no_index": "neuron:neuron_pci_get_device_id_v2: Could not retrieve device index (read timeout)",
    "duplicate_id": "neuron:neuron_pci_get_device_id_v2: duplicate routing id 4 found",
    "not_registered": "neuron:neuron_pci_module_init: Failed to register neuron inf driver -12",
    "scrub_failed": "neuron:ncdev_hbm_scrub_wait: Scrub failed for nd1 HBM 0",
    "repair_invalid": "neuron: [ND 1] Total Uncorrected ecc err count is 0, but repair state is 2 which is invalid.",
    "ecc_unread": "neuron:fw_io_get_total_uecc_err_count: sysfs failed to read ECC HBM1 error from FWIO",
    "serial_unread": "neuron:nsysfsmetric_show: sysfs failed to read serial number from FWIO",
    "copy_retried": "neuron:ndma: Failed to copy memory during a NeuronCore reset: nd 1, src 0x0. Retrying the copy.",
    "dma_timeout": "neuron:ndma_memcpy_wait_for_completion: DMA completion timeout on nd01 for UDMA_ENG_33 q0",
    "firmware_timeout": "neuron:fw_io_execute_request: seq: 4, cmd: 2 timed out",
    "register_read": "neuron:fw_io_read_csr_array_v2: register read failure while reading 0x0",
    "wrong_wiring": "neuron:npe: nd01: left ultraserver link is miss-wired to nd03 (0000000000000001)",
    "election": "neuron:npe: nd01: election failed. left neighbor reported bad election status",
    "out_of_memory": "neuron:mc_alloc: device mempool [0:0] total 1073741568 occupied 960539030 needed 1272 available 768",
}
HEADS = (
    "[ 5123.100001] ",
    "2026-11-20T09:12:44+0000 ip-10-0-0-10 kernel: ",
    "Nov 20 09:12:44 ip-10-0-0-10 kernel: [ 5123.100001] ",
    "[Fri Nov 20 09:12:44] ",
    '{job="k"} ',
    "<3>",
    "",
)
ANSWERS = {
    catalogue.CONDEMNS: Status.FAIL,
    catalogue.DEGRADES: Status.WARN,
    catalogue.JOB: Status.PASS,
    catalogue.BLINDS: Status.WARN,
    catalogue.NOTHING: Status.PASS,
}


def judge(text, file="kernel.log", **more):
    log = PARSERS["neuron_log"].parse({file: text.encode()})
    return judge_facts("neuron_messages", node(neuron_log=log, **more), TRN1)


def test_every_rule_has_a_line():
    assert set(LINES) == {rule.id for rule in catalogue.rules()}


@pytest.mark.parametrize("rule", catalogue.rules(), ids=lambda rule: rule.id)
@pytest.mark.parametrize("head", HEADS)
def test_each_message_behind_every_head(rule, head):
    file = "neuron-runtime.log" if "euron" not in LINES[rule.id] and "NEURON" not in LINES[rule.id] else "kernel.log"
    log = PARSERS["neuron_log"].parse({file: f"{head}nothing here\n{head}{LINES[rule.id]}\n".encode()})
    assert [event["rule"] for event in log["events"]] == [rule.id]
    findings = judge_facts("neuron_messages", node(neuron_log=log), TRN1)
    worst = max((f for f in findings if f.status is not Status.INFO), key=lambda f: f.status is not Status.PASS)
    if rule.kind == catalogue.CONDEMNS and not log["events"][0]["sure"]:
        assert worst.status is Status.UNKNOWN
        return
    assert worst.status is ANSWERS[rule.kind]
    if rule.kind in (catalogue.CONDEMNS, catalogue.DEGRADES):
        assert worst.remedy is rule.remedy


def test_what_the_line_asks_for():
    line = "x kernel: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR nd-id=3 serial-num=5a01 action=TERMINATE"
    finding = only(judge(line + "\n"), Status.FAIL)
    assert finding.remedy is Remedy.REPLACE
    assert finding.device["name"] == "neuron3"
    assert finding.evidence == (line,)


def test_a_warning_that_repeats_blocks():
    line = LINES["dma_timeout"] + "\n"
    assert status(judge(line * 10)) is Status.WARN
    assert only(judge(line * 11), Status.FAIL).measured == 11


def test_before_the_last_boot_is_history():
    text = f"{LINES['hw_err']}\nLinux version 6.8.0\nneuron: all well\n"
    assert status(judge(text)) is Status.INFO


def test_a_log_without_a_kernel_line_is_no_evidence():
    assert status(judge("hello\n", kernel=None)) is Status.UNKNOWN
    assert status(judge("hello neuron\n", "neuron-runtime.log", kernel=None)) is Status.PASS


def test_the_fixture():
    findings = judge_facts(
        "neuron_messages", node(neuron_log=fixture("neuron_log", "neuron_log/kernel-errors.log")), TRN1
    )
    assert [(f.status, f.device.get("name")) for f in findings] == [
        (Status.FAIL, "neuron3"),
        (Status.FAIL, "neuron3"),
        (Status.WARN, "neuron5"),
        (Status.WARN, None),
    ]


RUNTIME_ERROR = (
    "2026-Nov-20 09:12:44.2 91:91 ERROR  TDRV:tdrv_init_mla_phase1                    Could not open the nd3"
)


def judge_job(*lines):
    text = "\n".join(lines).encode()
    return judge_facts(
        "neuron_messages", {"neuron_log": PARSERS["neuron_log"].parse({"neuron-runtime.log": text})}, "none"
    )


def test_a_runtime_error_of_no_class_is_no_pass():
    finding = only(judge_job("step 1", RUNTIME_ERROR), Status.UNKNOWN)
    assert "Could not open the nd3" in finding.message


@pytest.mark.parametrize(
    "line",
    [
        "2026-Nov-20 09:12:44.2 91:91  INFO   NRT:nrt_init     Found neuron driver: 2.18",
        "2026-Nov-20 09:12:44.2 91:91 ERROR   NRT:nrt_close    Unexpected runtime state: NRT_STATE_START",
    ],
)
def test_a_runtime_log_without_an_open_error_passes(line):
    assert status(judge_job(line)) is Status.PASS


def test_what_a_class_explains_is_not_asked_again():
    assert status(judge_job(LINES["device_in_use"], RUNTIME_ERROR)) is Status.INFO


def test_a_job_s_message_of_the_kernel_explains_no_error_of_the_runtime():
    files = {"kernel.log": f"x kernel: {LINES['out_of_memory']}\n", "neuron-runtime.log": f"{RUNTIME_ERROR}\n"}
    log = PARSERS["neuron_log"].parse({name: text.encode() for name, text in files.items()})
    assert status(judge_facts("neuron_messages", node(neuron_log=log), TRN1)) is Status.UNKNOWN


def test_what_the_driver_said_at_its_start_is_shown():
    log = {**PARSERS["neuron_log"].parse({"kernel.log": b"x kernel: neuron: all well\n"}), "driver_started": "2.24.7.0"}
    quiet = only(judge_facts("neuron_messages", node(neuron_log=log), TRN1), Status.PASS)
    assert quiet.message == "no error of the Neuron driver 2.24.7.0 in the log"
    silent = judge_facts("neuron_messages", node(neuron_log={**log, "driver_started": None}), TRN1)
    assert only(silent, Status.PASS).message == "no error of the Neuron driver in the log"
