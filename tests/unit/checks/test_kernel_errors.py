"""kernel_errors: what blocks, what warns, and the lines of healthy nodes that look like trouble."""

import pytest

from flightline_node.model import Remedy
from flightline_node.read.parsers import kernel
from tests.harness import only, sample, status

from .table import FAIL, INFO, PASS, UNKNOWN, WARN, judging, row, table

GPU = {"gpus": [{"index": 0, "uuid": "GPU-0", "pci_bus_id": "00000000:53:00.0"}]}
LOCKUP = "watchdog: BUG: soft lockup - CPU#17 stuck for 26s! [python:4242]"
TIMEOUT = "nvme nvme1: I/O 12 QID 5 timeout, aborting"


def parse(*lines):
    return kernel.parse({"kernel.log": "".join(f"[{9.0 * n:12.6f}] {x}\n" for n, x in enumerate(lines, 1)).encode()})


def judge(*lines, smi=None, **rest):
    return judging("kernel_errors", {"kernel": parse(*lines), **({"nvidia_smi": smi} if smi else {})}, **rest)


RESET = (
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from x"
)
MISMATCH = "NVRM: API mismatch: the client has the version 580.95.05"
UNLOADED = "nvidia-nvlink: Unregistered Nvlink Core, major device number 509"
TASK = "task:python3         state:D stack:    0 pid:15277 ppid: 15257 flags:0x00000002"
LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)"
WISH = "NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
DONE = "NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


def smi_that_asks(action, count=8):
    return {"gpus": [{**GPU["gpus"][0], "recovery_action": action}] * count, "errors": []}


NOT_STARTED = "NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x24:0xffff:1220)"
CE = "EDAC MC1: 1 CE memory read error on CPU_SrcID#1"
NOT_BUILT = "nvidia: version magic '6.8.0-1029-aws SMP ' should be '6.8.0-1031-aws SMP '"
NO_EFA = "efa: probe of 0000:4f:00.0 failed with error -62"
IN_NVIDIA = " nvidia_ioctl+0x1/0x2 [nvidia]"
HUNG = "INFO: task python:4242 blocked for more than 122 seconds."
COMPLETED = "ena 0000:00:05.0: Device reset completed successfully, Driver info: x"
DOWN = "pcieport 0000:50:01.0: pciehp: Slot(12): Link Down"
UP = "pcieport 0000:50:01.0: pciehp: Slot(12): Link Up"
DEAD = "mlx5_core 0000:05:00.0: poll_health:813:(pid 0): device's health compromised - reached miss count"
MENDED = "mlx5_core 0000:05:00.0: mlx5_health_try_recover:338:(pid 7): health recovery succeeded"
SMI = {"gpus": [{"index": n} for n in range(8)]}


