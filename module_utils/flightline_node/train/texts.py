"""What a log says of a fault: tracebacks, torchrun's report, lines of NCCL, the watchdog, Slurm and kubelet. Pure.

A line is one rank's only where its prefix says so; what says no rank is kept without one.
"""

from __future__ import annotations

import re
import time
from typing import Dict, Iterator, List, Match, NamedTuple, Optional, Sequence, Tuple

from . import named, ras
from .words import HARDWARE, LATE, MEMORY, OWN, word_of

KILLED, CRASHED, ABORTED, ENDED, NODE, ORDERED = "killed", "crashed", "aborted", "ended", "node", "ordered"
"""KILLED: by SIGKILL. ENDED: with a status and no word why. NODE: the scheduler lost it. ORDERED: told to end."""
MOST_CHARS = 500
AFTER = 5
"""Lines behind an exception's own that belong to its text, such as NCCL's last error."""
LAST_WORDS = 60
"""Lines that may follow the exception that a process ended by: of its threads, and stacks. Own choice."""
RANK = re.compile(r"\[rank(\d+)\]: ?")
LOCAL = re.compile(r"\[(?:default|worker|trainer)(\d+)\]: ?")
TAG = re.compile(r"\[(?:1,)?(\d+)\]<std\w+>: ?")
SAID = re.compile(r"\(?(?:rank|Rank)[ =]?(\d+)(?:\)|\)?:) ?")
WORKER = re.compile(
    r"\(\w[^()]*pid=\d+[^()]*\) ?|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:DP0 )?(?:PP0 )?TP\d+(?: EP\d+)?\] ?"
)
WORKER_RANK = re.compile(r" rank=(\d+)|\(\w*Worker[ _](?:PP0_)?TP(\d+)|^\[.* TP(\d+)")
"""vLLM's, Ray's and SGLang's; a tensor parallel number is the rank where no other kind is said."""
LOGGER = re.compile(r"(?:ERROR|CRITICAL|WARNING|INFO) (?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d \[[\w./]+:\d+\] ?")
HOSTED = re.compile(r"\[([A-Za-z][\w.-]*):(\d{1,2})\]: ?")
"""accelerate's and torchrun's role or host, and the local rank."""
SPAWNED = re.compile(r"-- Process \d+ terminated with the following error")
BEGIN = "Traceback (most recent call last)"
TASK = re.compile(r"(\d+): ")
RAISED = re.compile(r"(?:\w+\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure)\b.*|\w[\w.]*: .*")
ERROR = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")
FRAME = re.compile(r'\s+File "(.+)", line (\d+), in (.+)')
NATIVE = re.compile(r"what\(\):|Cuda failure|NVRM: Xid|^CUDA error:|^Fatal Python error:|Got async event")
OWN_WATCHDOG = re.compile(
    r"(?:Process group watchdog thread|NCCL watchdog thread) terminated with exception: (CUDA error)"
)
NUMBER = re.compile(
    r"\b[Rr]ank (?P<rank>\d+)[^\n]{0,60}?: (?:[Ff]ound|Unexpected result|[Dd]etected) (?:NaN|Inf|nan|inf|unexpected)\b"
    r"|[Ff]ound (?:NaN|Inf)[^\n]{0,60} on rank (?P<on>\d+)\b"
)
"""Megatron's, of a rank's own loss or gradient."""
NCCL = re.compile(r"(?P<node>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\]")
INIT = re.compile(r"comm 0x\w+ rank (\d+) nranks (\d+)")
WATCHDOG = re.compile(
    r"\[PG (?:ID )?(?P<pg>\d+)(?: PG GUID (?P<guid>\S+)| \((?P<name>\w+)\))? Rank (?P<rank>\d+)\]"
    r".*at (?:NCCL )?work: (?P<work>\d+), last enqueued NCCL work: (?P<enqueued>\d+)"
)
CAUGHT = re.compile(r"\[Rank \d+\] Watchdog caught collective operation timeout: WorkNCCL\(|watchdog got stuck for \d+")
REPORT = re.compile(
    r"^[^\n]*(?:(?:(?:Failures:|FAILED)\s*$|\btime\s*: \d{4}-\d\d-\d\d_|\brank\s*: \d+ \(local_rank: \d+\)).*?)?"
    r"Root Cause \(first observed failure\):.*?(?:^[^\n]*={20,}[^\n]*$|\Z)",
    re.M | re.S,
)
"""Of a text that was cut its begin or end may lack."""
BEFORE = re.compile(
    r"^(?:\d+: ?|\[rank\d+\]: ?|\[(?:1,)?\d+\]<std\w+>: ?|\[default\d+\]: ?|[EWI]\d{4} .*?\] ?|\(\w+ pid=[^)]*\) ?)+",
    re.M,
)
"""What stands before the lines of a report."""
FAILURE = re.compile(
    r"(?:(?:\btime\s*: (?P<time>\S+)\s+)?\bhost\s*: (?P<host>\S+)\s+)?"
    r"\brank\s*: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\)"
    r"(?:\s+exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"
    r"(?:\s+error_file\s*: .*?\n\s*traceback\s*: (?P<text>.*?)(?=^\s*\[\d+\]:|^[^\n]*[-=]{20,}|\Z))?)?",
    re.M | re.S,
)
AGENT = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
SRUN = re.compile(
    r"srun: error: (?P<node>[\w.-]+): tasks? (?P<tasks>[\d,-]+): "
    r"(?P<end>Killed|Out Of Memory|Exited with.*|Segmentation fault.*|Bus error.*|Aborted.*)"
)
ABORTING = re.compile(r"Job step aborted|srun: Terminating StepId")
"""After it Slurm kills the tasks that are left."""
LOST = re.compile(r"srun: error: Node failure on ([\w.,\[\]-]+)")
CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+(?P<why>.*?)\*\*\*")
POD = re.compile(r"^Node:\s+([\w.-]+)", re.M)
EVICTED, OOM_KILLED = re.compile(r"Reason:\s+Evicted"), re.compile(r"Reason:\s+OOMKilled")
OURS = re.compile(r"^(?:\d+: ?)?flightline-train: .*\n?", re.M)
"""The launcher's own lines repeat what ranks said, of whatever start, and are none of a rank's."""
MORE = re.compile(r"nccl\w+:|Last error|CUDA|Cuda|Net |\w*[Ss]ocket\w*|Call to|Search for|Compile with|\s+\S")
IGNORED = re.compile(
    r"(?:\w+\.)*(?:ChildFailedError|CalledProcessError|SignalException|KeyboardInterrupt|SystemExit"
    r"|ProcessRaisedException|ProcessExitedException"
    r"|ray\.exceptions\.(?:OutOfMemory|ActorDied|RayActor|WorkerCrashed|NodeDied)Error)"
)
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
    text = _last_start(OURS.sub("", named.plain(text)))
    reports = [match.group() for match in _reports(text)]
    lines = (REPORT.sub("", text) if reports else text).splitlines()
    if named.starts_ranks(text) and _labelled(lines):
        lines = [TASK.sub(r"[rank\1]: ", line, count=1) if not RANK.search(line[:80]) else line for line in lines]
    streams = _streams(lines, rank, local)
    found = Reading([one for part in reports for one in _report(part)], [], {}, 0, _tasks_are_ranks(text))
    for (of_rank, of_local), lines in streams.items():
        found.waiting.extend(one for line in lines for one in _waiting(line, of_rank))
        said = _stream(lines, of_rank is not None)
        found.seen.extend(
            one._replace(
                rank=one.rank if of_rank is None else of_rank, local=one.local if of_local is None else of_local
            )
            for one in said
        )
    found.seen.extend(_scheduler(text, bool(reports)))
    found.seen.extend(_named(text))
    if named.one_node(text):
        found.seen[:] = [one._replace(rank=one.local) if one.rank is None else one for one in found.seen]
    world, ranks = _communicators(text)
    return found._replace(world=world, ranks=ranks, lags=ras.read(text))


