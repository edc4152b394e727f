"""Which way each rank's data went, by what NCCL itself printed: EFA is proven for every rank or for none. Pure.

nccl-tests lists its ranks with host, process and device; NCCL begins its lines with host:process:thread [device].
Ranks of one job print into one stream, so a line may begin inside another's: what stands before a known host's name
belongs to the line that it broke. Wording after NCCL 2.10 to 2.31 and aws-ofi-nccl 1.5 to 1.21.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_LISTED = re.compile(r"Rank +(\d{1,7}) .{0,40}?Pid +(\d{1,9}) on +(\S{1,255}) +device +(\d{1,4})")
_ORIGIN = re.compile(r"(\S{1,300}?):(\d{1,9}):\d{1,9} \[(\d{1,4})\] ")
_NETWORK = re.compile(r"Using network ([\w /-]+)|Assigned NET plugin ([\w /-]+?) to comm")
_PROVIDER = re.compile(r"elected [Pp]rovider is ([\w;-]+)")
_CHANNEL = re.compile(r" via NET/([\w ]+?)/\d+(\S*)")
_WANTED = ("libfabric", "aws libfabric")
PROVIDER = "efa"
LISTED = 3
"""Ranks named in a sentence."""


class RankTransport(NamedTuple):
    """One rank as nccl-tests lists it."""

    number: int
    host: str
    process: int
    device: int


@dataclass(frozen=True)
class Paths:
    """What the ranks of one log show. others: rank -> what it used in EFA's place; silent: ranks that show nothing.

    missing: ranks that the log does not list at all.
    """

    others: Mapping[RankTransport, str] = field(default_factory=dict)
    silent: tuple[RankTransport, ...] = ()
    missing: int = 0

    @property
    def fallback(self) -> str:
        """Who went another way; '' when nobody is shown to."""
        if not self.others:
            return ""
        first = sorted(self.others)[:LISTED]
        named = ", ".join(f"rank {rank.number} on {rank.host} used {self.others[rank]}" for rank in first)
        return f"{named}{_more(self.others)}, wanted EFA on every rank"

    @property
    def unproven(self) -> str:
        """Whose way the log does not show; '' when it shows everybody's."""
        if self.silent:
            first = sorted(self.silent)[:LISTED]
            named = ", ".join(f"rank {rank.number} on {rank.host}" for rank in first)
            return f"the log does not show the transport of {named}{_more(self.silent)}, wanted EFA shown by every rank"
        return f"the log lacks {self.missing} ranks, wanted every rank with its transport" if self.missing else ""

    @property
    def by_host(self) -> dict[str, str]:
        """Host, by its own name -> what its first such rank used."""
        found: dict[str, str] = {}
        for rank in sorted(self.others):
            found.setdefault(rank.host, f"rank {rank.number} used {self.others[rank]}, wanted EFA on every rank")
        return found


def _more(ranks: Iterable[RankTransport]) -> str:
    rest = len(list(ranks)) - LISTED
    return f" and {rest} more" if rest > 0 else ""


@dataclass
class _Shown:
    """What one rank, or its whole process, printed."""

    libfabric: bool = False
    efa: bool = False
    other: str = ""


def paths(lines: Iterable[str], wanted: int = 0) -> Paths:
    """Read a log of EFA nodes. wanted: how many ranks it should hold, 0 where that is not known."""
    kept = list(lines)
    listed = filter(None, map(_LISTED.search, kept))
    ranks = list({int(one[1]): RankTransport(int(one[1]), one[3], int(one[2]), int(one[4])) for one in listed}.values())
    known: dict[int, set[str]] = defaultdict(set)
    for rank in ranks:
        known[rank.process].add(rank.host)
    of_process: dict[tuple[str, int], _Shown] = defaultdict(_Shown)
    of_device: dict[tuple[str, int, int], _Shown] = defaultdict(_Shown)
    for line in kept:
        for host, process, device, text in _said(line, known):
            _take(of_device[host, process, device], of_process[host, process], text)
    sharing = Counter((rank.host, rank.process) for rank in ranks)
    others, silent = {}, []
    for rank in ranks:
        whole = of_process[rank.host, rank.process]
        alone = sharing[rank.host, rank.process] == 1
        own = whole if alone else of_device[rank.host, rank.process, rank.device]
        if own.other or (whole.other and not own.libfabric):
            others[rank] = own.other or whole.other
        elif not (own.libfabric and whole.efa):
            silent.append(rank)
    return Paths(others, tuple(silent), max(wanted - len(ranks), 0))


def _said(line: str, known: Mapping[int, set[str]]) -> Iterator[tuple[str, int, int, str]]:
    """(host, process, device, text) of each of NCCL's lines in a line, whose beginning may stand inside another's."""
    if "NCCL" not in line and "[" not in line:
        return
    speaker: tuple[str, int, int] | None = None
    at = 0
    for origin in _ORIGIN.finditer(line):
        host = _host(origin[1], known.get(int(origin[2]), set()))
        if not host:
            continue
        if speaker:
            yield *speaker, line[at : origin.start() + len(origin[1]) - len(host)]
        speaker, at = (host, int(origin[2]), int(origin[3])), origin.end()
    if speaker:
        yield *speaker, line[at:]


def _host(word: str, known: set[str]) -> str:
    """The known host whose name ends a word: what stands before it is left of a line that was broken."""
    return max((host for host in known if word.endswith(host)), key=len, default="")


def _take(device: _Shown, process: _Shown, text: str) -> None:
    network, provider, channel = _NETWORK.search(text), _PROVIDER.search(text), _CHANNEL.search(text)
    for shown in (device, process):
        if network:
            _network(shown, (network[1] or network[2]).strip())
        if channel:
            _network(shown, channel[1].strip())
            shown.efa |= "GDRDMA" in channel[2] and shown.libfabric
        if provider and provider[1] == PROVIDER:
            shown.efa = True
        elif provider and not PROVIDER.startswith(provider[1]):
            shown.other = shown.other or f"libfabric's provider {provider[1]}"


def _network(shown: _Shown, name: str) -> None:
    """Take a network's name; the beginning of the right one is a line that was cut, and shows nothing."""
    if name.lower() in _WANTED:
        shown.libfabric = True
    elif not any(wanted.startswith(name.lower()) for wanted in _WANTED):
        shown.other = shown.other or name
