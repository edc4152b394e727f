"""Single outputs that people bring, of a machine whose type is not known: each judged alone by its own words.

Lines written by hand after the formats that know/catalog/job_faults.py and the parsers name.
"""

from datetime import datetime, timezone

import pytest

from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.model import Remedy, Status, Verdict
from flightline_node.read.bundle import load
from flightline_node.settings import build

LOG, SMI, DIAG = "nccl-debug.log", "nvidia-smi.txt", "dcgm-diag.txt"
AT_WORK = "epoch 1 step 10 loss 2.3\n"
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
HEADS = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"


def table(times):
    rows = (f"{1024 << at} {256 << at} float sum -1 {us} 1.0 1.9 0 {us} 1.0 1.9 0\n" for at, us in enumerate(times))
    return HEADS + "".join(rows)


def judged(directory, file, text):
    (directory / file).write_text(text)
    return judge(load(directory), resolve("none", {}), build(), datetime.now(timezone.utc), required=False)


FAULTY = [
    (LOG, AT_WORK + "RuntimeError: CUDA error: uncorrectable ECC error encountered\n", Remedy.RESET_GPU),
    (LOG, AT_WORK + "RuntimeError: No CUDA GPUs are available\n", Remedy.REBOOT),
    (LOG, "UserWarning: CUDA initialization: Error 802: system not yet initialized\n", Remedy.FIX_CONFIG),
    (LOG, "bash: nvidia-smi: command not found\n", Remedy.UPDATE_SOFTWARE),
    (LOG, AT_WORK + "NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n", Remedy.REBOOT),
    (LOG, AT_WORK + "OSError: [Errno 116] Stale file handle\n", Remedy.INVESTIGATE),
    (LOG, "a:1:2 [0] NCCL WARN Net : Connect to 10.0.0.1<4455> failed : No route to host\n", Remedy.INVESTIGATE),
    (LOG, "ib_mlx5_log.c:171 Transport retry count exceeded on mlx5_0:1/IB (synd 0x15)\n", Remedy.INVESTIGATE),
    (LOG, "RuntimeError: NCCL error in: x.cpp:1191, unhandled system error, NCCL version 2.14.3\n", Remedy.INVESTIGATE),
    (LOG, "*** STEP 12.0 ON node-3 CANCELLED AT 2025-01-01T00:00:00 DUE TO NODE FAILURE ***\n", Remedy.INVESTIGATE),
    (LOG, "ORTE has lost communication with a remote daemon.\n", Remedy.INVESTIGATE),
    (LOG, AT_WORK + "PMIX ERROR: PMIX_ERR_UNREACH in file ptl_tcp.c at line 9\n", Remedy.INVESTIGATE),
    (LOG, "root@node-4: Permission denied (publickey,password).\nmpirun was unable to start\n", Remedy.INVESTIGATE),
    (LOG, "libibverbs: Warning: Driver xx_re does not support the kernel ABI of 4 (supports 1 to 2)\n", None),
    (LOG, AT_WORK + "a:1:2 [0] p2p.cc:1 NCCL WARN cudaIpcOpenMemHandle failed : invalid argument\n", Remedy.FIX_CONFIG),
    (LOG, "a:1:2 [7] NCCL INFO NET/IB : No device found.\na:1:2 [7] NCCL INFO Using network Socket\n", Remedy.FIX_CONFIG),
    ("neuron-ls.txt", "FATA[0000] Failed to discover neuron devices    error=\"x\"\n", None),
    ("fio.json", "a: (groupid=0, jobs=1): err= 5 (file:io_u.c, error=Input/output error): pid=1\n", None),
    (SMI, "Failed to initialize NVML: Unknown Error\n", Remedy.FIX_CONFIG),
    (SMI, "job_exporter: b\"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"\n", None),
    (SMI, "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", Remedy.REPLACE),
    (SMI, "index, name, ecc.errors.uncorrected.volatile.total\n0, H100, 0\n1, H100, 12\n", None),
    (SMI, "index, name, temperature.gpu\n0, H100, 30\n1, [GPU is lost], [GPU is lost]\n", Remedy.REBOOT),
    (SMI, "gpu_uuid, remapped_rows.pending, remapped_rows.failure\nGPU-1, Yes, No\nGPU-2, No, No\n", Remedy.RESET_GPU),
    (SMI, "bash: nvidia-smi: command not found\n", Remedy.UPDATE_SOFTWARE),
    (SMI, "GPU 00000000:18:00.0\n    Remapped Rows\n        Pending       : Yes\n", Remedy.RESET_GPU),
    (DIAG, "Deployment ..... PASS\nMemory ......... FAIL\n", None),
    ("fabric-log.txt", "[Jan 1 2025 00:00:00] [WARNING] [tid 1] Trunk port failure detected for switch GUID 0x1\n", None),
    ("nvme-smart.json", "smartctl 7.2 [x86_64-linux]\nCritical Warning:   0x04\nTemperature: 30 Celsius\n", Remedy.REPLACE),
    ("nccl-all_reduce.log", table([40, 41, 900, 1600, 1700, 1500, 300, 310, 400]), Remedy.INVESTIGATE),
]  # fmt: skip
JOBS = [
    (LOG, AT_WORK + "NVRM: Xid (PCI:0000:65:00): 31, pid=1, Ch 1\n"),
    (LOG, AT_WORK + "RuntimeError: shape '[2, 3]' is invalid for input of size 5\n"),
    (LOG, "RuntimeError: Detected mismatch between collectives on ranks.\n"),
    (LOG, AT_WORK + "KeyError: 'foo'\n" + CHILD),
    (LOG, CHILD + "  exitcode  : -9 (pid: 208)\n  traceback : Signal 9 (SIGKILL) received by PID 208\n"),
    (LOG, "a:1 [0] init.cc:738 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000\n"
          "Failed, NCCL error x.cu:17 'invalid usage (run with NCCL_DEBUG=WARN for details)'\n"),
    (LOG, "slurmstepd: error: *** JOB 12 ON node-3 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n"),
    (SMI, "GPU 00000000:C1:00.0 is currently in use by another process.\n"),
    (DIAG, "DCGM GPU Diagnostic (version 418)\n\nGPU 0's MIG configuration is incompatible with the diagnostic\n"),
]  # fmt: skip
HEALTHY = [
    (LOG, "a:1:2 [1] NCCL INFO NET/IB : No device found.\na:1:2 [1] NCCL INFO Using network Socket\n"),
    ("nvidia-smi-topo.txt", "        GPU0    GPU1\n GPU0   X       OK\n GPU1   OK      X\n"),
    ("fio.json", "a: (groupid=0, jobs=1): err= 0: pid=7: Mon\n  read: IOPS=9k, BW=88.5MiB/s (92.8MB/s)(1GiB/9msec)\n"),
    (LOG, "{'loss': 1.2, 'grad_norm': 0.3, 'epoch': 0.1}\n  1%| | 10/1000 [00:10<15:00, 1.1it/s]\n"),
    (LOG, "step 1 loss 2; ECC errors: 0; Xid errors: 0; NVLink errors: 0\n"),
    (LOG, "NET/OFI Initializing aws-ofi-nccl 1.19.0\nNET/OFI Selected provider is cxi, fabric is cxi (found 4 nics)\n"),
    (SMI, "index, utilization.gpu [%], memory.used [MiB]\n0, 98 %, 70000 MiB\n1, 99 %, 70001 MiB\n"),
    (SMI, "$ nvidia-smi --query-gpu=index,uuid,name --format=csv,noheader\n0, GPU-1, H100\n1, GPU-2, H100\n"),
    (SMI, "| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: 12.2     |\n"
          "|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:10:1C.0 Off |                    0 |\n"
          "| N/A   33C    P0              52W / 400W |      2MiB / 40960MiB |      0%      Default |\n"),
    ("fi-info.txt", "provider: verbs;ofi_rxm\n    fabric: IB\n    domain: mlx5_0\n    version: 1\n    type: FI_EP_RDM\n"),
    ("nvbandwidth.txt", "Running host_to_device_memcpy_sm.\nmemcpy SM CPU(row) -> GPU(column) bandwidth (GB/s)\n"
                        "           0\n 0     25.13\n\nSUM host_to_device_memcpy_sm 25.13\n"),
    ("nvme-smart.json", "Smart Log for NVME device:nvme0\ncritical_warning : 0\ntemperature : 42 C (315 Kelvin)\n"),
    ("nccl-all_reduce.log", table([40, 41, 42, 45, 50, 60, 80, 120])),
    ("nccl-all_reduce.log", "size time algbw busbw\n(B) (us) (GB/s) (GB/s)\n" + "".join(
        f"{size} 43.83 0.75 1.31\n" for size in ("32_768", "65_536", "131_072", "262_144", "524_288"))),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "remedy"), FAULTY)
def test_what_names_a_fault_of_the_node_fails(tmp_path, file, text, remedy):
    failed = [one for one in judged(tmp_path, file, text).findings if one.status is Status.FAIL]
    assert failed and (remedy is None or remedy in {one.remedy for one in failed})


@pytest.mark.parametrize(("file", "text"), [*JOBS, *HEALTHY])
def test_what_says_nothing_against_the_node_does_not_block_it(tmp_path, file, text):
    found = judged(tmp_path, file, text)
    assert found.verdict is Verdict.GO, [one for one in found.findings if one.status is not Status.SKIP]


@pytest.mark.parametrize(("file", "text"), JOBS)
def test_a_fault_of_the_job_itself_is_told(tmp_path, file, text):
    remedies = {one.remedy for one in judged(tmp_path, file, text).findings if one.status is Status.INFO}
    assert remedies == {Remedy.RESTART_APP}
