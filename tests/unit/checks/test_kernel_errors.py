"""kernel_errors: what blocks, what warns, and the lines of healthy nodes that look like trouble."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import kernel
from tests.harness import judge_facts, only, sample, status

GPU = {"gpus": [{"index": 0, "uuid": "GPU-0", "pci_bus_id": "00000000:53:00.0"}]}
LOCKUP = "watchdog: BUG: soft lockup - CPU#17 stuck for 26s! [python:4242]"
TIMEOUT = "nvme nvme1: I/O 12 QID 5 timeout, aborting"


def parse(*lines):
    return kernel.parse({"kernel.log": "".join(f"[{9.0 * n:12.6f}] {x}\n" for n, x in enumerate(lines, 1)).encode()})


def judge(*lines, smi=None, **rest):
    return judge_facts("kernel_errors", {"kernel": parse(*lines), **({"nvidia_smi": smi} if smi else {})}, **rest)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("Out of memory: Killed process 4242 (python) total-vm:1kB", Status.WARN),
        ("Memory cgroup out of memory: Killed process 4242 (python) total-vm:1kB", Status.WARN),
        (LOCKUP, Status.WARN),
        ("watchdog: Watchdog detected hard LOCKUP on cpu 17", Status.FAIL),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", Status.WARN),
        ("INFO: task python:4242 blocked for more than 120 seconds.", Status.WARN),
        ("BUG: unable to handle page fault for address: ffff", Status.FAIL),
        ("BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 31s!", Status.WARN),
        (TIMEOUT, Status.WARN),
        ("nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", Status.FAIL),
        ("blk_update_request: I/O error, dev nvme1n1, sector 2048 op 0x0:(READ)", Status.FAIL),
        ("critical medium error, dev nvme1n1, sector 2048 op 0x0:(READ)", Status.FAIL),
        ("Buffer I/O error on dev dm-0, logical block 0, lost async page write", Status.FAIL),
        ("XFS (nvme1n1): log I/O error -5", Status.FAIL),
        ("XFS (nvme1n1): Corruption of in-memory data detected.  Shutting down filesystem", Status.FAIL),
        ("XFS (nvme2n1): writeback error on inode 4711, offset 0, sector 8192", Status.FAIL),
        ("XFS (nvme2n1): Failing async write on buffer block 0x2a40. Retrying async write.", Status.FAIL),
        ("EXT4-fs (nvme0n1p1): Remounting filesystem read-only", Status.FAIL),
        ("mce: [Hardware Error]: Machine check events logged", Status.WARN),
        ("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 0: b200000000000005", Status.FAIL),
        ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 8: 8c00004000010090", Status.WARN),
        ("{1}[Hardware Error]: event severity: fatal", Status.FAIL),
        ("{1}[Hardware Error]: event severity: corrected", Status.WARN),
        ("EDAC MC1: 1 UE memory read error on CPU_SrcID#1", Status.FAIL),
        ("EDAC MC1: 1 CE memory read error on CPU_SrcID#1", Status.WARN),
        ("EDAC MC1: 100 CE memory read error on CPU_SrcID#1", Status.FAIL),
        ("NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x24:0xffff:1220)", Status.FAIL),
        ("NVRM: The NVIDIA probe routine failed for 1 device(s).", Status.FAIL),
        ("NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.", Status.FAIL),
        ("NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost [NV_ERR_GPU_IS_LOST] @ gpu.c:1", Status.FAIL),
        ("NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out, Timeout", Status.FAIL),
        ("LustreError: 167-0: fsx-MDT0000-mdc: This client was evicted by fsx-MDT0000; in progress", Status.PASS),
        ("ena 0000:00:05.0 ens5: Keep alive watchdog timeout.", Status.WARN),
        ("NETDEV WATCHDOG: ens5 (ena): transmit queue 3 timed out", Status.WARN),
        ("ena 0000:00:05.0 ens5: NETDEV WATCHDOG: CPU: 9: transmit queue 3 timed out 5120 ms", Status.WARN),
        ("Aborting journal on device nvme2n1p1-8.", Status.FAIL),
        ("JBD2: I/O error when updating journal superblock for dm-0-8.", Status.FAIL),
        ("EXT4-fs (nvme2n1p1): I/O error while writing superblock", Status.FAIL),
        ("EXT4-fs (nvme2n1): error loading journal", Status.FAIL),
        ("EXT4-fs (nvme2n1): failed to convert unwritten extents to written extents -- potential data loss!", Status.FAIL),
        ("EXT4-fs (nvme2n1p1): mounted filesystem with ordered data mode. Opts: errors=remount-ro", Status.PASS),
        ("EXT4-fs (nvme2n1p1): recovery complete", Status.PASS),
        ("JBD2: no valid journal superblock found", Status.PASS),
        ("NVRM: API mismatch: the client has the version 580.95.05", Status.PASS),
        ("Lustre: fsx-OST0000-osc: Connection to fsx-OST0000 (at 10.0.0.4@tcp) was lost; in progress", Status.PASS),
        ("I/O error, dev fd0, sector 0 op 0x0:(READ)", Status.PASS),
        ("blk_update_request: I/O error, dev nvme2n1, sector 64 op 0x3:(DISCARD) flags 0x800 phys_seg 1", Status.PASS),
        ("I/O error, dev nvme2n1, sector 64 op 0x5:(SECURE_ERASE) flags 0x0 phys_seg 1", Status.PASS),
        ("I/O error, dev nvme2n1, sector 64 op 0x9:(WRITE_ZEROES) flags 0x0 phys_seg 0", Status.PASS),
        ("I/O error, dev nvme2n1, sector 64 op 0x1:(WRITE) flags 0x0 phys_seg 1", Status.FAIL),
        ("invalid opcode: 0000 [#1] SMP NOPTI", Status.FAIL),
        ("Kernel panic - not syncing: Fatal exception", Status.FAIL),
        ("Memory failure: 0x51c0de: recovery action for dirty LRU page: Recovered", Status.FAIL),
        ("[Hardware Error]: System Fatal error.", Status.FAIL),
        ("EDAC MC1: 0 CE memory read error on CPU_SrcID#1", Status.WARN),
        ("nvme nvme1: Disabling device after reset failure: -19", Status.FAIL),
        ("md/raid0:md0: Disk failure on nvme1n1 detected, failing array.", Status.FAIL),
        ("NVRM: installed in this system is not supported by open", Status.FAIL),
        ("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!", Status.FAIL),
        ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", Status.WARN),
        ("NVRM: imexRecover: Abrupt nvidia-imex daemon shutdown detected, robust channel recovery invoked!", Status.WARN),
        ("NVRM: GPU0 rpcRmApiControl_GSP: GspRmControl failed: status=0x00000056", Status.PASS),
        ("efa 0000:4f:00.0 rdmap79s0: The device didn't send any completion for admin cmd CREATE_QP(1)", Status.FAIL),
    ],
)  # fmt: skip
def test_each_kind(line, wanted):
    findings = judge(line)
    worst = status(findings)
    assert worst is (wanted if wanted is not Status.PASS else worst)
    assert worst in ((wanted,) if wanted is not Status.PASS else (Status.PASS, Status.INFO))


def test_healthy_boot_passes():
    facts = kernel.parse({"kernel.log": sample("kernel/healthy-p5-dmesg.log")})
    assert only(judge_facts("kernel_errors", {"kernel": facts}), Status.PASS)


def test_repeats_block():
    assert status(judge(LOCKUP, LOCKUP)) is Status.WARN
    finding = only(judge(*[LOCKUP] * 3), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (3, 3, Remedy.REBOOT)
    assert status(judge(*[LOCKUP] * 3, thresholds={"kernel_errors.soft_lockups": 4})) is Status.WARN
    assert status(judge(*[TIMEOUT] * 3)) is Status.FAIL
    assert status(judge(*[TIMEOUT.replace("nvme1", f"nvme{n}") for n in range(3)])) is Status.WARN


def test_the_disk_is_named_and_replaced():
    finding = only(judge("I/O error, dev nvme1n1, sector 2048 op 0x0:(READ)"), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"name": "nvme1n1"}, Remedy.REPLACE)


def test_a_gpu_that_started_after_all_only_warns():
    line = "NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x24:0xffff:1220)"
    assert only(judge(line, smi=GPU), Status.WARN).device["index"] == 0
    assert status(judge(line, smi={"gpus": []})) is Status.FAIL


@pytest.mark.parametrize(
    "line",
    ["NVRM: rm_init_adapter failed for device bearing minor number 3", "NVRM: The NVIDIA probe routine failed for 1 device(s)."],
)  # fmt: skip
def test_a_start_that_failed_on_no_named_gpu_only_warns_when_all_are_there(line):
    all_there = {"gpus": GPU["gpus"] * 8, "errors": []}
    assert status(judge(line, smi=all_there)) is Status.WARN
    assert status(judge(line, smi={**all_there, "gpus": GPU["gpus"] * 7})) is Status.FAIL
    assert status(judge(line, smi={**all_there, "errors": [{"text": "a GPU is lost"}]})) is Status.FAIL
    fatal = "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover."
    assert status(judge(fatal, smi=all_there)) is Status.FAIL


RESET = (
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from x"
)
LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)"
WISH = "NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
DONE = "NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


def smi_that_asks(action, count=8):
    return {"gpus": [{**GPU["gpus"][0], "recovery_action": action}] * count, "errors": []}


def test_a_gpu_that_refuses_to_work_until_it_is_reset():
    for line in (RESET, "NVRM: GPU0 rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1; status=0x00000062"):
        assert only(judge(line), Status.FAIL).remedy is Remedy.RESET_GPU
    assert status(judge(RESET, WISH)) is Status.FAIL
    assert status(judge(LOADED, RESET)) is Status.FAIL
    assert status(judge(WISH, DONE, RESET)) is Status.FAIL
    assert status(judge(RESET, WISH, DONE, WISH.replace(":53:", ":64:"))) is Status.FAIL
    assert status(judge(RESET, smi=smi_that_asks("Reset"))) is Status.FAIL
    assert status(judge(RESET, smi=smi_that_asks("None", 7))) is Status.FAIL
    assert status(judge(RESET, smi=smi_that_asks(None))) is Status.FAIL


def test_a_reset_since_then_leaves_a_warning():
    assert status(judge(RESET, LOADED)) is Status.WARN
    assert status(judge(WISH, RESET, DONE)) is Status.WARN
    assert status(judge(RESET, smi=smi_that_asks("None"))) is Status.WARN


def test_many_corrected_errors_without_a_count_of_the_hardware_block():
    line = "EDAC MC1: 0 CE memory read error on CPU_SrcID#1"
    assert status(judge(*[line] * 99)) is Status.WARN
    assert status(judge(*[line] * 100)) is Status.FAIL


def test_error_that_ended_the_boot_before_does_not_block():
    lines = ("BERT: Error records from previous boot:", "[Hardware Error]: event severity: fatal")
    assert status(judge(*lines)) is Status.WARN


def test_an_earlier_boot_does_not_count():
    assert (
        status(judge("EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "Linux version 6.8.0 (x)")) is Status.PASS
    )


def test_fixture_names_every_fault():
    facts = kernel.parse({"kernel.log": sample("kernel/host-trouble-rfc3339.log")})
    findings = judge_facts("kernel_errors", {"kernel": facts})
    assert sum(finding.status is Status.FAIL for finding in findings) == 7
    assert all(
        finding.evidence and finding.remedy is not Remedy.NONE for finding in findings if finding.status is Status.FAIL
    )


NOT_STARTED = "NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x24:0xffff:1220)"
CE = "EDAC MC1: 1 CE memory read error on CPU_SrcID#1"


@pytest.mark.parametrize("missing", ["uuid", "index"])
def test_a_gpu_that_nvidia_smi_lists_in_part_has_not_started(missing):
    smi = {"gpus": [{key: value for key, value in GPU["gpus"][0].items() if key != missing}]}
    assert status(judge(NOT_STARTED, smi=smi)) is Status.FAIL


def test_a_warning_stands_alone_and_a_note_stands_beside_the_pass():
    assert [finding.status for finding in judge(LOCKUP)] == [Status.WARN]
    mismatch = "NVRM: API mismatch: the client has the version 580.95.05"
    assert [finding.status for finding in judge(mismatch)] == [Status.INFO, Status.PASS]


NOT_BUILT = "nvidia: version magic '6.8.0-1029-aws SMP ' should be '6.8.0-1031-aws SMP '"
NO_EFA = "efa: probe of 0000:4f:00.0 failed with error -62"


def test_a_driver_built_for_another_kernel():
    finding = only(judge(NOT_BUILT), Status.FAIL)
    assert finding.remedy is Remedy.UPDATE_SOFTWARE
    assert status(judge(LOADED, NOT_BUILT)) is Status.FAIL
    assert status(judge(NOT_BUILT, LOADED)) is Status.WARN
    assert status(judge(NOT_BUILT, smi={"gpus": GPU["gpus"] * 8, "errors": []})) is Status.WARN
    assert status(judge(NOT_BUILT, smi={"gpus": GPU["gpus"] * 7, "errors": []})) is Status.FAIL


def test_an_efa_device_that_did_not_start():
    finding = only(judge(NO_EFA), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"pci": "0000:4f:00.0"}, Remedy.REBOOT)

    def with_devices(line, number):
        devices = {f"rdmap{n}s0": {} for n in range(number)}
        facts = {"kernel": parse(line), "efa_counters": {"devices": devices, "count": number}}
        return status(judge_facts("kernel_errors", facts))

    assert with_devices(NO_EFA, 31) is Status.FAIL
    assert with_devices(NO_EFA, 32) is Status.WARN
    assert with_devices("infiniband rdmap79s0: Admin queue is closed", 32) is Status.FAIL


def test_an_unsupported_gpu_is_named():
    lines = [
        "NVRM: The NVIDIA GPU 0000:53:00.0 (PCI ID: 10de:2901)",
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
    ]
    finding = only(judge(*lines), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"pci": "0000:53:00.0"}, Remedy.UPDATE_SOFTWARE)


def test_a_network_device_that_could_not_be_reset():
    finding = only(judge("ena 0000:00:05.0 ens5: Reset attempt failed. Can not reset the device"), Status.FAIL)
    assert finding.device == {"pci": "0000:00:05.0"}


def test_a_storm_keeps_its_number():
    assert only(judge(*[CE] * 3000), Status.FAIL).measured == 3000
    mixed = judge(*[CE.replace("CE", "UE")] * 3000, CE)
    assert (only(mixed, Status.FAIL).measured, only(mixed, Status.WARN).measured) == (3000, 1)
    findings = judge(*[TIMEOUT] * 3000, TIMEOUT.replace("nvme1", "nvme2"))
    assert only(findings, Status.FAIL).device == {"name": "nvme1"}
    assert only(findings, Status.WARN).measured == 1


def test_the_window_is_off_until_a_site_sets_one():
    lines = [LOCKUP, *["usb 1-1: new device"] * 401]  # 9 s apart: an hour and more
    assert status(judge(*lines)) is Status.WARN
    assert status(judge(*lines, thresholds={"kernel_errors.window_hours": 1})) is Status.PASS


def test_what_a_storm_before_the_window_left_out_is_not_counted_in_it():
    day = ["usb 1-1: new device"] * 401
    window = {"kernel_errors.window_hours": 1}
    assert only(judge(*[CE] * 3000, *day, CE, thresholds=window), Status.WARN).measured == 1
    assert only(judge(*day, *[CE] * 300, thresholds={"kernel_errors.window_hours": 24}), Status.FAIL).measured == 300


HUNG = "INFO: task python:4242 blocked for more than 122 seconds."
COMPLETED = "ena 0000:00:05.0: Device reset completed successfully, Driver info: x"


def test_a_long_lockup_and_a_long_wait_block_alone():
    finding = only(judge(LOCKUP.replace("26s", "226906s")), Status.FAIL)
    assert "226906 s" in finding.message
    assert status(judge(LOCKUP.replace("26s", "59s"))) is Status.WARN
    assert status(judge(HUNG.replace("122", "614"))) is Status.FAIL
    assert status(judge(HUNG.replace("122", "599"))) is Status.WARN


def test_repetition_blocks():
    assert status(judge(*[HUNG] * 19)) is Status.WARN
    assert status(judge(*[HUNG] * 50)) is Status.FAIL
    assert only(judge(*[COMPLETED] * 500), Status.FAIL).measured == 500
    assert status(judge(*[COMPLETED] * 19)) is Status.WARN
    stall = "rcu: INFO: rcu_sched self-detected stall on CPU"
    assert (status(judge(*[stall] * 4)), status(judge(*[stall] * 5))) == (Status.WARN, Status.FAIL)


def test_a_reset_counts_once_though_it_has_two_lines():
    cause = "ena 0000:00:05.0 ens5: Keep alive watchdog timeout."
    assert only(judge(*[cause, COMPLETED] * 3), Status.WARN).measured == 3


@pytest.mark.parametrize(
    ("line", "wanted", "remedy"),
    [
        ("mlx5_core 0000:05:00.0: poll_health:813:(pid 0): device's health compromised - reached miss count", Status.FAIL, Remedy.REBOOT),
        ("mlx5_core 0000:05:00.0: synd 0x8: unrecoverable hardware error", Status.FAIL, Remedy.REBOOT),
        ("mlx5_core 0000:05:00.0 enp5s0np0: TX timeout detected", Status.WARN, Remedy.INVESTIGATE),
        ("EXT4-fs warning (device nvme1n1): ext4_end_bio:343: I/O error 10 writing to inode 12 starting block 3)", Status.FAIL, Remedy.REPLACE),
        ("python3: attempt to access beyond end of device", Status.FAIL, Remedy.REPLACE),
        ("infiniband rdmap79s0: Failed to process command CREATE_QP (opcode 6) comp_status 1 err -22", Status.WARN, Remedy.INVESTIGATE),
        ("VFS: file-max limit 9223372 reached", Status.WARN, Remedy.FIX_CONFIG),
        ("python3[4]: segfault at 8 ip 00007f12 sp 00007ffc error 4 in libnccl.so.2[7f12+4]", Status.WARN, Remedy.INVESTIGATE),
        ("WARNING: CPU: 3 PID: 4 at drivers/infiniband/hw/efa/efa_verbs.c:1 efa_destroy_cq+0x6/0x8 [efa]", Status.WARN, Remedy.INVESTIGATE),
        ("Out of memory: Kill process 812 (python) score 900 or sacrifice child", Status.WARN, Remedy.INVESTIGATE),
        ("pcieport 0000:50:01.0: pciehp: Slot(12): Link Down", Status.FAIL, Remedy.REBOOT),
        ("efa: disagrees about version of symbol ib_register_device", Status.FAIL, Remedy.UPDATE_SOFTWARE),
        ("Loading of unsigned module is rejected", Status.FAIL, Remedy.UPDATE_SOFTWARE),
        ("NVRM: GPU0 _kgspClassifyGspTimeout: ================ GSP core unresponsive ===============", Status.FAIL, Remedy.RESET_GPU),
    ],
)  # fmt: skip
def test_lines_of_other_drivers(line, wanted, remedy):
    assert only(judge(line), wanted).remedy is remedy


def test_a_slot_that_has_its_device_again_only_warns():
    down, up = "pcieport 0000:50:01.0: pciehp: Slot(12): Link Down", "pcieport 0000:50:01.0: pciehp: Slot(12): Link Up"
    assert status(judge(down, up)) is Status.WARN
    assert status(judge(up, down)) is Status.FAIL
    assert status(judge(down, up.replace("(12)", "(13)"))) is Status.FAIL
    assert status(judge(up)) is Status.PASS


def test_an_mlx5_device_that_was_mended_only_warns():
    dead = "mlx5_core 0000:05:00.0: poll_health:813:(pid 0): device's health compromised - reached miss count"
    mended = "mlx5_core 0000:05:00.0: mlx5_health_try_recover:338:(pid 7): health recovery succeeded"
    assert status(judge(dead, mended)) is Status.WARN
    assert status(judge(mended, dead)) is Status.FAIL
    assert status(judge(dead, mended.replace(":05:", ":06:"))) is Status.FAIL


def test_a_loop_device_that_is_too_short_is_no_disk():
    assert status(judge("udevd: attempt to access beyond end of device", "loop3: rw=0, want=8, limit=4")) is Status.PASS
    assert only(
        judge("python: attempt to access beyond end of device", "nvme1n1: rw=0, want=8, limit=4"), Status.FAIL
    ).device == {"name": "nvme1n1"}


def test_a_refused_module_only_warns_where_all_devices_are_there():
    line, smi = "Loading of unsigned module is rejected", {"gpus": [{"index": n} for n in range(8)]}
    devices = {"devices": {f"rdmap{n}s0": {} for n in range(32)}}
    facts = {"kernel": parse(line), "nvidia_smi": smi, "efa_counters": devices}
    assert status(judge_facts("kernel_errors", facts)) is Status.WARN
    assert status(judge_facts("kernel_errors", {**facts, "nvidia_smi": {"gpus": smi["gpus"][1:]}})) is Status.FAIL


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("EXT4-fs error (device nvme1n1): ext4_find_entry:1: x", Status.UNKNOWN),
        (LOCKUP, Status.WARN),
        (LOCKUP.replace("26s", "900s"), Status.UNKNOWN),
        ("NVRM: API mismatch: the client has the version 580.95.05", Status.PASS),
    ],
)
def test_a_line_behind_an_unreadable_head(line, wanted):
    log = f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n"
    found = status(judge_facts("kernel_errors", {"kernel": kernel.parse({"kernel.log": log.encode()})}))
    assert found is wanted


def test_a_slot_whose_device_nobody_misses_only_warns():
    down, smi = "pcieport 0000:50:01.0: pciehp: Slot(12): Link Down", {"gpus": [{"index": n} for n in range(8)]}
    facts = {
        "kernel": parse(down),
        "nvidia_smi": smi,
        "efa_counters": {"devices": {f"rdmap{n}": {} for n in range(32)}},
    }
    assert status(judge_facts("kernel_errors", facts)) is Status.WARN
    assert status(judge_facts("kernel_errors", {**facts, "efa_counters": {"devices": {}}})) is Status.FAIL
    assert status(judge(down.replace("Link Down", "Card not present"))) is Status.WARN