def _named(text: str) -> Iterator[Seen]:
    """Whom a launcher or a library names, each by itself."""
    for one in named.read(text):
        for rank in one.ranks or (None,):
            yield Seen(one.word, one.text[:MOST_CHARS], rank, one.local, one.node, root=one.first)


def _reports(text: str) -> List[Match[str]]:
    return list(REPORT.finditer(text)) if "Root Cause (first observed failure):" in text else []


def _last_start(text: str) -> str:
    """Of a log that several starts append to: what follows the last report but one of the same host."""
    begin, last = 0, {}  # type: int, Dict[str, int]
    for match in _reports(text):
        host = next((one["host"] for one in FAILURE.finditer(match.group()) if one["host"]), "")
        if host:
            begin = max(begin, last.get(host, 0))
            last[host] = match.end()
    return text[begin:]


def _communicators(text: str) -> Tuple[int, Dict[Tuple[str, int], int]]:
    """Ranks of the run, and each process's, by NCCL's largest communicator: smaller ones count for themselves."""
    found: Dict[int, Dict[Tuple[str, int], int]] = {}
    for line in text.splitlines():
        said = INIT.search(line)
        process = NCCL.search(line) if said else None
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
    speaker: Optional[Tuple[Optional[int], Optional[int]]] = None
    for line in lines:
        key, rest = _whose(line, rank, local)
        if key != (rank, local):
            speaker = key if BEGIN in rest and not rest.lstrip().startswith(BEGIN) else None
            rest = rest[rest.index(BEGIN) :] if speaker else rest
        elif SPAWNED.match(rest):
            speaker = (rank, int(rest.split()[2]))
        elif speaker:
            # A logger puts its prefix before the first line of an exception alone.
            key = speaker
            speaker = speaker if not rest[:1].strip() or rest.startswith(BEGIN) else None
        found.setdefault(key, []).append(rest)
    return found


