"""NCCL's RAS (2.24 and later): which ranks lag or are not heard of, while the job lives.

Asked by its text protocol, read from its text. Counts of a healthy job differ as well for a moment: a rank that lags is
one that lags by the same counts in two answers. Source: NCCL user guide, "RAS", and src/ras/client_support.cc of 2.30.
"""

from __future__ import annotations

import re
import socket
import time
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

ADDRESS = "localhost:28028"
"""Default of NCCL_RAS_ADDR."""
FILE = "ras.txt"
"""In a start's folder."""
COMMAND = b"VERBOSE STATUS\n"
DEADLINE_S = 10.0
"""All ranks of a node listen at one port (SO_REUSEPORT), also a stopped one, for which RAS itself waits 5 s."""
PAUSE_S = 2.0
MOST_BYTES = 1 << 20
SILENT, DEAD, BEHIND, MISMATCH, OPEN = "silent", "dead", "behind", "mismatch", "open"
"""OPEN: something is wrong, and not certain with whom."""
_ANSWER = re.compile(r"^NCCL version ", re.M)
_GROUP = re.compile(r"^ +(\d+) +(\d+) +\d+ +\S+ +(\d+) +\d+ +[A-Z]\S* +\S+", re.M)
_GPUS = re.compile(r"\(total\) *\n(?: +\d\S*)+ +(\d+) *$", re.M)
"""Of the job, the last number of its summary."""
_PART = re.compile(r"^(?:#(\d+-\d+) \(\w+\) (\w+)|(DEAD|INCOMPLETE|TIMEOUT|Errors|Warnings))$", re.M)
_COUNT = re.compile(r"(\d+) ranks have (?:launched up to operation (\d+)|not launched any)")
_RANK = re.compile(
    r"Rank (\d+)(?: has (?:launched up to operation (\d+)|(not launched) any operations))? -- "
    r"GPU (\d+).* managed by process (\d+) on node (\S+)"
)
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPUs? (\d+)")
_OLD = re.compile(r"The missing rank: (\d+)")


class Lag(NamedTuple):
    """What holds a job up. rank: None where it is not certain; text: for people; node: its address."""

    word: str
    rank: Optional[int]
    device: Optional[int]
    text: str
    node: str = ""


class _Member(NamedTuple):
    rank: int
    device: int
    pid: int
    node: str


Counts = Dict[Tuple[str, str], Tuple[int, Dict[_Member, int]]]
"""By communicator and collective: how many most ranks have launched, and how many those that are listed."""


def asked(address: str = ADDRESS, pause_s: float = PAUSE_S) -> str:
    """Two answers of the job on this node, one after the other; '' where nobody listens.

    Raises TimeoutError where somebody listens and says nothing: the kernel accepts for a process that is stopped.
    """
    first = _answered(address)
    if first is None:
        return ""
    if not first:
        raise TimeoutError(
            f"RAS at {address} takes connections and gave no answer, asked twice for {DEADLINE_S:.0f} s: "
            "its process may be stopped or stuck"
        )
    time.sleep(pause_s)
    return f"{first}\n{_answered(address) or ''}"


def _answered(address: str) -> Optional[str]:
    said = _answer(address)
    return said if said or said is None else _answer(address)


def _answer(address: str) -> Optional[str]:
    """'' for no answer, None where nobody listens."""
    host, _, port = address.rpartition(":")
    pieces: List[bytes] = []
    try:
        with socket.create_connection((host, int(port)), DEADLINE_S) as peer:
            peer.sendall(COMMAND)
            until = time.monotonic() + DEADLINE_S
            while time.monotonic() < until and sum(map(len, pieces)) < MOST_BYTES:
                pieces.append(peer.recv(65536))
                if not pieces[-1]:
                    break
    except (ConnectionRefusedError, socket.gaierror, ValueError):
        return None
    except OSError:
        pass
    return b"".join(pieces).decode("utf-8", "replace")


def read(text: str) -> List[Lag]:
    """Who holds the job up, by the last answer in a text."""
    answers = _ANSWER.split(text)[1:]
    if not answers:
        return []
    whole = _whole(answers[-1])
    return _unheard(answers[-1], whole) or _lagging([_counts(one) for one in answers[-2:]], whole)


def _whole(answer: str) -> bool:
    """Are ranks of the first communicator those of the job? A smaller one counts for itself."""
    groups = {int(found[1]): (int(found[2]), int(found[3])) for found in _GROUP.finditer(answer)}
    gpus = _GPUS.search(answer)
    comms, ranks = groups.get(0, (0, 0))
    return comms == 1 and ranks >= max([int(gpus[1]) if gpus else 0, *(size for _, size in groups.values())])


