"""Labelled logs, reports and dumps of faults: `flightline blame` names the right rank, or says that it is not known.

All were written here after documented formats (torchrun's failure report and error files, the watchdog lines of PyTorch
2.1 to 2.9, flight recorder dumps 2.5 to 2.10, NCCL's and Slurm's messages, kubectl describe); none was recorded.
"""

import json
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command

NAMELESS = "not known"
ALONE = "6f1d8a4e-3c55-4b3e-9a52-0d2f5a1b7c11_x1"
"""A run's directory of torchrun --standalone: the id of its rendezvous is a UUID. One node."""
SIGNALS = {-9: "SIGKILL", -11: "SIGSEGV", -6: "SIGABRT", -7: "SIGBUS", -15: "SIGTERM"}


def one(number, rank, code, host="gpu-01", local=None, text="", at="2026-11-20_10:00:07"):
    """A failure of torchrun's report."""
    said = text or (
        f"Signal {-code} ({SIGNALS[code]}) received by PID {4000 + rank}"
        if code < 0
        else "To enable traceback see: ..."
    )
    return (
        f"[{number}]:\n  time      : {at}\n  host      : {host}\n  rank      : {rank} (local_rank: "
        f"{rank % 8 if local is None else local})\n  exitcode  : {code} (pid: {4000 + rank})\n"
        f"  error_file: <N/A>\n  traceback : {said}\n"
    )


def report(root, *others):
    more = "".join(others) or "  <NO_OTHER_FAILURES>\n"
    line = "=" * 60
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{line}\ntrain.py FAILED\n{'-' * 60}\nFailures:\n{more}{'-' * 60}\n"
        f"Root Cause (first observed failure):\n{root}{line}\n"
    )


def trace(error, prefix="", file="train.py"):
    lines = [
        "Traceback (most recent call last):",
        f'  File "/fsx/src/{file}", line 80, in <module>',
        "    main()",
        error,
    ]
    return "".join(f"{prefix}{line}\n" for line in lines)


def ranked(rank, error):
    return trace(error, f"[rank{rank}]: ")


def late(rank, sequence=1580, enqueued=None, group="0(default_pg)", operation="ALLREDUCE", prefix=True):
    """The two lines of a rank's watchdog."""
    head = f"[rank{rank}]:[E1120 10:00:07.1 ProcessGroupNCCL.cpp:616] " if prefix else "[E ProcessGroupNCCL.cpp:458] "
    return (
        f"{head}[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={sequence}, OpType={operation}, "
        f"NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
    ) + (
        f"{head}[PG ID 0 PG GUID {group} Rank {rank}] Exception (either an error or timeout) detected by watchdog at work: "
        f"{sequence}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {sequence - 1}.\n"
        if enqueued
        else ""
    )


CLOSED = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, remote process exited or there was a network error"
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
NUMBER = "ValueError: bad sample 17"


def error_file(text, at=5):
    return {"message": {"message": text, "extraInfo": {"py_callstack": "...", "timestamp": str(at)}}}


def entry(sequence, name="nccl:all_reduce", state="completed", group=("0", "default_pg"), size=64, **more):
    p2p = "send" in name or "recv" in name
    return {"collective_seq_id": 0 if p2p else sequence, "p2p_seq_id": sequence if p2p else 0, "is_p2p": p2p, "pg_id": 0,
            "process_group": group, "profiling_name": name, "state": state, "input_sizes": [[size]], "record_id": sequence,
            "time_created_ns": more.pop("at", sequence), **more}  # fmt: skip


