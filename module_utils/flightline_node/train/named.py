"""Lines in which a launcher or a library names who ended first, or whom the others wait for. Pure.

Sources: Open MPI's help-orterun.txt and help-mpi-api.txt, MPICH's MPID_Abort, Horovod's stall_inspector.cc and
gloo_run.py, PyTorch's ProcessGroupWrapper.cpp, TraceUtils.h, ProcessGroupGloo.cpp and multiprocessing/spawn.py,
DeepSpeed's launch.py, vLLM's multiproc_executor.py, UCX' debug.c, Slurm's srun and slurmctld.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, Iterator, List, Match, NamedTuple, Optional, Sequence, Set, Tuple

KILLED, CRASHED, ENDED, NODE, MISSING, SLOW, DIFFER = (
    "killed", "crashed", "ended", "node", "missing", "slow", "mismatch")  # fmt: skip
"""MISSING: the others wait for it by name. SLOW: by another program's measure. DIFFER: each waits in another call."""
MOST = 4
"""Ranks that are named at once; of more it is the program, or the way to them. Own choice."""
ANSI = re.compile(r"\x1b\[[0-9;]*m")
CARRIER = re.compile(
    r"^(?:[\w.-]+ +\| (?=.)|<\w*>\s+\[[^\]]+\] \w+ \|\| |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \S+ -- |\[pod/\S+\] "
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z (?:std(?:out|err) F )?)",
    re.M,
)
"""What compose, Determined, Kubeflow, kubectl and container runtimes put before a line."""
TAGS = re.compile(r"\[(?:\d+,)?\d+\]<std\w+>: ?")
ONE_NODE = re.compile(
    r"--standalone\b|\bn(?:um_)?(?:nodes|machines)['\"]?[ =:]+1\b(?!:)|group_world_size['\"]?[ =:]+1\b"
    r"|max_nodes\s*:\s*1\b|(?:master_addr|rdzv_endpoint|init_method)\W{1,5}(?:tcp://)?(?:localhost|127\.0\.0\.1)",
    re.I,
)
WORLD = re.compile(r"\b(?:world|data parallel)[ _]size['\"]?[ =:]+(\d+)\b", re.I)
SHARDS = re.compile(r"\b(?:pipeline|tensor) parallel size[ =:]+(\d+)\b", re.I)
CLOSING = re.compile(r"Sending process (\d+) closing signal")
AGENT_RANK = re.compile(r"failed \(exitcode: -?\d+\) local_rank: (\d+) ")
ELASTIC = re.compile(r"torchrun|torch[./]distributed[./](?:run|launch|elastic)|accelerate launch|deepspeed.launcher")
OUT_OF_STEP = re.compile(r"lagging/dead/mismatched ranks that caused the desync are:(.*?)(?:Snapshot of|\Z)", re.S)
STALLED = re.compile(r"(?:Stalled|Missing) ranks:[ \t]*\n((?:\s*\d+: \[[^\]\n]*\][^\n]*\n?)+)")
STALLED_OPS = re.compile(r"\[(missing|ready) ranks: ([\d, ]+)\]")
DEEPSPEED = re.compile(r"--local_rank=(\d+)'.*exits with return code = (-?\d+)")


class Named(NamedTuple):
    """Ended or awaited, by name. ranks: none where only the node is said. local: among those of its node.

    first: the launcher says that it ended before the others.
    """

    word: str
    text: str
    ranks: Tuple[int, ...] = ()
    node: str = ""
    local: Optional[int] = None
    first: bool = False


def plain(text: str) -> str:
    """Without colours and what carries the lines."""
    return CARRIER.sub("", CARRIER.sub("", ANSI.sub("", text)))


def starts_ranks(text: str) -> bool:
    """May Slurm's tasks be the ranks? Not where each is a launcher."""
    return not ELASTIC.search(text)


def one_node(text: str) -> bool:
    """Does the text show that all ranks are on one node?"""
    failed = set(AGENT_RANK.findall(text))
    size = {int(number) for number in WORLD.findall(text)}
    for number in SHARDS.findall(text):
        size = {one * int(number) for one in size}
    ranks = len(set(CLOSING.findall(text))) + 1
    return bool(ONE_NODE.search(text)) or (len(failed) == 1 and size == {ranks})


