"""Lines in which launchers and libraries name a rank: `flightline blame` takes the name, and no name that is none.

All lines were written here after the documented formats of Open MPI, MPICH, Horovod, PyTorch, DeepSpeed, vLLM, SGLang,
Ray, JAX, Megatron and Slurm; none was recorded.
"""

import json

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command

ELASTIC = "torch.distributed.elastic.multiprocessing.api"
STALL = "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks"
FIRST = "detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n"
CRASH = "Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered"
VLLM = "ERROR 11-20 10:00:07 [multiproc_executor.py:487] "
NUMBER = "ValueError: bad sample 17"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB free"


def closing(failed, *others):
    sent = "".join(f"WARNING:{ELASTIC}:Sending process {4000 + one} closing signal SIGTERM\n" for one in others)
    return f"{sent}ERROR:{ELASTIC}:failed (exitcode: -9) local_rank: {failed} (pid: {4000 + failed}) of binary: /usr/bin/python\n"


def root(number, code, at="10:00:07"):
    return (f"  time      : 2026-11-20_{at}\n  host      : gpu-01\n  rank      : {number} (local_rank: {number})\n"
            f"  exitcode  : {code} (pid: {4000 + number})\n  error_file: <N/A>\n  traceback : Signal {-code} received by PID 1\n")  # fmt: skip


def trace(prefix, error, opening=""):
    lines = (
        f"{opening}Traceback (most recent call last):",
        '  File "/src/train.py", line 8, in <module>',
        "    main()",
        error,
    )
    return "".join(f"{prefix}{line}\n" for line in lines)


def desync(*lines):
    said = "".join(f"\t   - {line}\n" for line in lines)
    return f"\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n{said}\t - Snapshot of ranks' latest states:\n\t   #9 started ranks: [0, 1]\n"


