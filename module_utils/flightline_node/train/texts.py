"""What a log says of a fault: tracebacks, torchrun's report, lines of NCCL, the watchdog, Slurm and kubelet. Pure.

A line is one rank's only where its prefix says so; what says no rank is kept without one.
"""

from __future__ import annotations

import re
import time
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import ras
from .words import HARDWARE, LATE, OWN, word_of

KILLED, CRASHED, ABORTED, ENDED, NODE, ORDERED = "killed", "crashed", "aborted", "ended", "node", "ordered"
"""KILLED: by SIGKILL. ENDED: with a status and no word why. NODE: the scheduler lost it. ORDERED: told to end."""
MOST_CHARS = 500
AFTER = 5
"""Lines behind an exception's own that belong to its text, such as NCCL's last error."""
LAST_WORDS = 60
"""Lines that may follow the exception that a process ended by: of its threads, and stacks. Own choice."""
RANK = re.compile(r"\[rank(\d+)\]: ?")
LOCAL = re.compile(r"\[(?:default|worker|trainer)(\d+)\]: ?")
TAG = re.compile(r"\[1,(\d+)\]<std\w+>: ?")
TASK = re.compile(r"(\d+): ")
RAISED = re.compile(r"(?:\w+\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure)\b.*|\w[\w.]*: .*")
FRAME = re.compile(r'\s+File "(.+)", line (\d+), in (.+)')
NATIVE = re.compile(r"what\(\):|Cuda failure|NVRM: Xid|^CUDA error:|^Fatal Python error:|Got async event")
NCCL = re.compile(r"(?P<node>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\]")
INIT = re.compile(r"comm 0x\w+ rank (\d+) nranks (\d+)")
WATCHDOG = re.compile(
    r"\[PG (?:ID )?(?P<pg>\d+)(?: PG GUID (?P<guid>\S+))? Rank (?P<rank>\d+)\].*at work: (?P<work>\d+), "
    r"last enqueued NCCL work: (?P<enqueued>\d+)"
)
CAUGHT = re.compile(r"\[Rank \d+\] Watchdog caught collective operation timeout: (WorkNCCL\([^)]*)")
REPORT = re.compile(
    r"^[^\n]*(?:Failures:|FAILED)\s*$.*?Root Cause \(first observed failure\):.*?^[^\n]*={20,}[^\n]*$", re.M | re.S
)
FAILURE = re.compile(
    r"time\s*: (?P<time>\S+)\s+host\s*: (?P<host>\S+)\s+rank\s*: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\)"
    r"\s+exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)\s+error_file\s*: .*?\n\s*traceback\s*: (?P<text>.*?)"
    r"(?=^\s*\[\d+\]:|^[^\n]*[-=]{20,}|\Z)",
    re.M | re.S,
)
AGENT = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
SRUN = re.compile(
    r"srun: error: (?P<node>[\w.-]+): tasks? (?P<tasks>[\d,-]+): "
    r"(?P<end>Killed|Out Of Memory|Exited with.*|Segmentation fault.*|Bus error.*|Aborted.*)"
)
LOST = re.compile(r"srun: error: Node failure on ([\w.,\[\]-]+)")
CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+(?P<why>.*?)\*\*\*")
POD = re.compile(r"^Node:\s+([\w.-]+)", re.M)
EVICTED, OOM_KILLED = re.compile(r"Reason:\s+Evicted"), re.compile(r"Reason:\s+OOMKilled")
MORE = re.compile(r"nccl\w+:|Last error|CUDA|Cuda|Net |\w*[Ss]ocket\w*|Call to|Search for|Compile with|\s+\S")
IGNORED = re.compile(r"(?:\w+\.)*(?:ChildFailedError|CalledProcessError|SignalException|KeyboardInterrupt|SystemExit)")
"""What launchers raise when their ranks have ended: it says nothing of why."""


class Seen(NamedTuple):
    """One piece of evidence. rank: of all; local: on its node; where: the innermost frame of a traceback.

    root: torchrun saw it first. memory: the host's was full. task: Slurm's, which is a rank in some jobs only.
    """

    word: str
    text: str
    rank: Optional[int] = None
    local: Optional[int] = None
    node: str = ""
    at: float = 0.0
    where: str = ""
    pid: int = 0
    root: bool = False
    memory: bool = False
    task: Optional[int] = None
    step: Optional[int] = None


class Waiting(NamedTuple):
    """A rank whose watchdog says what it waits in, and how far it has come. place: its rank in the group."""

    rank: int
    group: str
    place: int
    work: int
    enqueued: int