def _mpi(said: Match[str]) -> Named:
    crash = any(word in said["end"] for word in ("Segmentation", "Bus", "Aborted", "Floating", "Illegal"))
    return Named(CRASHED if crash else KILLED, said.group(), (int(said["rank"]),), said["node"] or "", first=True)


def _first(said: Match[str]) -> Named:
    return Named(ENDED, " ".join(said.group().split()), (int(said["rank"]),), first=True)


def _abort(said: Match[str]) -> Named:
    return Named(ENDED, said.group(), tuple(int(one) for one in said.groups() if one))


def _worker(said: Match[str]) -> Named:
    numbers = [int(one) for one in re.findall(r"\d+", said["rank"])]
    return Named(KILLED, said.group(), tuple(numbers))


def _barrier(said: Match[str]) -> Named:
    return Named(MISSING, said.group(), tuple(int(one) for one in (said["ranks"] or "").split(",") if one))


def _spawned(said: Match[str]) -> Named:
    return Named(CRASHED if "SEGV" in said["end"] or "BUS" in said["end"] else KILLED, said.group(),
                 local=int(said["local"]))  # fmt: skip


def _node(word: str) -> Callable[[Match[str]], Named]:
    return lambda said: Named(word, said.group().strip(), node=said["node"])


RULES = (
    (r"process rank (?P<rank>\d+) with PID \d+(?: on node (?P<node>\S+))? exited on signal (?P<end>[^\n]+)", _mpi),
    (r"The first process to do so was:\s+(?:Exit code:\s+\d+\s+)?Process name: "
     r"(?:\[\[\d+,\d+\],|\[[\w.-]+@\d+,)?(?P<rank>\d+)", _first),
    (r"MPI_ABORT was invoked on rank (?:(\d+) in communicator MPI_COMM_WORLD|\d+ in communicator)"
     r"|MPI_Abort\(MPI_COMM_WORLD, \d+\) - process (\d+)|Abort\(\d+\) on node \d+ \(rank (\d+) in comm 0\)", _abort),
    (r"Worker proc VllmWorker-(?P<rank>\d+) died unexpectedly", _worker),
    (r"RayWorkerProc rank=(?P<rank>\[[\d, ]+\]) died unexpectedly", _worker),
    (r"Ranks? (?P<ranks>\d+(?:, *\d+)*) failed to pass monitoredBarrier", _barrier),
    (r"process (?P<local>\d+) terminated with signal (?P<end>SIG(?:KILL|SEGV|BUS))", _spawned),
    (r"RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<node>\S+)\s+=\s+KILLED BY SIGNAL: \d+ \((?P<end>[^)]+)\)", _mpi),
    (r"\[(?P<node>[\w.-]+):mpi_rank_(?P<rank>\d+)\]\[error_sighandler\] Caught error: (?P<end>[^\n]+)", _mpi),
    (r"Rank (?P<rank>\d+) scheduler is dead", _worker),
    (r"Worker (?P<rank>\d+) has failed\.", _worker),
    (r"process with rank=(?P<rank>\[[\d, ]+\]) was aborted", _worker),
    # Agents count nodes in their barriers, not ranks.
    (r"Timed out waiting on barrier on rank [^\n]*(?P<ranks>)", _barrier),
    (r"(?i:missing ranks(?: are)?):? *[\[{(](?P<ranks>\d+(?:, *\d+)*)[\]})]", _barrier),
    (r"stopped sending heartbeats[^\n]*:\s+/job:\w+/replica:\d+/task:(?P<ranks>\d+)\b", _barrier),
    (r"/job:\w+/replica:\d+/task:(?P<ranks>\d+) heartbeat timeout", _barrier),
    (r"\b(?:[Rr]ank|[Ww]orker) (?P<ranks>\d+) (?:did not respond|is not responding|missed (?:too many )?heartbeats)",
     _barrier),
    (r"worse relative performance\. Affected ranks: \[?(?P<ranks>\d+(?:, *\d+)*)",
     lambda said: _barrier(said)._replace(word=SLOW)),
    (r"Memory on the node \(IP: (?P<node>[\w.:-]+),", _node(KILLED)),
    (r"node name: (?P<node>\S+) has been marked dead", _node(NODE)),
    (r"\[(?P<node>[\w.-]+):\d+:\d+:\d+\] Caught signal (?:11|7) [^\n]*", _node(CRASHED)),
    (r"\[(?P<node>[\w.-]+):\d+\] Signal: (?:Segmentation fault|Bus error|Aborted)[^\n]*", _node(CRASHED)),
    (r"\(raylet, ip=(?P<node>[\w.:-]+)\) \*\*\* SIG(?:BUS|SEGV) received[^\n]*", _node(CRASHED)),
    (r"ORTE has lost communication with its daemon located on node:\s+hostname: +(?P<node>\S+)", _node(NODE)),
    (r"Remote daemon: \[\[\d+,\d+\],\d+\] on node (?P<node>\S+)", _node(NODE)),
)  # fmt: skip
_RULES = tuple((re.compile(pattern), make) for pattern, make in RULES)