def dump(*entries, world=4, groups=None):
    """A dump; groups: name to description and ranks, beside the default group."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}}
    for name, (desc, ranks) in (groups or {}).items():
        config[name] = {"name": name, "desc": desc, "ranks": str(ranks)}
    return {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": list(entries)}


def dumps(of, world=4, skip=(), **rest):
    return {
        f"nccl_trace_rank_{rank}": dump(*of(rank), world=world, **rest) for rank in range(world) if rank not in skip
    }


def upto(last, *more):
    return [*(entry(at) for at in range(1, last + 1)), *more]


def gloo(last):
    """Gloo never says that a collective is completed."""
    return [entry(at, "gloo:all_reduce", "scheduled") for at in range(1, last + 1)]


def send(source, target, state, at, **more):
    return entry(at, f"nccl:send {source}->{target}", state, **more)


def receive(target, source, state, at, **more):
    return entry(at, f"nccl:recv {target}<-{source}", state, **more)


def pipeline(stuck):
    """Four stages: each waits for the one before it, but the first ones up to `stuck`, which have sent."""

    def calls(rank):
        got = [receive(rank, rank - 1, "completed" if rank <= stuck else "started", 5)] * (rank > 0)
        sent = [send(rank, rank + 1, "completed", 6)] * (rank < stuck)
        return [*upto(2), *got, *sent]

    return calls


@dataclass(frozen=True)
class Case:
    """What lies there, and the label: cause, rank (None: not known, or no single one), node."""

    name: str
    files: dict[str, Any]
    cause: str
    rank: int | None = None
    node: str = ""
    why: str = ""


def log(text):
    return {"slurm-17.out": text}


def tree(*ranks, run=ALONE, attempt=0, file="stderr.log"):
    return {f"{run}/attempt_{attempt}/{local}/{file}": text for local, text in enumerate(ranks) if text}


NODES = {**tree("", trace(NUMBER), run="job_aaaa"), **tree("", trace(CLOSED), run="job_bbbb")}
GROUPS = {"1": ("mesh_tp", [0, 1]), "2": ("mesh_tp", [2, 3])}
KUBE = """Name:             llama-workers-0-3-x7k2p
Node:             ip-10-0-1-7.ec2.internal/10.0.1.7
Status:           {status}
{more}
"""
HARD = "gpu-02:77:91 [1] enqueue.cc:9 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"
ABORTS = "[rank{0}]: Fatal Python error: Aborted\n[rank{0}]: Current thread 0x7 (most recent call first):\n"
CASES = [
    # torchrun's report
    Case("report, killed", log(report(one(0, 3, -9))), "died", 3, "gpu-01"),
    Case("report, local rank is not the rank", log(report(one(0, 11, -9, "gpu-02", 3))), "died", 11, "gpu-02"),
    Case("report, crashed", log(report(one(0, 5, -11))), "died", 5, "gpu-01"),
    Case("report, told to end only", log(report(one(0, 5, -15))), NAMELESS),
    Case("report, one rank aborted", log(report(one(0, 2, -6))), "died", 2),
    Case("report, abort after the watchdog", log(late(2) + report(one(0, 2, -6))), NAMELESS),
    Case("report, one rank ended with 1", log(report(one(0, 2, 1))), "software", 2, "gpu-01"),
    Case("report, ended with 1 as another closed", log(trace(CLOSED) + report(one(0, 2, 1))), NAMELESS),
    Case("report, the text is its own", log(trace(NUMBER) + report(one(0, 2, 1))), "software", 2, "gpu-01"),
    Case("report, all ended with 1", log(report(one(0, 0, 1), one(1, 1, 1), one(2, 2, 1))), NAMELESS),
    Case(
        "report, first by seconds",
        log(report(one(0, 1, -9), one(1, 0, 1, at="2026-11-20_10:00:12"), one(2, 2, -6, at="2026-11-20_10:00:13"))),
        "died", 1, "gpu-01",
    ),
    Case("report, recorded traceback", log(report(one(0, 6, 1, text=trace(NUMBER, "  ").strip()))), "software", 6),
    Case("report, recorded ECC", log(report(one(0, 6, 1, text=trace(ECC, "  ").strip()))), "hardware", 6, "gpu-01"),
    Case(
        "reports of two nodes, the killed one counts",
        {"a.log": trace(CLOSED) + report(one(0, 2, 1)), "b.log": report(one(0, 9, -9, "gpu-02"))},
        "died", 9, "gpu-02",
    ),
    Case("agent's line without a report", log("E1120 api.py:869] failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: /usr/bin/python"), "died"),
    Case("an exception at the end of a killed rank's report", log(ranked(0, "RuntimeError: something of the others") + report(one(0, 3, -9))), "died", 3),
    Case("others crash as they end", log(ranked(3, NUMBER) + report(one(0, 3, 1), one(1, 5, -11))), "software", 3),
    Case("others are killed, and the first gave no word", log(report(one(0, 3, -6), one(1, 5, -9))), NAMELESS),
    Case("crashed, and others do not know why", log("[rank3]: Fatal Python error: Segmentation fault\n" + ranked(0, "RuntimeError: what")), "died", 3),
    Case("a log of two starts", log(ranked(4, ECC) + report(one(0, 4, 1)) + report(one(0, 2, -9))), "died", 2),
    Case("a handled exception is no end", {"rank_1.log": trace("ImportError: no apex") + "step\n" * 100, "rank_0.log": trace(CLOSED)}, NAMELESS),
    # error files and folders of local ranks
    Case("error.json, one node", tree(None, error_file(NUMBER), file="error.json"), "software", 1),
    Case("error.json, whose nodes are not known", tree(None, error_file(NUMBER), file="error.json", run="job_x"), "software"),
    Case("two nodes, local ranks twice", NODES, "software"),
    Case("two nodes, prefixes name the rank",
         {**tree("", ranked(9, NUMBER), run="job_a"), **tree("", ranked(1, CLOSED), run="job_b")}, "software", 9),
    Case("stderr, one node", tree(trace(CLOSED), "", trace(NUMBER)), "software", 2),
    Case("stderr, all the same", tree(*[trace(NUMBER)] * 4), "software"),
    Case("stderr, all lost another", tree(trace(CLOSED), trace(CLOSED)), NAMELESS),
    Case("the last attempt counts", {**tree(trace(NUMBER)), **tree("", trace(ECC), attempt=1)}, "hardware", 1),
    Case("error.json, an illegal access after a lost connection",
         tree(error_file(CLOSED, 5), error_file("CUDA error: an illegal memory access", 6), file="error.json"), "software", 1),
    Case("error.json over the text of others",
         {**tree(error_file(CLOSED, 4), error_file(ECC, 9), file="error.json"), **tree(trace(CLOSED))}, "hardware", 1),
    # logs with prefixes
    Case("prefix, own exception", log(ranked(0, CLOSED) + ranked(3, NUMBER) + ranked(1, CLOSED)), "software", 3),
    Case("prefix, ECC", log(ranked(4, ECC) + ranked(5, CLOSED)), "hardware", 4),
    Case("prefix, launch failure", log(ranked(7, "RuntimeError: CUDA error: unspecified launch failure")), "hardware", 7),
    Case("prefix, device-side assert", log(ranked(2, "RuntimeError: CUDA error: device-side assert triggered") + ranked(0, CLOSED)), "software", 2),
    Case("prefix, GPU memory", log(ranked(6, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")), "software", 6),
    Case("prefix, input/output error", log(ranked(6, "OSError: [Errno 5] Input/output error: '/fsx/c4.bin'")), "hardware", 6),
    Case("input/output error everywhere", log("".join(ranked(n, "OSError: [Errno 5] Input/output error") for n in range(4))), NAMELESS),
    Case("disk full", log(ranked(0, "OSError: [Errno 28] No space left on device") + ranked(1, CLOSED)), "software", 0),
    Case("tee's prefix is the local rank", log(trace(NUMBER, "[default3]:")), "software"),
    Case("mpirun's tag", log(trace(NUMBER, "[1,5]<stderr>:")), "software", 5),
    Case("a file for each rank", {"rank_0.err": trace(CLOSED), "rank_1.err": trace(NUMBER)}, "software", 1),
    Case("a file for each rank of each node", {"a/rank_1.err": trace(NUMBER), "b/rank_1.err": trace(CLOSED)}, "software"),
    Case("a file for each local rank", {"local_rank_1.err": trace(NUMBER)}, "software"),
    Case("no prefix at all", log(trace(NUMBER)), "software"),
    Case("terminate, ECC", log("[rank3]: terminate called after throwing an instance of 'c10::Error'\n[rank3]:   what():  CUDA error: uncorrectable ECC error encountered\n"), "hardware", 3),
    # the watchdog
    Case("watchdog, one complains", log(late(3)), NAMELESS),
    Case("watchdog, all complain alike", log("".join(late(n, enqueued=1582) for n in range(4))), NAMELESS),
    Case("watchdog, one had not come so far",
         log("".join(late(n, enqueued=1582) for n in (0, 1, 3)) + late(2, 1580, 1579).replace("at work: 1580", "at work: 1579")), "stopped", 2),
    Case("watchdog, ran ahead by different numbers", log("".join(late(n, enqueued=1580 + n) for n in range(4))), NAMELESS),
    Case("watchdog of another group", log(late(0, 70, 70, "4(mesh_tp)") + late(1, 90, 95)), NAMELESS),
    Case("watchdog, old form", log("".join(late(n, prefix=False) for n in (0, 1))), NAMELESS),
    Case("watchdog, and the abort that it ends by", log("".join(late(n) + ABORTS.format(n) for n in range(4)) + report(one(0, 2, -6))), NAMELESS),
    Case("watchdog, numbers of groups of a process", log("".join(late(n, enqueued=1580 - n // 3 * 9).replace("[PG ID 0 PG GUID 0(default_pg)", "[PG 3") for n in range(4))), NAMELESS),
    Case("ranks that said they called different ones", log("".join(ranked(n, "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running") for n in range(2))), "mismatch"),
    Case("watchdog and the exception behind it", log(late(0) + late(1) + ranked(2, NUMBER)), "software", 2),
    # NCCL
    Case("NCCL, closed by peer", log("gpu-01:77:90 [1] misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer gpu-02<47861>\n"), NAMELESS),
    Case("NCCL, retries exceeded",
         log("gpu-01:77:90 [1] transport/net_ib.cc:999 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<99> with error 12, opcode 0\n"), "network path"),
    Case("NCCL, ECC by host, process and rank",
         log("gpu-02:77:77 [1] NCCL INFO ncclCommInitRank comm 0x7 rank 9 nranks 16 cudaDev 1 busId 9 - Init COMPLETE\n"
             "gpu-02:77:91 [1] enqueue.cc:9 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"), "hardware", 9, "gpu-02"),
    Case("NCCL, ECC of a rank that is not said",
         log("gpu-02:77:91 [1] enqueue.cc:9 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"), "hardware", None, "gpu-02"),
    Case("NCCL, communicators of a part count for themselves",
         {f"node{n}.log": f"gpu-0{n}:77:77 [1] NCCL INFO ncclCommInitRank comm 0x7 rank 1 nranks 8 cudaDev 1 busId 9\n" + HARD * (n == 2) for n in (1, 2)},
         "hardware", None, "gpu-02"),
    Case("Xid by the process", log("NVRM: Xid (PCI:0000:53:00): 94, pid=4003, name=python, Contained\n" + report(one(0, 3, -6))), "hardware", 3, "gpu-01"),
    # Slurm and Kubernetes
    Case("srun, killed", log("srun: error: node7: task 5: Killed\n"), "died", 5, "node7"),
    Case("srun, killed, but the tasks are launchers", log("srun torchrun --nnodes=8 train.py\nsrun: error: node7: task 5: Killed\n"), "died", None, "node7"),
    Case("srun, tasks are ranks", log("5: [rank5]: hello\n4: [rank4]: hello\nsrun: error: node7: task 5: Killed\n"), "died", 5, "node7"),
    Case("srun, exit code alone", log("srun: error: node7: task 5: Exited with exit code 1\n"), NAMELESS),
    Case("srun, several tasks end as one is killed", log("srun: error: node7: task 5: Killed\nsrun: error: node6: tasks 0-3: Exited with exit code 1\n"), "died", 5, "node7"),
    Case("slurmstepd, memory", log("slurmstepd: error: Detected 1 oom_kill event in StepId=8.0. Some of the step tasks have been OOM Killed.\nsrun: error: gpu-03: task 2: Out Of Memory\n"), "died", None, "gpu-03"),
    Case("Slurm, node failure: not the node it is said on",
         log("slurmstepd: error: *** STEP 8.0 ON gpu-01 CANCELLED AT 2026-11-20T10:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"), NAMELESS),
    Case("Slurm, node failure by name", log("srun: error: Node failure on gpu-07\nsrun: error: gpu-01: task 0: Killed\n"), "died", None, "gpu-07"),
    Case("Slurm, cancelled by a person", log("slurmstepd: error: *** JOB 8 ON gpu-01 CANCELLED AT 2026-11-20T10:00:00 ***\nsrun: error: gpu-02: task 1: Killed\n"), NAMELESS),
    Case("Slurm, time limit", log("slurmstepd: error: *** JOB 8 ON gpu-01 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***\nsrun: error: gpu-02: task 1: Killed\n"), NAMELESS),
    Case("kubelet, memory",
         {"pod.txt": KUBE.format(status="Running", more="    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137")},
         "died", None, "ip-10-0-1-7.ec2.internal"),
    Case("kubelet, evicted", {"pod.txt": KUBE.format(status="Failed", more="Reason:           Evicted\nMessage:          The node was low on resource: memory.")},
         "died", None, "ip-10-0-1-7.ec2.internal"),
    # flight recorder
    Case("gloo, one has not arrived", dumps(lambda rank: gloo(8 if rank == 1 else 9), world=4), "stopped", 1,
         why="reached number 8; 3 others wait in all_reduce [[64]], number 9 of group 0/default_pg"),
    Case("gloo, one wrote nothing, and one waits for it", dumps(lambda rank: gloo(8 if rank == 2 else 9), skip=(1,)), "stopped", 1,
         why="wrote no flight recorder dump, 3 others did"),
    Case("gloo, a group that all have left long ago",
         dumps(lambda rank: [*gloo(8 if rank == 2 else 9), entry(99, "gloo:broadcast", "scheduled", ("1", "undefined"), at=3)]), "stopped", 2,
         why="group 0/default_pg"),
    Case("gloo, all are as far", dumps(lambda _: gloo(9)), ""),
    Case("gloo, without the ranks of groups", dumps(lambda rank: gloo(8 if rank == 1 else 9), groups={"0": ("default_pg", [])}), "stopped", 1),
    Case("dumps, done by one and so not waited in", dumps(lambda rank: [entry(1), entry(2, state="completed" if rank else "started")], world=2), ""),
    Case("dumps, one has not arrived", dumps(lambda rank: upto(8) if rank == 1 else upto(8, entry(9, state="started"))), "stopped", 1),
    Case("dumps, ahead by different numbers",
         dumps(lambda rank: upto(8, *(entry(at, state="scheduled") for at in range(9, 11 + rank)))), NAMELESS),
    Case("dumps, all arrived and none is done", dumps(lambda _: upto(8, entry(9, state="started"))), NAMELESS),
    Case("dumps, the only one that is missing", dumps(lambda _: upto(8, entry(9, state="started")), skip=(2,)), "stopped", 2),
    Case("dumps, two are missing", dumps(lambda _: upto(8, entry(9, state="started")), skip=(2, 3)), NAMELESS),
    Case("dumps, missing of 8 by the group alone", dumps(lambda _: upto(8, entry(9, state="started")), world=8, skip=(7,)), "stopped", 7),
    Case("dumps, one called another", dumps(lambda rank: upto(4, entry(5, "nccl:broadcast" if rank == 2 else "nccl:all_reduce", "started"))), "mismatch", 2,
         why="called broadcast [[64]] where 3 others called all_reduce [[64]], number 5 of group 0/default_pg"),
    Case("dumps, two and two differ", dumps(lambda rank: upto(4, entry(5, "nccl:broadcast" if rank < 2 else "nccl:all_reduce", "started"))), "mismatch"),
    Case("dumps, another size of the same", dumps(lambda rank: upto(4, entry(5, size=7 if rank == 3 else 9, state="started"))), "mismatch", 3),
    Case("dumps, sizes of an exchange may differ", dumps(lambda rank: upto(4, entry(5, "nccl:all_to_all", "started", size=7 + rank))), NAMELESS),
    Case("dumps, all is done", dumps(lambda _: upto(4)), ""),
    Case("pipeline, the first stage is late", dumps(pipeline(0)), "stopped", 0),
    Case("pipeline, a stage in the middle", dumps(pipeline(1)), "stopped", 1),
    Case("pipeline, the late stage wrote nothing", dumps(pipeline(1), skip=(1,)), "stopped", 1),
    Case("pipeline, both ends are there",
         dumps(lambda rank: upto(2, send(0, 1, "started", 5) if rank == 0 else receive(1, 0, "started", 5)), world=2), NAMELESS),
    Case("pipeline, each waits for the other",
         dumps(lambda rank: upto(2, receive(rank, 1 - rank, "started", 5)), world=2), NAMELESS),
    Case("groups, who waits elsewhere is not to blame",
         dumps(lambda rank: [*upto(3, *[entry(4, state="started")] * (rank in (0, 1))), *[entry(7, group=("2", "mesh_tp"), state="started", at=9)] * (rank == 2)],
               groups=GROUPS), "stopped", 3),
    Case("dumps and an exception: it comes first",
         {**dumps(lambda rank: upto(8, entry(9, state="started")), skip=(1,)), "rank_1.log": trace(NUMBER)}, "software", 1),
    Case("pickles, as the watchdog writes them",
         {name: pickle.dumps(value) for name, value in dumps(lambda rank: upto(8) if rank == 3 else upto(8, entry(9, state="started"))).items()}, "stopped", 3),
]  # fmt: skip


def lay(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))


def answer(path):
    result = CliRunner().invoke(command, [str(path), "--json"])
    assert result.exit_code in (0, 1), result.output
    found = json.loads(result.output)["blames"]
    assert result.exit_code == bool(found)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_right_rank_or_not_known(tmp_path, case):
    lay(tmp_path, case.files)
    found = answer(tmp_path)
    assert [(one["cause"], one["rank"]) for one in found] == ([(case.cause, case.rank)] if case.cause else [])
    if case.node:
        assert found[0]["node"] == case.node
    assert all(one["why"] and case.why in one["why"] for one in found)


def test_there_are_enough_of_them_and_most_are_named():
    labelled = [case for case in CASES if case.rank is not None]
    assert len(CASES) >= 40 and len(labelled) >= len(CASES) // 3


def test_a_single_file_is_read(tmp_path):
    lay(tmp_path, {"slurm-17.out": report(one(0, 3, -9)), "other.out": report(one(0, 4, -9))})
    assert [one["rank"] for one in answer(tmp_path / "slurm-17.out")] == [3]


def test_a_text_without_a_word_of_a_fault_blames_nobody(tmp_path):
    lay(tmp_path, {"slurm-17.out": "step: 10 loss: 3.1\nstep: 20 loss: 3.0\nINFO: ECC is on, no Xid was seen\n"})
    assert answer(tmp_path) == []


def test_what_names_nobody_is_no_node_to_take_out(tmp_path):
    lay(tmp_path, {"slurm-17.out": late(3)})
    done = CliRunner().invoke(command, [str(tmp_path), "--quarantine", "-i", str(tmp_path)])
    assert done.exit_code == 1 and "no node is taken out" in done.output and "not known" in done.output