class Reading(NamedTuple):
    """All that a text says. ranks: by node and process. world: 0 where not said. tasks: those of Slurm are ranks.

    lags: by NCCL's RAS.
    """

    seen: List[Seen]
    waiting: List[Waiting]
    ranks: Dict[Tuple[str, int], int]
    world: int
    tasks: bool
    lags: Sequence[ras.Lag] = ()


def read(text: str, rank: Optional[int] = None, local: Optional[int] = None) -> Reading:
    """A text. rank, local: whose it is, where its name says so."""
    text = _last_start(text)
    reports = [match.group() for match in REPORT.finditer(text)]
    streams = _streams(REPORT.sub("", text).splitlines(), rank, local)
    found = Reading([one for part in reports for one in _report(part)], [], {}, 0, _tasks_are_ranks(text))
    for (of_rank, of_local), lines in streams.items():
        found.waiting.extend(one for line in lines for one in _waiting(line, of_rank))
        said = _stream(lines, of_rank is not None)
        found.seen.extend(one._replace(rank=of_rank, local=of_local) for one in said)
    found.seen.extend(_scheduler(text, bool(reports)))
    world, ranks = _communicators(text)
    return found._replace(world=world, ranks=ranks, lags=ras.read(text))


def _last_start(text: str) -> str:
    """Of a log that several starts append to: what follows the last report but one of the same host."""
    begin, last = 0, {}  # type: int, Dict[str, int]
    for match in REPORT.finditer(text):
        host = FAILURE.search(match.group())
        if host:
            begin = max(begin, last.get(host["host"], 0))
            last[host["host"]] = match.end()
    return text[begin:]


def _communicators(text: str) -> Tuple[int, Dict[Tuple[str, int], int]]:
    """Ranks of the run, and each process's, by NCCL's largest communicator: smaller ones count for themselves."""
    found: Dict[int, Dict[Tuple[str, int], int]] = {}
    for line in text.splitlines():
        said, process = INIT.search(line), NCCL.search(line)
        if said and process:
            found.setdefault(int(said[2]), {})[process["node"], int(process["pid"])] = int(said[1])
    world = max(found, default=0)
    ranks = found.get(world, {})
    return world, ranks if len(set(ranks.values())) == len(ranks) else {}


def _streams(
    lines: Sequence[str], rank: Optional[int], local: Optional[int]
) -> Dict[Tuple[Optional[int], Optional[int]], List[str]]:
    """Lines by who wrote them, in order, without their prefixes; ranks write into one log between one another."""
    found: Dict[Tuple[Optional[int], Optional[int]], List[str]] = {}
    for line in lines:
        key, rest = (rank, local), line
        task = TASK.match(rest)
        rest = rest[task.end() :] if task else rest
        said = RANK.search(rest[:80])
        other = TAG.match(rest) or LOCAL.match(rest)
        if said:
            key, rest = (int(said[1]), local), rest[said.end() :]
        elif other and other.re is TAG:
            key, rest = (int(other[1]), local), rest[other.end() :]
        elif other:
            key, rest = (rank, int(other[1])), rest[other.end() :]
        found.setdefault(key, []).append(rest)
    return found


def _stream(lines: Sequence[str], of_one: bool) -> List[Seen]:
    """Of one writer the chain of exceptions that it ended by, for what came before was handled; of several each one."""
    ends = _chains(lines)
    chains = [chain for end, chain in ends if not of_one or end + LAST_WORDS >= len(lines)]
    natives: List[Seen] = []
    for line in lines:
        if NATIVE.search(line):
            natives.append(_native(line))
        elif CAUGHT.search(line):
            natives.append(Seen(LATE, line.strip()[:MOST_CHARS]))
        elif AGENT.search(line):
            code, number, pid = AGENT.findall(line)[0]
            natives.append(_ended(int(code), line.strip())._replace(local=int(number), pid=int(pid)))
        elif "NCCL WARN" in line:
            natives += [one for one in [_native(line)] if one.word != OWN]
    last = [chain[0] for chain in (chains[-1:] if of_one else chains)]
    hard = [one for chain in chains for one in chain if one.word == HARDWARE]
    return [*(hard[:1] or last), *natives]


def _native(line: str) -> Seen:
    process = NCCL.search(line)
    text = line.strip()[:MOST_CHARS]
    word = HARDWARE if "port error" in line else word_of(text)
    if text.startswith("Fatal Python error:"):
        # faulthandler's, of a signal: an abort is also how a watchdog ends a rank that waited.
        word = ABORTED if "Aborted" in text else CRASHED if "fault" in text or "Bus" in text else word
    return Seen(word, text, node=process["node"] if process else "", pid=int(process["pid"]) if process else 0)