def _parts(answer: str) -> List[Tuple[str, str, str]]:
    """Communicator ('' for the job), kind and lines of each part."""
    marks = list(_PART.finditer(answer))
    ends = [one.start() for one in marks[1:]] + [len(answer)]
    return [(one[1] or "", one[2] or one[3], answer[one.end() : end]) for one, end in zip(marks, ends)]


def _unheard(answer: str, whole: bool) -> List[Lag]:
    """Processes that answer no more; the one of them, where it is one."""
    parts = _parts(answer)
    gone = {(kind, found.groups()) for of, kind, lines in parts if not of for found in _PROCESS.finditer(lines)}
    ranks = {
        _member(found) for of, kind, lines in parts if of and kind == "INCOMPLETE" for found in _RANK.finditer(lines)
    }
    old = {int(found[1]) for of, kind, lines in parts if of == "0-0" for found in _OLD.finditer(lines)}
    if not gone and not ranks:
        return []
    places = {(one.pid, one.node) for one in ranks} | {(int(pid), node) for _, (pid, node, _) in gone}
    if len(places) != 1:
        return [Lag(OPEN, None, None, f"RAS hears nothing of {len(places)} processes")]
    (pid, node), dead = places.pop(), any(kind == "DEAD" for kind, _ in gone)
    devices = {one.device for one in ranks} | {int(device) for _, (_, _, device) in gone}
    known = ({one.rank for one in ranks} or old) if whole else set()
    said = "considers dead" if dead else "hears nothing of"
    return [Lag(DEAD if dead else SILENT, *_one(known, devices), f"RAS {said} process {pid} on node {node}", node)]


def _one(ranks: Set[int], devices: Set[int]) -> Tuple[Optional[int], Optional[int]]:
    return (ranks.pop() if len(ranks) == 1 else None), (devices.pop() if len(devices) == 1 else None)


def _member(found: re.Match[str]) -> _Member:
    return _Member(int(found[1]), int(found[4]), int(found[5]), found[6])


def _counts(answer: str) -> Counts:
    found: Counts = {}
    for of, kind, lines in _parts(answer):
        for block in lines.split("Communicator ranks have different ")[1:] if of and kind == "MISMATCH" else ():
            what, told, rest = block.partition(" operation counts")
            if told:
                found[of, what] = _launched(rest)
    return found


def _launched(lines: str) -> Tuple[int, Dict[_Member, int]]:
    sizes: Dict[int, int] = {}
    members: Dict[_Member, int] = {}
    last = 0
    for line in lines.splitlines():
        several, single = _COUNT.search(line), _RANK.search(line)
        if several:
            last = int(several[2] or 0)
            sizes[last] = int(several[1])
        elif single:
            # Ranks that share a count stand below it, a single one says its own.
            count = int(single[2] or 0) if single[2] or single[3] else last
            members[_member(single)] = count
            sizes.setdefault(count, 1)
    return max(sizes, key=lambda count: sizes[count], default=0), members


def _lagging(answers: List[Counts], whole: bool) -> List[Lag]:
    """The rank that has launched less than most and stays so; in another order where it is ahead elsewhere."""
    if not answers[-1]:
        return []
    if len(answers) == 1:
        return [Lag(OPEN, None, None, "RAS sees ranks apart; a second answer would tell whether they stay so")]
    stays = {key: value for key, value in answers[1].items() if answers[0].get(key) == value}
    if not stays:
        return []
    rows = [(key, most, one, count) for key, (most, listed) in stays.items() for one, count in listed.items()]
    behind = {one for _, most, one, count in rows if count < most}
    if len({(one.pid, one.node) for one in behind}) != 1:
        names = ", ".join(f"{one.rank} ({one.node})" for one in sorted(behind)[:8]) or "not told which"
        return [Lag(OPEN, None, None, f"RAS sees ranks apart that do not come on: behind are {names}")]
    late = min(behind)
    (of, what), most, _, count = next(row for row in rows if row[2] == late and row[3] < row[1])
    text = f"process {late.pid} on node {late.node} has launched {count} {what}, most others {most}"
    word = MISMATCH if any(one == late and count > most for _, most, one, count in rows) else BEHIND
    return [Lag(word, late.rank if whole and of == "0-0" else None, late.device, f"RAS: {text}, and it stays so",
                late.node)]  # fmt: skip
