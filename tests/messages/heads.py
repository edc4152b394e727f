"""What stands before a line in the logs that people bring. Made lines, after each carrier's own format.

`{line}` is the message, `{json}` the same as a JSON text; `{m:02d}:{s:02d}` a clock that goes on, `{up:.6f}` seconds since
boot. A head of UNCLEAR is one that cannot be told from a program's own words: what blocks must then be UNKNOWN, never a
pass.
"""

KERNEL = (
    "[{up:12.6f}] {line}",
    "2026-11-21T09:{m:02d}:{s:02d}+0000 ip-10-0-0-7 kernel: {line}",
    "Nov 21 09:{m:02d}:{s:02d} ip-10-0-0-7 kernel: [{up:12.6f}] {line}",
    "[Sat Nov 21 09:{m:02d}:{s:02d} 2026] {line}",
    "[Sat Nov 21 09:{m:02d}:{s:02d}] {line}",
    "[2026-11-21 09:{m:02d}:{s:02d}] {line}",
    "2026-11-21T09:{m:02d}:{s:02d}.000123Z\tip-10-0-0-7 kernel: {line}",
    "Nov 21 09:{m:02d}:{s:02d} PM ip-10-0-0-7 kernel: {line}",
    "11\u6708 21 09:{m:02d}:{s:02d} ip-10-0-0-7 kernel: {line}",
    '{{job="kernel"}} [{up:12.6f}] {line}',
    "(head, rank=0, pid=4242) [1,0]<stdout>:[{up:12.6f}] {line}",
    "2026-11-21T09:{m:02d}:{s:02d}.000000123Z stdout F [{up:12.6f}] {line}",
    "ip-10-0-0-7: <4>[{up:12.6f}] {line}\r",
    '{{"_TRANSPORT":"kernel","MESSAGE":{json},"__REALTIME_TIMESTAMP":"1795252709000000"}}',
)
"""A kernel log: dmesg, journalctl, syslog, and what carries their lines."""

KERNEL_UNCLEAR = (
    "2026-11-21 09:{m:02d}:{s:02d},123 ERROR {line}",
    "gpu-07 {line}",
)
"""A program's log, a name alone: they may quote the kernel, or carry its lines."""

NCCL = (
    "{line}",
    "[1,3]<stdout>:{line}",
    "[1,3]<stderr>: {line}",
    "0: {line}",
    " 12: {line}",
    "[rank3]: {line}",
    "[default3]:{line}",
    "(RayTrainWorker pid=4242, ip=10.1.0.11) {line}",
    "[pod/train-worker-0/pytorch] {line}",
    "2026-11-21T09:00:{s:02d}.123456789Z {line}",
    "2026-11-21T09:00:{s:02d}.123456789Z stdout F {line}",
    "[2026-11-21 09:00:{s:02d}] {line}",
    "worker-0  | {line}",
)
"""A job's log: mpirun tags, srun --label, torchrun, Ray, kubectl and stern, containerd, CloudWatch, docker compose."""

NCCL_TESTS = NCCL[:5] + NCCL[8:10]
"""Where a row of a test can be put together again; see parsers/ranks.py."""

_DIAG = '"test_categories":[{{"category":"Hardware","tests":[{{"name":"memory","results":['
_GOOD = (0, 1, 2, 4, 5, 6, 7)
_GOOD_4 = "".join(f'{{{{"entity_group":"GPU","entity_id":{n},"status":"Pass"}}}},' for n in _GOOD)
_GOOD_3 = "".join(f'{{{{"gpu_id":"{n}","status":"Pass"}}}},' for n in _GOOD)
DCGM = (
    '{{"metadata":{{"version":"4.6.0"}},' + _DIAG + _GOOD_4 + '{{"entity_group":"GPU","entity_id":3,"status":"Fail",'
    '"warnings":[{line}]}}],"test_summary":{{"status":"Fail"}}}}]}}]}}',
    '{{"DCGM GPU Diagnostic":{{"DCGM Version":"3.3.7",' + _DIAG + _GOOD_3 + '{{"gpu_id":"3","status":"Fail",'
    '"warnings":[{line}]}}]}}]}}]}}}}',
)
"""dcgmi diag -j of DCGM 4 and 3: a message is an entry of a failed test."""

NVLSM = (
    "Nov 21 09:{m:02d}:{s:02d} 123456 [85BA8640] {line}",
    "ip-10-0-0-7: nvlsm: Nov 21 09:{m:02d}:{s:02d} 123456 [85BA8640] {line}",
    "Nov 21 09:{m:02d}:{s:02d} ip-10-0-0-7 nvlsm[41]: Nov 21 09:{m:02d}:{s:02d} 123456 [85BA8640] {line}",
)
"""OpenSM's own log, and the same in a journal."""

HEADS: dict[str, tuple[str, ...]] = {
    "kernel.log": KERNEL,
    "nccl-debug.log": NCCL,
    "nccl-all_reduce.log": NCCL_TESTS,
    "dcgm-diag.json": DCGM,
    "neuron-runtime.log": NCCL,
    "nvlsm.log": NVLSM,
}
UNCLEAR: dict[str, tuple[str, ...]] = {"kernel.log": KERNEL_UNCLEAR}
OPENING: dict[str, str] = {
    "kernel.log": "Linux version 6.8.0-1015-aws (buildd@x) #16-Ubuntu SMP",
    "nccl-debug.log": "ip-10-1-0-11:71:71 [0] NCCL INFO cudaDriverVersion 13000",
    "nccl-all_reduce.log": "# nThread 1 nGpus 8 minBytes 8589934592 maxBytes 8589934592 step: 2(factor) warmup iters: 5 "
    "iters: 20 agg iters: 1 validation: 1 graph: 0",
}
"""A healthy first line of the file, so that a log of one harmless message is a log."""