def read(text: str) -> List[Named]:
    """All that the text names so."""
    whole = TAGS.sub("", text)
    found = [make(said) for pattern, make in _RULES for said in pattern.finditer(whole)]
    if re.search(r"EngineCore_DP[1-9]|\bDP[1-9]\b", whole):
        # Each engine counts its workers from 0.
        found = [one._replace(ranks=()) if "died unexpectedly" in one.text else one for one in found]
    for said in OUT_OF_STEP.finditer(whole):
        late = [
            re.findall(r"\d+", line.split("]")[0]) for line in said[1].splitlines() if re.match(r"\s*-? ?\[\d", line)
        ]
        if late:
            found.append(Named(MISSING, " ".join(said[1].split()), tuple(int(one) for one in late[0])))
    return [*found, *_deepspeed(whole), *_job(whole), *_horovod(whole)]


def _deepspeed(text: str) -> Iterator[Named]:
    """It prints the command of the child that it started last: of an only child that is the one which ended."""
    for said in DEEPSPEED.finditer(text):
        code, only = int(said[2]), len(set(re.findall(r"Killing subprocess (\d+)", text))) == 1 and said[1] == "0"
        word = {-9: KILLED, -11: CRASHED, -7: CRASHED}.get(code, ENDED)
        if code:
            yield Named(word, f"exits with return code = {code}", (0,) if only else ())


def _job(text: str) -> Iterator[Named]:
    """A job of one node that slurmctld saw end by a signal."""
    for said in re.finditer(r"_job_complete: JobId=(\d+) WTERMSIG (9|11|7)\b", text):
        nodes = re.search(rf"Allocate JobId={said[1]} NodeList=([\w.-]+) ", text)
        yield Named(KILLED if said[2] == "9" else CRASHED, said.group(), node=nodes[1] if nodes else "")


def _horovod(text: str) -> Iterator[Named]:
    """Whom Horovod's stall inspector misses in all that is stalled; where that differs, they are at cross purposes."""
    blocks = STALLED.findall(text)
    missed: List[Set[int]] = []
    if blocks:
        calls: Dict[str, Set[int]] = {}
        for rank, names in re.findall(r"(\d+): \[([^\]\n]*)\]", blocks[-1]):
            calls.setdefault(names, set()).add(int(rank))
        missed = list(calls.values())
    for kind, numbers in STALLED_OPS.findall(text):
        ranks = {int(one) for one in numbers.split(",") if one.strip()}
        missed.append(ranks if kind == "missing" else set(range(max(ranks))) - ranks)
    if missed and all(missed):
        same = all(one == missed[0] for one in missed)
        yield Named(MISSING if same else DIFFER, "Horovod's stalled ranks: " + _numbers(missed),
                    tuple(sorted(missed[0])) if same else ())  # fmt: skip


def _numbers(sets: Sequence[Set[int]]) -> str:
    return "; ".join(dict.fromkeys(", ".join(map(str, sorted(one))) for one in sets))