def _chains(lines: Sequence[str]) -> List[Tuple[int, List[Seen]]]:
    """Exceptions of tracebacks and the last line of each.

    Those that followed while another was handled are one chain, the first one first.
    """
    chains: List[Tuple[int, List[Seen]]] = []
    joined, place = False, 0
    while place < len(lines):
        line = lines[place]
        if "another exception occurred" in line or "direct cause of the following" in line:
            joined = True
        if not line.lstrip().startswith("Traceback (most recent call last)"):
            place += 1
            continue
        where, place = "", place + 1
        while place < len(lines) and (lines[place][:1] in (" ", "\t", "") or not RAISED.match(lines[place])):
            frame = FRAME.match(lines[place])
            where = f"{frame[1]}:{frame[2]} in {frame[3]}" if frame else where
            place += 1
        if place < len(lines) and not IGNORED.match(lines[place]):
            whole = "\n".join(_text(lines[place : place + 1 + AFTER]))
            one = Seen(word_of(whole), lines[place].strip()[:MOST_CHARS], where=where)
            before = chains.pop()[1] if joined and chains else []
            chains.append((place, [*before, one]))
        joined = False
    return chains


def _text(lines: Sequence[str]) -> Iterator[str]:
    yield lines[0]
    for line in lines[1:]:
        if not MORE.match(line):
            return
        yield line


def _waiting(line: str, rank: Optional[int]) -> List[Waiting]:
    found = WATCHDOG.search(line)
    if not found:
        return []
    whole = found["pg"] == "0" and (not found["guid"] or "default" in found["guid"])
    who = rank if rank is not None else int(found["rank"]) if whole else None
    if who is None or not (found["guid"] or whole):
        # A number alone counts the groups of one process.
        return []
    return [Waiting(who, found["guid"] or found["pg"], *(int(found[name]) for name in ("rank", "work", "enqueued")))]


def _report(text: str) -> List[Seen]:
    """The failures of torchrun's report: rank, local rank, host and how each ended."""
    begin, found = text.find("Root Cause"), []
    for match in FAILURE.finditer(text):
        lines = [line.strip() for line in match["text"].strip().splitlines() if line.strip()]
        try:
            at = time.mktime(time.strptime(match["time"], "%Y-%m-%d_%H:%M:%S"))
        except ValueError:
            at = 0.0
        one = _ended(int(match["code"]), lines[-1] if lines else "")
        if lines and lines[0].startswith("Traceback"):
            one = Seen(word_of("\n".join(lines)), lines[-1][:MOST_CHARS])
        about = one._replace(rank=int(match["rank"]), local=int(match["local"]), node=match["host"], at=at)
        found.append(about._replace(pid=int(match["pid"]), root=match.start() > begin))
    return found


def _ended(code: int, text: str) -> Seen:
    words = {-9: KILLED, 137: KILLED, -11: CRASHED, 139: CRASHED, -7: CRASHED, 135: CRASHED, -6: ABORTED, 134: ABORTED}
    word = words.get(code, ORDERED if code in (-15, 143) else ENDED)
    return Seen(word, f"ended with {code}: {text}"[:MOST_CHARS])


def _scheduler(text: str, reported: bool) -> List[Seen]:
    """Slurm's and kubelet's words. A node that Slurm says it on is not the one that failed."""
    found: List[Seen] = []
    memory = "oom_kill event" in text or "oom-kill event" in text
    for match in SRUN.finditer(text):
        end, tasks = match["end"], match["tasks"]
        word = KILLED if end in ("Killed", "Out Of Memory") else ENDED if end.startswith("Exited") else CRASHED
        task = int(tasks) if tasks.isdigit() else None
        if not (reported and word == ENDED):
            full = memory or end == "Out Of Memory"
            found.append(Seen(word, match.group(), node=match["node"], memory=full, task=task))
    found += [Seen(NODE, match.group(), node=match[1]) for match in LOST.finditer(text) if "[" not in match[1]]
    for match in CANCELLED.finditer(text):
        word = NODE if "NODE FAILURE" in match["why"] else ORDERED
        found.append(Seen(word, match.group()))
    pod = POD.search(text)
    for pattern in (EVICTED, OOM_KILLED):
        if pattern.search(text):
            why = " ".join(line.strip() for line in text.splitlines() if re.match(r"\s*(?:Name|Reason|Message):", line))
            found.append(Seen(KILLED, why[:MOST_CHARS], node=pod[1] if pod else "", memory=pattern is OOM_KILLED))
    if memory and not any(one.memory for one in found):
        found.append(Seen(KILLED, "Slurm saw an oom_kill event", memory=True))
    return found


def _tasks_are_ranks(text: str) -> bool:
    """Where srun labels lines with the task and PyTorch with the rank, and both agree beyond 0."""
    pairs = re.findall(r"^(\d+): \[rank(\d+)\]:", text, re.M)
    return bool(pairs) and all(task == rank for task, rank in pairs) and any(task != "0" for task, _ in pairs)
