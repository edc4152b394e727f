"""neuron_messages: every message of the catalogue by its class, repetition, older boots, and a log that is none."""

import pytest

from flightline_node.know.catalog import neuron as catalogue
from flightline_node.read.parsers import PARSERS

from .neurons import TRN1, fixture, node
from .table import FAIL, INFO, PASS, REPLACE, UNKNOWN, WARN, judging, row, table

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
    "status_repairable": "RuntimeError: nrt_execute failed with status 1205",
    "status_collectives": "RuntimeError: nrt_execute failed with status 1200",
    "status_hardware": "ERROR NRT:nrt_execute NRT_EXEC_HW_ERR_HBM_UE",
    "dma_not_started": "neuron:ndma_init: SDMA ENG:7 init failed",
    "not_set_up": "neuron:mpset_constructor: mpset host init failed -12",
    "counters_lacking": "neuron:nsysfsmetric_register: cannot init the root node for neuron_device 7",
    "topology_unread": "neuron:ncdev_device_info: Unable to get connected devices for device 7",
    "dma_refused": "neuron:ndmar_queue_copy_start: M2M copy start failed - 7",
    "passes": "neuron:ndma_prefetch_user_pages: prefetch failed",
    "starved": "neuron:ncrwl_reader_enter: nd7nc1: pid:7 - reader starved. writer:8",
    "program": "neuron:nmmap_get_mc: nd7: invalid size 7 for mmap()",
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
    catalogue.CONDEMNS: FAIL,
    catalogue.DEGRADES: WARN,
    catalogue.JOB: PASS,
    catalogue.BLINDS: WARN,
    catalogue.NOTHING: PASS,
}


def judge(text, file="kernel.log", **more):
    log = PARSERS["neuron_log"].parse({file: text.encode()})
    return judging("neuron_messages", node(neuron_log=log, **more), TRN1)


RUNTIME_ERROR = (
    "2026-Nov-20 09:12:44.2 91:91 ERROR  TDRV:tdrv_init_mla_phase1                    Could not open the nd3"
)


def judge_job(*lines):
    text = "\n".join(lines).encode()
    return judging("neuron_messages", {"neuron_log": PARSERS["neuron_log"].parse({"neuron-runtime.log": text})}, "none")


LOG = {**PARSERS["neuron_log"].parse({"kernel.log": b"x kernel: neuron: all well\n"}), "driver_started": "2.24.7.0"}


test_neuron_messages = table(
    *(row("what the line asks for", judge(line + "\n"), FAIL, remedy=REPLACE, of={"name": "neuron3"}, evidence=(line,))
        for line in ["x kernel: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR nd-id=3 serial-num=5a01 action=TERMINATE"]),
    row("a warning that repeats blocks", judge((LINES["dma_timeout"] + "\n") * 10), WARN),
    row("a warning that repeats blocks", judge((LINES["dma_timeout"] + "\n") * 11), FAIL, measured=11),
    row("before the last boot is history", judge(f"{LINES['hw_err']}\nLinux version 6.8.0\nneuron: all well\n"), INFO),
    row("a log without a kernel line is no evidence", judge("hello\n", kernel=None), UNKNOWN),
    row("a log without a kernel line is no evidence", judge("hello neuron\n", "neuron-runtime.log", kernel=None), PASS),
    row("a runtime error of no class is no pass", judge_job("step 1", RUNTIME_ERROR), UNKNOWN,
        says="Could not open the nd3"),
    *(row("a runtime log without an open error passes", judge_job(line), PASS)
        for line in [
            "2026-Nov-20 09:12:44.2 91:91  INFO   NRT:nrt_init     Found neuron driver: 2.18",
            "2026-Nov-20 09:12:44.2 91:91 ERROR   NRT:nrt_close    Unexpected runtime state: NRT_STATE_START",
        ]),
    row("what a class explains is not asked again", judge_job(LINES["device_in_use"], RUNTIME_ERROR), INFO),
    row("a job's message of the kernel explains no error of the runtime",
        judging("neuron_messages",
        node(neuron_log=PARSERS["neuron_log"].parse({name: text.encode()
        for name, text in {"kernel.log": f"x kernel: {LINES['out_of_memory']}\n",
        "neuron-runtime.log": f"{RUNTIME_ERROR}\n"}.items()})), TRN1), UNKNOWN),
    row("what the driver said at its start is shown", judging("neuron_messages", node(neuron_log=LOG), TRN1), PASS,
        message="no error of the Neuron driver 2.24.7.0 in the log"),
    row("what the driver said at its start is shown",
        judging("neuron_messages", node(neuron_log={**LOG, "driver_started": None}), TRN1), PASS,
        message="no error of the Neuron driver in the log"),
)  # fmt: skip


def test_every_rule_has_a_line():
    assert set(LINES) == {rule.id for rule in catalogue.rules()}


@pytest.mark.parametrize("rule", catalogue.rules(), ids=lambda rule: rule.id)
@pytest.mark.parametrize("head", HEADS)
def test_each_message_behind_every_head(rule, head):
    file = "neuron-runtime.log" if "euron" not in LINES[rule.id] and "NEURON" not in LINES[rule.id] else "kernel.log"
    log = PARSERS["neuron_log"].parse({file: f"{head}nothing here\n{head}{LINES[rule.id]}\n".encode()})
    assert [event["rule"] for event in log["events"]] == [rule.id]
    findings = judging("neuron_messages", node(neuron_log=log), TRN1)
    worst = max((f for f in findings if f.status is not INFO), key=lambda f: f.status is not PASS)
    if rule.kind == catalogue.CONDEMNS and not log["events"][0]["sure"]:
        assert worst.status is UNKNOWN
        return
    assert worst.status is ANSWERS[rule.kind]
    if rule.kind in (catalogue.CONDEMNS, catalogue.DEGRADES):
        assert worst.remedy is rule.remedy


def test_the_fixture():
    findings = judging("neuron_messages", node(neuron_log=fixture("neuron_log", "neuron_log/kernel-errors.log")), TRN1)
    assert [(f.status, f.device.get("name")) for f in findings] == [
        (FAIL, "neuron3"),
        (FAIL, "neuron3"),
        (WARN, "neuron5"),
        (WARN, None),
    ]