# name, text, ranks, node
CASES = [
    # torchrun
    ("agent, the rest of a world is told to end", "world size: 4\n" + closing(3, 0, 1, 2), [3], ""),
    ("agent, the world has more", "world size: 8\n" + closing(3, 0, 1, 2), [], ""),
    ("agent, one node is asked for", "torchrun --nnodes=1 --nproc-per-node=8 train.py\n" + closing(5, 0, 1), [5], ""),
    ("agent, several nodes", "torchrun --nnodes=2 --nproc-per-node=8 train.py\n" + closing(5, 0, 1), [], ""),
    ("agent, elastic nodes", "torchrun --nnodes=1:4 train.py\n" + closing(5, 0, 1), [], ""),
    ("report without its begin", "  <NO_OTHER_FAILURES>\n---\nRoot Cause (first observed failure):\n[0]:\n" + root(1, -11), [1], "gpu-01"),
    ("report that is cut", "Failures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n" + root(3, 1)[:110], [3], "gpu-01"),
    ("report with a label before each line",
     "".join(f"0: {line}\n" for line in ("Root Cause (first observed failure):\n[0]:\n" + root(2, -9) + "=" * 30).splitlines()), [2], "gpu-01"),
    ("report, alike in the same second", "Failures:\n[1]:\n" + root(1, -6) + "[2]:\n" + root(2, -6) + "Root Cause (first observed failure):\n[0]:\n" + root(0, -6), [], "gpu-01"),
    ("report, killed alike in the same second", "Failures:\n[1]:\n" + root(1, -9) + "Root Cause (first observed failure):\n[0]:\n" + root(0, -9), [], "gpu-01"),
    ("report, killed later", "Failures:\n[1]:\n" + root(1, -9, "10:00:37") + "Root Cause (first observed failure):\n[0]:\n" + root(0, -9), [0], "gpu-01"),
    # MPI
    ("mpirun, by a signal", "mpirun noticed that process rank 12 with PID 0 on node gpu-03 exited on signal 9 (Killed).\n", [12], "gpu-03"),
    ("mpirun, in colour", "\x1b[31mmpirun noticed that process rank 2 with PID 7 on node gpu-03 exited on signal 11 (Segmentation fault).\x1b[0m\n", [2], "gpu-03"),
    ("mpirun and another's exception", "mpirun noticed that process rank 2 with PID 7 on node gpu-03 exited on signal 9 (Killed).\n" + trace("[1,4]<stderr>:", "RuntimeError: what"), [2], "gpu-03"),
    ("mpirun, first to end", f"mpirun {FIRST}  Process name: [[29973,1],6]\n  Exit code:    1\n", [6], ""),
    ("prterun, first to end", f"prterun {FIRST}   Process name: [prterun-gpu-01-77@1,6]\n   Exit code:    1\n", [6], ""),
    ("Horovod over gloo, first to end", f"RuntimeError: Horovod {FIRST}Process name: 5\nExit code: 1\n", [5], ""),
    ("MPI_ABORT", "MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n", [12], ""),
    ("MPI_ABORT in a part", "MPI_ABORT was invoked on rank 3 in communicator MPI COMMUNICATOR 4 SPLIT FROM 0\nwith errorcode 1.\n", [], ""),
    ("MPICH", "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 9\n", [9], ""),
    ("MPICH, all abort", "".join(f"application called MPI_Abort(MPI_COMM_WORLD, 1) - process {n}\n" for n in range(4)), [], ""),
    ("Intel MPI", "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 88 RUNNING AT gpu-02\n=   KILLED BY SIGNAL: 9 (Killed)\n", [3], "gpu-02"),
    ("MVAPICH", "[gpu-02:mpi_rank_11][error_sighandler] Caught error: Segmentation fault (signal 11)\n", [11], "gpu-02"),
    ("UCX names the node", "[gpu-04:77:0:99] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)\n", [], "gpu-04"),
    ("ORTE, daemon", "ORTE has lost communication with its daemon located on node:\n\n  hostname:  gpu-05\n", [], "gpu-05"),
    # Slurm
    ("srun, memory of several tasks", "slurmstepd: error: Detected 2 oom_kill events in StepId=8.0.\nsrun: error: gpu-03: tasks 5-6: Out Of Memory\nsrun: Terminating StepId=8.0\nslurmstepd: error: *** STEP 8.0 ON gpu-03 CANCELLED AT 2026-11-20T10:00:00 ***\n", [5, 6], "gpu-03"),
    ("srun, memory of all tasks", "srun: error: gpu-03: tasks 0-7: Out Of Memory\n", [], "gpu-03"),
    ("srun, one crashes and Slurm kills the rest", "srun: error: gpu-03: task 9: Segmentation fault (core dumped)\nsrun: Terminating StepId=8.0\nsrun: error: gpu-01: tasks 0-7: Killed\nsrun: error: gpu-03: task 8: Killed\n", [9], "gpu-03"),
    ("slurmctld, a job of one node", "sched: Allocate JobId=77 NodeList=gpu-06 #CPUs=8 Partition=gpu\n_job_complete: JobId=77 WTERMSIG 9\n", [], "gpu-06"),
    ("srun's labels, the tasks are ranks", "3: step 1\n" + trace("5: ", NUMBER) + "4: step 1\n", [5], ""),
    ("srun's labels of launchers", "0: torchrun --nnodes=2 train.py\n" + trace("1: ", NUMBER), [], ""),
    ("srun's labels that are no ranks", "0: step 1\n1: [rank9]: x\n" + trace("1: ", NUMBER), [], ""),
    # DeepSpeed, spawn
    ("DeepSpeed, an only child", "Killing subprocess 77\n['python', '-u', 'train.py', '--local_rank=0', '--x'] exits with return code = -9\n", [0], ""),
    ("DeepSpeed prints the last child's command", "Killing subprocess 77\nKilling subprocess 78\n['python', '-u', 'train.py', '--local_rank=1', '--x'] exits with return code = -9\n", [], ""),
    ("spawn on one node", "init_method='tcp://127.0.0.1:2222'\ntorch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n", [1], ""),
    ("spawn on one node, an exception", "init_method='tcp://127.0.0.1:2222'\n" + trace("", "torch.multiprocessing.spawn.ProcessRaisedException: ") + "\n-- Process 1 terminated with the following error:\n" + trace("", NUMBER), [1], ""),
    ("spawn on unknown nodes", "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n", [], ""),
    # stalls by name
    ("barrier", "RuntimeError: [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 30000 ms\n", [2, 5], ""),
    ("barrier, with the traceback of the one who says it", trace("[rank0]: ", "RuntimeError: Rank 2 failed to pass monitoredBarrier in 30000 ms"), [2], ""),
    ("barrier, too many", "RuntimeError: Ranks 1, 2, 3, 4, 5, 6, 7 failed to pass monitoredBarrier in 30000 ms\n", [], ""),
    ("barrier, who only reports", trace("[rank3]: ", "RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."), [], ""),
    ("store, by number only", trace("[rank3]: ", "RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for key: k (world_size=8, worker_count=7)"), [], ""),
    ("barrier of agents counts nodes", "Timed out waiting on barrier on rank 0, for key prefix: p (world_size=4, missing_ranks=[2], timeout=300)\n", [], ""),
    ("desync, who lags", desync("[4] finished collective #8, but didn't join collective #9 (count from 1)"), [4], ""),
    ("analysed flight recorder", "Not all ranks joining collective, sequence number: 9\n collective: all_reduce\n missing ranks: {3}\n", [3], ""),
    ("Horovod, stalled", f"[1,0]<stderr>:{STALL}\n[1,0]<stderr>:Stalled ranks:\n[1,0]<stderr>:6: [grad.0, grad.1 ...]\n", [6], ""),
    ("Horovod, two", f"{STALL}\nMissing ranks:\n2: [grad.0, grad.1]\n3: [grad.0, grad.1]\n", [2, 3], ""),
    ("Horovod, at cross purposes", f"{STALL}\nMissing ranks:\n0: [grad.0]\n1: [size]\n", [], ""),
    ("Horovod, ready", f"{STALL}. Stalled ops: a [ready ranks: 0, 3, 1], b [ready ranks: 3, 0, 1]\n", [2], ""),
    ("Horovod, missing", f"{STALL}\nStalled ops:\na [missing ranks: 1]\nb [missing ranks: 1]\n", [1], ""),
    ("JAX", "The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:2\n", [2], ""),
    ("NeMo, slow", "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: 5\n", [5], ""),
    # workers of engines
    ("vLLM, worker", f"(EngineCore_DP0 pid=7) {VLLM}Worker proc VllmWorker-3 died unexpectedly, shutting down executor.\n", [3], ""),
    ("vLLM, one of several engines", f"(EngineCore_DP1 pid=7) {VLLM}Worker proc VllmWorker-3 died unexpectedly, shutting down executor.\n", [], ""),
    ("vLLM, in a container", "llm-1  | " + f"{VLLM}Worker proc VllmWorker-3 died unexpectedly, shutting down executor.\n", [3], ""),
    ("vLLM, Ray", "RayWorkerProc rank=[3] died unexpectedly, shutting down executor.\n", [3], ""),
    ("vLLM, exception", trace(f"(VllmWorker rank=2 pid=77) {VLLM}", OOM), [2], ""),
    ("vLLM, exception by tensor parallel number", trace(f"(Worker_TP2 pid=77) {VLLM}", OOM), [2], ""),
    ("vLLM, stage and tensor parallel number", trace(f"(Worker_PP1_TP2 pid=77) {VLLM}", OOM), [], ""),
    ("vLLM, a word of its own before who ended", trace(f"(VllmWorker rank=0 pid=77) {VLLM}", OOM) + f"{VLLM}Worker proc VllmWorker-1 died unexpectedly\n", [0], ""),
    ("vLLM, all alike", "".join(trace(f"(VllmWorker rank={n} pid=77) {VLLM}", OOM) for n in range(4)), [], ""),
    ("SGLang", "[2026-11-20 10:00:07 TP3] Scheduler hit an exception: " + trace("", OOM), [3], ""),
    ("SGLang, a witness", "[2026-11-20 10:00:07 TP3] Scheduler hit an exception: " + trace("", "ValueError: TP rank 3 could finish the model loading, but there are other ranks that didn't"), [], ""),
    ("Ray, node by its memory", "ray.exceptions.OutOfMemoryError: Memory on the node (IP: 10.0.0.4, ID: 5f) where the task was running was 61GB / 62GB\n", [], "10.0.0.4"),
    # a rank's own word
    ("watchdog thread, the default group", f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank 2] {CRASH}\n", [2], ""),
    ("watchdog thread, another group", f"  what():  [PG ID 2 PG GUID 3 Rank 1] {CRASH}\n", [], ""),
    ("watchdog threads of several", "".join(f"[Rank {n}] NCCL watchdog thread terminated with exception: CUDA error: unknown error\n" for n in (1, 2)), [], ""),
    ("watchdog that is stuck itself", "[rank5]:[F] [PG ID 0 PG GUID 0(default_pg) Rank 5] ProcessGroupNCCL's watchdog got stuck for 480 seconds\n", [], ""),
    ("no number", "AssertionError: Rank 11: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3\n", [11], ""),
    ("prefix without the traceback's begin", f"[rank3]:   File \"/src/train.py\", line 8\n[rank3]: {OOM}\n[rank0]: torch.distributed.DistBackendError: NCCL error in: x\n", [3], ""),
    ("who has other parameters", trace("[rank1]: ", "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 212 params, while rank 0 has inconsistent 0 params."), [], ""),
]  # fmt: skip


def blamed(path):
    result = CliRunner().invoke(command, [str(path), "--json"])
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.output)["blames"]


@pytest.mark.parametrize(("text", "ranks", "node"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_who_is_named_is_blamed_and_nobody_else(tmp_path, text, ranks, node):
    (tmp_path / "train.log").write_text(text)
    found = blamed(tmp_path / "train.log")
    assert found, "something broke, and at the least it is not known who"
    assert [one["rank"] for one in found if one["rank"] is not None] == ranks
    assert {one["node"] for one in found} == {node}


@pytest.mark.parametrize("text", ["Rank 0: step 10 loss 3.1\nRank 1: step 10 loss 3.1\n", "missing ranks: []\n",
                                  "Worker 3 has started.\nready ranks: all\nTP0 | 8/8 [00:01]\n"])  # fmt: skip
def test_a_job_that_is_fine_blames_nobody(tmp_path, text):
    (tmp_path / "train.log").write_text(text)
    assert blamed(tmp_path / "train.log") == []