def _labelled(lines: Sequence[str]) -> bool:
    """Does srun label nearly all lines, with the tasks of several ranks?"""
    tasks = [said[1] for line in lines for said in [re.match(r"(\d+): (?!\[)", line)] if said]
    said = [re.match(r"(\d+): \[rank(\d+)\]", line) for line in lines]
    agree = all(one[1] == one[2] for one in said if one)
    return agree and len(set(tasks)) > 1 and len(tasks) * 10 >= 9 * sum(bool(line.strip()) for line in lines)


def _whose(line: str, rank: Optional[int], local: Optional[int]) -> Tuple[Tuple[Optional[int], Optional[int]], str]:
    """Rank and local rank of a line, and the line without its prefixes."""
    task = TASK.match(line)
    rest = line[task.end() :] if task else line
    said = RANK.search(rest[:80])
    if said:
        return (int(said[1]), local), rest[said.end() :]
    other = TAG.match(rest) or LOCAL.match(rest) or SAID.match(rest) or WORKER.match(rest) or HOSTED.match(rest)
    if not other:
        return (rank, local), rest
    rest = rest[other.end() :]
    if other.re is LOCAL:
        return (rank, int(other[1])), rest
    if other.re is HOSTED:
        return (rank, int(other[2])), rest
    if other.re is WORKER:
        logged, said = LOGGER.match(rest), WORKER_RANK.search(other.group())
        number = int(next(filter(None, said.groups()))) if said else rank
        return (number, local), rest[logged.end() :] if logged else rest
    return (int(other[1]), local), rest


def _stream(lines: Sequence[str], of_one: bool) -> List[Seen]:
    """Of one writer the chain of exceptions that it ended by, for what came before was handled; of several each one."""
    ends = _chains(lines) or _cut(lines, of_one)
    chains = [chain for end, chain in ends if not of_one or end + LAST_WORDS >= len(lines)]
    natives: List[Seen] = []
    for line in lines:
        if NATIVE.search(line) or OWN_WATCHDOG.search(line) or NUMBER.search(line):
            natives.append(_native(line)._replace(rank=_names(line)))
        elif CAUGHT.search(line):
            natives.append(Seen(LATE, line.strip()[:MOST_CHARS]))
        elif AGENT.search(line):
            code, number, pid = AGENT.findall(line)[0]
            natives.append(_ended(int(code), line.strip())._replace(local=int(number), pid=int(pid)))
        elif "WorkerProc failed to start" in line:
            natives.append(Seen(ENDED, line.strip()))
        elif "NCCL WARN" in line:
            natives += [one for one in [_native(line)] if one.word != OWN]
    last = [chain[0] for chain in (chains[-1:] if of_one else chains)]
    hard = [one for chain in chains for one in chain if one.word == HARDWARE]
    return [*(hard[:1] or last), *natives]


def _cut(lines: Sequence[str], of_one: bool) -> List[Tuple[int, List[Seen]]]:
    """Exceptions whose traceback the text lacks: a rank's last; of several only what no other rank causes."""
    said = [(place, line) for place, line in enumerate(lines) if ERROR.match(line) and not IGNORED.match(line)]
    found = [(place, [Seen(word_of("\n".join(_text(lines[place : place + 1 + AFTER]))), line.strip()[:MOST_CHARS])])
             for place, line in said]  # fmt: skip
    return found if of_one else [one for one in found if one[1][0].word in (HARDWARE, MEMORY)]


def _names(line: str) -> Optional[int]:
    """The rank whose own failure a line says; one of a group other than the default is not that of all."""
    number, thread = NUMBER.search(line), OWN_WATCHDOG.search(line)
    if number:
        return int(number["rank"] or number["on"])
    group = re.search(r"\[PG (?:ID )?\d+[^\]]*\]", line)
    said = re.search(r"Rank (\d+)\]", line)
    return int(said[1]) if thread and said and (not group or "default_pg" in group.group()) else None


def _native(line: str) -> Seen:
    process = NCCL.search(line)
    text = line.strip()[:MOST_CHARS]
    text = OWN_WATCHDOG.sub(r"\1", text)
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
    name = found["guid"] or found["name"]
    whole = found["pg"] == "0" and (not name or "default" in name)
    who = rank if rank is not None else int(found["rank"]) if whole else None
    if who is None or not (name or whole):
        # A number alone counts the groups of one process.
        return []
    return [Waiting(who, name or found["pg"], *(int(found[name]) for name in ("rank", "work", "enqueued")))]