test_kernel_errors = table(
    row("healthy boot passes",
        judging("kernel_errors", {"kernel": kernel.parse({"kernel.log": sample("kernel/healthy-p5-dmesg.log")})}),
        PASS, count=1),
    row("repeats block", judge(LOCKUP, LOCKUP), FAIL, measured=2, reason="stands.soft_lockup"),
    row("repeats block", judge(*[LOCKUP] * 3), FAIL, measured=3, expected=3, remedy=Remedy.REBOOT),
    row("repeats block", judge(*[LOCKUP] * 3, thresholds={"kernel_errors.soft_lockups": 4}), FAIL,
        reason="stands.soft_lockup"),
    row("repeats block", judge(*[TIMEOUT] * 3), FAIL),
    row("repeats block", judge(*[TIMEOUT.replace("nvme1", f"nvme{n}") for n in range(3)]), FAIL, count=3),
    row("the disk is named and replaced", judge("I/O error, dev nvme1n1, sector 2048 op 0x0:(READ)"), FAIL,
        device={"name": "nvme1n1"}, remedy=Remedy.REPLACE),
    *(each for line in ["NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x24:0xffff:1220)"] for each in (
        row("a GPU that started after all only warns", judge(line, smi=GPU), WARN, index=0),
        row("a GPU that started after all only warns", judge(line, smi={"gpus": []}), FAIL),
    )),
    *(row("a GPU that refuses to work until it is reset", judge(line), FAIL, remedy=Remedy.RESET_GPU)
        for line in (RESET, "NVRM: GPU0 rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1; status=0x00000062")),
    row("a GPU that refuses to work until it is reset",
        [judge(RESET, WISH), judge(LOADED, RESET), judge(WISH, DONE, RESET),
        judge(RESET, WISH, DONE, WISH.replace(":53:", ":64:")), judge(RESET, smi=smi_that_asks("Reset")),
        judge(RESET, smi=smi_that_asks("None", 7)), judge(RESET, smi=smi_that_asks(None))], FAIL),
    row("a reset since then leaves a warning",
        [judge(RESET, LOADED), judge(WISH, RESET, DONE), judge(RESET, smi=smi_that_asks("None"))], WARN),
    *(each for line in ["EDAC MC1: 0 CE memory read error on CPU_SrcID#1"] for each in (
        row("many corrected errors without a count of the hardware block", judge(*[line] * 2), WARN),
        row("many corrected errors without a count of the hardware block", judge(*[line] * 99), FAIL, reason="stands.edac_ce"),
        row("many corrected errors without a count of the hardware block", judge(*[line] * 100), FAIL,
            reason="event.edac_ce"),
    )),
    row("error that ended the boot before does not block",
        judge(*("BERT: Error records from previous boot:", "[Hardware Error]: event severity: fatal")), WARN),
    row("several machines are named", judging("kernel_errors", {"kernel": {**parse("x"), "machines": ["a", "b"]}}),
        UNKNOWN, reason="several_machines", says="machines: a, b;"),
    row("lines out of order tell no boot from another",
        judging("kernel_errors", {"kernel": {**parse("x"), "disorder": True}}), UNKNOWN, reason="out_of_order"),
    row("an earlier boot does not count",
        judge("EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "Linux version 6.8.0 (x)"), PASS),
    *(row("a GPU that nvidia-smi lists in part has not started",
        judge(NOT_STARTED, smi={"gpus": [{key: value for key, value in GPU["gpus"][0].items() if key != missing}]}),
        FAIL)
        for missing in ["uuid", "index"]),
    row("a warning stands alone", judge(CE), WARN, statuses=(WARN,)),
    row("libraries of another version than the driver", judge(MISMATCH), FAIL, reason="stands.nvidia_driver_api_mismatch"),
    row("a container's libraries alone", judge(MISMATCH, smi={"gpus": GPU["gpus"] * 8, "errors": []}), WARN),
    row("a driver that left the kernel", judge(LOADED, UNLOADED), FAIL, remedy=Remedy.REBOOT),
    row("a driver that was loaded again", judge(UNLOADED, LOADED), PASS),
    row("a task's state alone", judge(TASK), PASS),
    row("a task that sleeps in a driver", judge(TASK, "uvm_ioctl+0x13e0/0x16f0 [nvidia_uvm]"), FAIL),
    row("the end of an oops", judge("CR2: 00000000000152ba"), FAIL),
    row("a slot as Linux 4 names it", judge("pciehp 0000:02:05.0:pcie24: slot(6): Link Down event"), FAIL),
    row("a driver built for another kernel", judge(NOT_BUILT), FAIL, remedy=Remedy.UPDATE_SOFTWARE),
    row("a driver built for another kernel", judge(LOADED, NOT_BUILT), FAIL),
    row("a driver built for another kernel",
        [judge(NOT_BUILT, LOADED), judge(NOT_BUILT, smi={"gpus": GPU["gpus"] * 8, "errors": []})], WARN),
    row("a driver built for another kernel", judge(NOT_BUILT, smi={"gpus": GPU["gpus"] * 7, "errors": []}), FAIL),
    row("an unsupported GPU is named",
        judge(*["NVRM: The NVIDIA GPU 0000:53:00.0 (PCI ID: 10de:2901)",
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules."]), FAIL,
        device={"pci": "0000:53:00.0"}, remedy=Remedy.UPDATE_SOFTWARE),
    row("a network device that could not be reset",
        judge("ena 0000:00:05.0 ens5: Reset attempt failed. Can not reset the device"), FAIL,
        device={"pci": "0000:00:05.0"}),
    *(each for failed in ["ena 0000:00:05.0 ens5: Device reset failed"] for each in (
        row("a network device that could not be reset", judge(failed), FAIL, device={"pci": "0000:00:05.0"}),
        row("a network device that could not be reset", judge(failed, COMPLETED), WARN),
        row("a network device that could not be reset", judge(COMPLETED, failed), FAIL),
    )),
    *(row("an EFA device whose command queue stopped", judge(line), FAIL, remedy=Remedy.REBOOT,
        reason="event.efa_admin_admin")
        for line in ("efa 0000:00:1d.0: admin queue state not running",
            "efa 0000:00:1d.0: EFA admin queue is not in running state!",
            "infiniband rdmap16s27: Admin queue state is not running", "infiniband efa_0: reset state, FATAL error")),
    row("a stall names the driver under it", judge(LOCKUP, IN_NVIDIA), FAIL, device={"name": "nvidia"},
        reason="event.soft_lockup_nvidia", says="CPU locked up in the nvidia driver"),
    row("a stall names the driver under it", judge(HUNG, IN_NVIDIA.replace("nvidia", "lustre")), FAIL,
        reason="stands.hung_task_lustre", remedy=Remedy.INVESTIGATE),
    row("a stall names the driver under it", judge(HUNG, IN_NVIDIA.replace("nvidia", "nvme")), FAIL,
        reason="event.hung_task_nvme", remedy=Remedy.REBOOT),
    row("a stall names the driver under it", judge(HUNG, "<cut>"), FAIL, reason="stands.hung_task", device={}),
    row("stalls in several places are counted together", judge(LOCKUP, LOCKUP, *[LOCKUP, IN_NVIDIA]), FAIL, count=2),
    row("a storm keeps its number", judge(*[CE] * 3000), FAIL, measured=3000),
    row("a storm keeps its number", judge(*[CE.replace("CE", "UE")] * 3000, CE), FAIL, measured=3000).also(WARN,
        measured=1),
    row("a storm keeps its number", judge(*[TIMEOUT] * 3000, CE), FAIL, device={"name": "nvme1"}).also(WARN,
        measured=1),
    # 9 s apart: an hour and more
    row("the window is off until a site sets one", judge(*[LOCKUP, *["usb 1-1: new device"] * 401]), FAIL),
    row("the window is off until a site sets one",
        judge(*[LOCKUP, *["usb 1-1: new device"] * 401], thresholds={"kernel_errors.window_hours": 1}), PASS),
    row("what a storm before the window left out is not counted in it",
        judge(*[CE] * 3000, *(["usb 1-1: new device"] * 401), CE, thresholds={"kernel_errors.window_hours": 1}), WARN,
        measured=1),
    row("what a storm before the window left out is not counted in it",
        judge(*(["usb 1-1: new device"] * 401), *[CE] * 300, thresholds={"kernel_errors.window_hours": 24}), FAIL,
        measured=300),
    row("a long lockup and a long wait block alone", judge(LOCKUP.replace("26s", "226906s")), FAIL, says="226906 s"),
    row("a long lockup and a long wait block alone", judge(LOCKUP.replace("26s", "59s")), FAIL, reason="stands.soft_lockup"),
    row("a long lockup and a long wait block alone", judge(HUNG.replace("122", "614")), FAIL),
    row("a long lockup and a long wait block alone", judge(HUNG.replace("122", "599")), FAIL, reason="stands.hung_task"),
    row("a reset counts once though it has two lines",
        judge(*["ena 0000:00:05.0 ens5: Keep alive watchdog timeout.", COMPLETED] * 3), WARN, measured=3),
    *(row("lines of other drivers", judge(line), wanted, remedy=remedy)
        for line, wanted, remedy in [
            ("mlx5_core 0000:05:00.0: poll_health:813:(pid 0): device's health compromised - reached miss count", FAIL,
                Remedy.REBOOT),
            ("mlx5_core 0000:05:00.0: synd 0x8: unrecoverable hardware error", FAIL, Remedy.REBOOT),
            ("mlx5_core 0000:05:00.0 enp5s0np0: TX timeout detected", FAIL, Remedy.INVESTIGATE),
            ("EXT4-fs warning (device nvme1n1): ext4_end_bio:343: I/O error 10 writing to inode 12 starting block 3)",
                FAIL, Remedy.REPLACE),
            ("python3: attempt to access beyond end of device", FAIL, Remedy.REPLACE),
            ("infiniband rdmap79s0: Failed to process command CREATE_QP (opcode 6) comp_status 1 err -22", WARN,
                Remedy.INVESTIGATE),
            ("VFS: file-max limit 9223372 reached", WARN, Remedy.FIX_CONFIG),
            ("python3[4]: segfault at 8 ip 00007f12 sp 00007ffc error 4 in libnccl.so.2[7f12+4]", WARN,
                Remedy.INVESTIGATE),
            ("WARNING: CPU: 3 PID: 4 at drivers/infiniband/hw/efa/efa_verbs.c:1 efa_destroy_cq+0x6/0x8 [efa]", FAIL,
                Remedy.INVESTIGATE),
            ("Out of memory: Kill process 812 (python) score 900 or sacrifice child", WARN, Remedy.INVESTIGATE),
            ("pcieport 0000:50:01.0: pciehp: Slot(12): Link Down", FAIL, Remedy.REBOOT),
            ("efa: disagrees about version of symbol ib_register_device", FAIL, Remedy.UPDATE_SOFTWARE),
            ("Loading of unsigned module is rejected", FAIL, Remedy.UPDATE_SOFTWARE),
            ("NVRM: GPU0 _kgspClassifyGspTimeout: ================ GSP core unresponsive ===============", FAIL,
                Remedy.RESET_GPU),
        ]),
    row("a slot that has its device again only warns", judge(DOWN, UP), WARN),
    row("a slot that has its device again only warns", [judge(UP, DOWN), judge(DOWN, UP.replace("(12)", "(13)"))],
        FAIL),
    row("a slot that has its device again only warns", judge(UP), PASS),
    row("an mlx5 device that was mended only warns", judge(DEAD, MENDED), WARN),
    row("an mlx5 device that was mended only warns", [judge(MENDED, DEAD), judge(DEAD, MENDED.replace(":05:", ":06:"))],
        FAIL),
    row("a loop device that is too short is no disk",
        judge("udevd: attempt to access beyond end of device", "loop3: rw=0, want=8, limit=4"), PASS),
    row("a loop device that is too short is no disk",
        judge("python: attempt to access beyond end of device", "nvme1n1: rw=0, want=8, limit=4"), FAIL,
        device={"name": "nvme1n1"}),
    *(each
        for facts in [
            {"kernel": parse("Loading of unsigned module is rejected"), "nvidia_smi": SMI,
                "efa_counters": {"devices": {f"rdmap{n}s0": {} for n in range(32)}}},
        ]
        for each in (
        row("a refused module only warns where all devices are there", judging("kernel_errors", facts), WARN),
        row("a refused module only warns where all devices are there",
            judging("kernel_errors", {**facts, "nvidia_smi": {"gpus": SMI["gpus"][1:]}}), FAIL),
    )),
    *(each
        for down in ["pcieport 0000:50:01.0: pciehp: Slot(12): Link Down"]
        for facts in [
            {"kernel": parse(down), "nvidia_smi": {"gpus": [{"index": n} for n in range(8)]},
                "efa_counters": {"devices": {f"rdmap{n}": {} for n in range(32)}}},
        ]
        for each in (
        row("a slot whose device nobody misses only warns", judging("kernel_errors", facts), WARN),
        row("a slot whose device nobody misses only warns",
            judging("kernel_errors", {**facts, "efa_counters": {"devices": {}}}), FAIL),
        row("a slot whose device nobody misses only warns", judge(down.replace("Link Down", "Card not present")), WARN),
    )),
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("Out of memory: Killed process 4242 (python) total-vm:1kB", WARN),
        ("Memory cgroup out of memory: Killed process 4242 (python) total-vm:1kB", WARN),
        (LOCKUP, FAIL),
        ("watchdog: Watchdog detected hard LOCKUP on cpu 17", FAIL),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", FAIL),
        ("INFO: task python:4242 blocked for more than 120 seconds.", FAIL),
        ("BUG: unable to handle page fault for address: ffff", FAIL),
        ("BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 31s!", FAIL),
        (TIMEOUT, FAIL),
        ("nvme nvme1: I/O 12 QID 5 timeout, completion polled", WARN),
        ("nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", FAIL),
        ("blk_update_request: I/O error, dev nvme1n1, sector 2048 op 0x0:(READ)", FAIL),
        ("critical medium error, dev nvme1n1, sector 2048 op 0x0:(READ)", FAIL),
        ("Buffer I/O error on dev dm-0, logical block 0, lost async page write", FAIL),
        ("XFS (nvme1n1): log I/O error -5", FAIL),
        ("XFS (nvme1n1): Corruption of in-memory data detected.  Shutting down filesystem", FAIL),
        ("XFS (nvme2n1): writeback error on inode 4711, offset 0, sector 8192", FAIL),
        ("XFS (nvme2n1): Failing async write on buffer block 0x2a40. Retrying async write.", FAIL),
        ("EXT4-fs (nvme0n1p1): Remounting filesystem read-only", FAIL),
        ("mce: [Hardware Error]: Machine check events logged", WARN),
        ("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 0: b200000000000005", FAIL),
        ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 8: 8c00004000010090", WARN),
        ("{1}[Hardware Error]: event severity: fatal", FAIL),
        ("{1}[Hardware Error]: event severity: corrected", WARN),
        ("EDAC MC1: 1 UE memory read error on CPU_SrcID#1", FAIL),
        ("EDAC MC1: 1 CE memory read error on CPU_SrcID#1", WARN),
        ("EDAC MC1: 100 CE memory read error on CPU_SrcID#1", FAIL),
        ("NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x24:0xffff:1220)", FAIL),
        ("NVRM: The NVIDIA probe routine failed for 1 device(s).", FAIL),
        ("NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.", FAIL),
        ("NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost [NV_ERR_GPU_IS_LOST] @ gpu.c:1", FAIL),
        ("NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out, Timeout", FAIL),
        ("LustreError: 167-0: fsx-MDT0000-mdc: This client was evicted by fsx-MDT0000; in progress", PASS),
        ("ena 0000:00:05.0 ens5: Keep alive watchdog timeout.", FAIL),
        ("NETDEV WATCHDOG: ens5 (ena): transmit queue 3 timed out", FAIL),
        ("ena 0000:00:05.0 ens5: NETDEV WATCHDOG: CPU: 9: transmit queue 3 timed out 5120 ms", FAIL),
        ("Aborting journal on device nvme2n1p1-8.", FAIL),
        ("JBD2: I/O error when updating journal superblock for dm-0-8.", FAIL),
        ("EXT4-fs (nvme2n1p1): I/O error while writing superblock", FAIL),
        ("EXT4-fs (nvme2n1): error loading journal", FAIL),
        ("EXT4-fs (nvme2n1): failed to convert unwritten extents to written extents -- potential data loss!", FAIL),
        ("EXT4-fs (nvme2n1p1): mounted filesystem with ordered data mode. Opts: errors=remount-ro", PASS),
        ("EXT4-fs (nvme2n1p1): recovery complete", PASS),
        ("JBD2: no valid journal superblock found", PASS),
        (MISMATCH, FAIL),
        ("Lustre: fsx-OST0000-osc: Connection to fsx-OST0000 (at 10.0.0.4@tcp) was lost; in progress", PASS),
        ("I/O error, dev fd0, sector 0 op 0x0:(READ)", PASS),
        ("blk_update_request: I/O error, dev nvme2n1, sector 64 op 0x3:(DISCARD) flags 0x800 phys_seg 1", PASS),
        ("I/O error, dev nvme2n1, sector 64 op 0x5:(SECURE_ERASE) flags 0x0 phys_seg 1", PASS),
        ("I/O error, dev nvme2n1, sector 64 op 0x9:(WRITE_ZEROES) flags 0x0 phys_seg 0", PASS),
        ("I/O error, dev nvme2n1, sector 64 op 0x1:(WRITE) flags 0x0 phys_seg 1", FAIL),
        ("invalid opcode: 0000 [#1] SMP NOPTI", FAIL),
        ("Kernel panic - not syncing: Fatal exception", FAIL),
        ("Memory failure: 0x51c0de: recovery action for dirty LRU page: Recovered", FAIL),
        ("[Hardware Error]: System Fatal error.", FAIL),
        ("EDAC MC1: 0 CE memory read error on CPU_SrcID#1", WARN),
        ("nvme nvme1: Disabling device after reset failure: -19", FAIL),
        ("md/raid0:md0: Disk failure on nvme1n1 detected, failing array.", FAIL),
        ("NVRM: installed in this system is not supported by open", FAIL),
        ("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!", FAIL),
        ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", FAIL),
        ("NVRM: imexRecover: Abrupt nvidia-imex daemon shutdown detected, robust channel recovery invoked!", FAIL),
        ("NVRM: GPU0 rpcRmApiControl_GSP: GspRmControl failed: status=0x00000056", PASS),
        ("efa 0000:4f:00.0 rdmap79s0: The device didn't send any completion for admin cmd CREATE_QP(1)", FAIL),
    ],
)  # fmt: skip
def test_each_kind(line, wanted):
    findings = judge(line)
    worst = status(findings)
    assert worst is (wanted if wanted is not PASS else worst)
    assert worst in ((wanted,) if wanted is not PASS else (PASS, INFO))


@pytest.mark.parametrize(
    "line",
    ["NVRM: rm_init_adapter failed for device bearing minor number 3", "NVRM: The NVIDIA probe routine failed for 1 device(s)."],
)  # fmt: skip
def test_a_start_that_failed_on_no_named_gpu_only_warns_when_all_are_there(line):
    all_there = {"gpus": GPU["gpus"] * 8, "errors": []}
    assert status(judge(line, smi=all_there)) is WARN
    assert status(judge(line, smi={**all_there, "gpus": GPU["gpus"] * 7})) is FAIL
    assert status(judge(line, smi={**all_there, "errors": [{"text": "a GPU is lost"}]})) is FAIL
    fatal = "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover."
    assert status(judge(fatal, smi=all_there)) is FAIL


def test_fixture_names_every_fault():
    facts = kernel.parse({"kernel.log": sample("kernel/host-trouble-rfc3339.log")})
    findings = judging("kernel_errors", {"kernel": facts})
    assert sum(finding.status is FAIL for finding in findings) == 13
    assert all(finding.evidence and finding.remedy is not Remedy.NONE for finding in findings if finding.status is FAIL)


def test_an_efa_device_that_did_not_start():
    finding = only(judge(NO_EFA), FAIL)
    assert (finding.device, finding.remedy) == ({"pci": "0000:4f:00.0"}, Remedy.REBOOT)

    def with_devices(line, number):
        devices = {f"rdmap{n}s0": {} for n in range(number)}
        facts = {"kernel": parse(line), "efa_counters": {"devices": devices, "count": number}}
        return status(judging("kernel_errors", facts))

    assert with_devices(NO_EFA, 31) is FAIL
    assert with_devices(NO_EFA, 32) is WARN
    assert with_devices("infiniband rdmap79s0: Admin queue is closed", 32) is FAIL


def test_repetition_blocks():
    assert only(judge(*[HUNG] * 19), FAIL).reason == "stands.hung_task"
    assert only(judge(*[HUNG] * 50), FAIL).reason == "event.hung_task"
    assert only(judge(*[COMPLETED] * 500), FAIL).measured == 500
    assert status(judge(*[COMPLETED] * 19)) is WARN
    stall = "rcu: INFO: rcu_sched self-detected stall on CPU"
    assert [only(judge(*[stall] * n), FAIL).reason for n in (4, 5)] == ["stands.rcu_stall", "event.rcu_stall"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("EXT4-fs error (device nvme1n1): ext4_find_entry:1: x", UNKNOWN),
        (LOCKUP, UNKNOWN),
        (LOCKUP.replace("26s", "900s"), UNKNOWN),
        (MISMATCH, UNKNOWN),
    ],
)
def test_a_line_behind_an_unreadable_head(line, wanted):
    log = f"[ 1.0] ok\n2026-03-29 19:20:37 ERROR {line}\n"
    found = status(judging("kernel_errors", {"kernel": kernel.parse({"kernel.log": log.encode()})}))
    assert found is wanted


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["ena 0000:00:05.0 ens5: Keep alive watchdog timeout.", COMPLETED], WARN),
        ([COMPLETED, "ena 0000:00:05.0 ens5: Keep alive watchdog timeout."], FAIL),
        (["ena 0000:00:05.0 ens5: wd_expired: 3", COMPLETED], WARN),
        (["ena0: ENA admin queue is not in running state!"], FAIL),
        (["nfs: server head not responding, timed out"], FAIL),
        (["nfs: server head not responding, still trying", "nfs: server head OK"], WARN),
        (["nfs: server head not responding, still trying", "nfs: server other OK"], FAIL),
        (["CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 1)"], PASS),
        (["mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 41207)"], FAIL),
        (["{1}[Hardware Error]: event severity: corrected"] * 3, WARN),
        (["{214}[Hardware Error]: event severity: corrected"], FAIL),
        (["mlx5_core 0000:05:00.0: mlx5_pcie_event:301:(pid 7): Detected insufficient power on the PCIe slot (27W)."], WARN),
        (["ACCESS_REG(0x805) timeout. Will cause a leak of a command resource"], FAIL),
        (["NVRM: GPU0 kgmmuInvalidateTlb_GH100: TLB invalidation failed (status=0x0000000f), scope 0x2"], FAIL),
    ],
)  # fmt: skip
def test_a_preflight_refuses_what_no_line_shows_to_be_over(lines, wanted):
    assert status(judge(*lines)) is wanted


def test_stalls_in_several_places_say_how_many_there_are_in_all():
    found = judge(*[LOCKUP, IN_NVIDIA] * 2, LOCKUP)
    assert [(one.reason, one.measured, ", 3 in all" in one.message) for one in found] == [
        ("event.soft_lockup_nvidia", 3, True),
        ("event.soft_lockup", 3, True),
    ]