def _report(text: str) -> List[Seen]:
    """The failures of torchrun's report: rank, local rank, host and how each ended."""
    text = BEFORE.sub("", text)
    begin, found = text.find("Root Cause"), []
    for match in FAILURE.finditer(text):
        lines = [line.strip() for line in (match["text"] or "").strip().splitlines() if line.strip()]
        at = _time(match["time"])
        one = _ended(int(match["code"] or 1), lines[-1] if lines else "")
        if lines and lines[0].startswith("Traceback"):
            one = Seen(word_of("\n".join(lines)), lines[-1][:MOST_CHARS])
        about = one._replace(rank=int(match["rank"]), local=int(match["local"]), node=match["host"] or "", at=at)
        found.append(about._replace(pid=int(match["pid"] or 0), root=match.start() > begin))
    # A failure whose begin is cut off may be as early as the first; an agent reports its own node's alone.
    return [one if one.at or one.root else one._replace(at=found[-1].at, node=found[-1].node) for one in found]


def _time(said: Optional[str]) -> float:
    try:
        return time.mktime(time.strptime(said or "", "%Y-%m-%d_%H:%M:%S"))
    except ValueError:
        return 0.0


def _ended(code: int, text: str) -> Seen:
    words = {-9: KILLED, 137: KILLED, -11: CRASHED, 139: CRASHED, -7: CRASHED, 135: CRASHED, -6: ABORTED, 134: ABORTED}
    word = words.get(code, ORDERED if code in (-15, 143) else ENDED)
    return Seen(word, f"ended with {code}: {text}"[:MOST_CHARS])


def _scheduler(text: str, reported: bool) -> List[Seen]:
    """Slurm's and kubelet's words. A node that Slurm says it on is not the one that failed."""
    found: List[Seen] = []
    memory = "oom_kill event" in text or "oom-kill event" in text
    ended = list(SRUN.finditer(text))
    shared = any("-" in one["tasks"] or "," in one["tasks"] for one in ended)
    direct, stop = named.starts_ranks(text), ABORTING.search(text)
    for match in ended:
        end, tasks = match["end"], _numbers(match["tasks"])
        killed = end in ("Killed", "Out Of Memory") or end.endswith(" 137")
        word = KILLED if killed else ENDED if end.startswith("Exited") else CRASHED
        after = end == "Killed" and stop and stop.start() < match.start()
        if after or (reported and word == ENDED):
            continue
        full = memory or end == "Out Of Memory"
        # A launcher in a task's place is not itself ended by a signal. "Out Of Memory" slurmstepd says of whatever
        # task of the step ends on that node after an OOM kill, also of a launcher (slurmstepd's _send_exit_msg).
        ranks = direct and (shared or end == "Killed" or word == CRASHED) and word != ENDED
        seen = Seen(word, match.group(), node=match["node"], memory=full)
        if len(tasks) > 1 and (not ranks or tasks[0] == 0 or len(tasks) > named.MOST):
            found.append(seen)
        else:
            found.extend(seen._replace(task=task, rank=task if ranks else None) for task in tasks)
    found += [Seen(NODE, match.group(), node=match[1]) for match in LOST.finditer(text) if "[" not in match[1]]
    for match in CANCELLED.finditer(text):
        word = NODE if "NODE FAILURE" in match["why"] else ORDERED
        before = any(one.start() < match.start() and not one["end"].startswith("Exited") for one in ended)
        if word == NODE or not (before or memory):
            found.append(Seen(word, match.group()))
    pod = POD.search(text)
    for pattern in (EVICTED, OOM_KILLED):
        if pattern.search(text):
            why = " ".join(line.strip() for line in text.splitlines() if re.match(r"\s*(?:Name|Reason|Message):", line))
            found.append(Seen(KILLED, why[:MOST_CHARS], node=pod[1] if pod else "", memory=pattern is OOM_KILLED))
    if memory and not any(one.memory for one in found):
        found.append(Seen(KILLED, "Slurm saw an oom_kill event", memory=True))
    return found


def _numbers(text: str) -> List[int]:
    """1-3,5 as 1, 2, 3, 5."""
    found: List[int] = []
    for part in text.strip(",-").split(","):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _tasks_are_ranks(text: str) -> bool:
    """Where srun labels lines with the task and PyTorch with the rank, and both agree beyond 0."""
    pairs = re.findall(r"^(\d+): \[rank(\d+)\]:", text, re.M)
    return bool(pairs) and all(task == rank for task, rank in pairs) and any(task != "0" for task, _ in pairs)
