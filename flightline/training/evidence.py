"""What a folder of logs or a single file says of a fault: each piece with its rank and node, where that is certain.

torchrun's folders are numbered by the local rank. It is taken for the rank only where the run is seen to be on one node
(a rendezvous of `--standalone`, whose id is a UUID; as many folders as ranks) or the launcher wrote which is which.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flightline_node.train import texts
from flightline_node.train.job_run import REFUSED, REQUEUE
from flightline_node.train.ras import Lag
from flightline_node.train.texts import Seen, Waiting
from flightline_node.train.words import word_of

from . import inspector, standing
from .flight import NAME

MAX_BYTES = 8 * 1024 * 1024
"""Of the end of a log, where the fault is."""
LOGS = {".log", ".out", ".err", ".txt", ".stderr", ".stdout"}
PLACE = re.compile(r"(?P<launcher>.*?)/?attempt_(?P<attempt>\d+)/(?P<local>\d+)/[^/]+")
RANK_FILE = re.compile(r"(?<!local)(?:^|[._-])rank[._-]?(\d+)(?=[._-]|$)", re.I)
STANDALONE = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
STARTS = "starts"
PID = re.compile(r"pid='?(\d+)")


@dataclass
class Evidence:
    """All pieces. files: how many were read. world: ranks of the run, 0 where it is not said. hosts: of ranks."""

    seen: list[Seen] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    lags: list[Lag] = field(default_factory=list)
    stalls: list[standing.SeenStall] = field(default_factory=list)
    stacks: dict[int, list[str]] = field(default_factory=dict)
    late: inspector.Lateness = field(default_factory=inspector.Lateness)
    world: int = 0
    files: int = 0


@dataclass(frozen=True)
class _Place:
    """Where a file stands. launcher: its torchrun's folder; local: of its rank there; known: ranks by local rank."""

    path: Path
    launcher: str
    attempt: int
    local: int | None
    rank: int | None


def files(place: Path) -> list[Path]:
    """Of a folder, without the starts before a launcher's last one; a single file is itself."""
    if place.is_file():
        return [place]
    found = [path for path in sorted(place.rglob("*")) if path.is_file()]
    newest: dict[str, str] = {}
    starts = {path: _start(path, place) for path in found}
    for where, number in filter(None, starts.values()):
        newest[where] = max(number, newest.get(where, ""))
    return [path for path in found if not (start := starts[path]) or newest[start[0]] == start[1]]


def done(paths: Sequence[Path]) -> bool:
    """Do the launchers whose starts these are say that the run is done?"""
    starts = [_json(path) for path in paths if path.name == "start.json"]
    return bool(starts) and all(one.get("status") == 0 for one in starts)


def failed(paths: Sequence[Path]) -> int:
    """The status that the launchers' starts ended badly with; 0 where they say of none that it did."""
    ended = [_json(path).get("status") for path in paths if path.name == "start.json"]
    return next((one for one in ended if isinstance(one, int) and one not in (0, REQUEUE, REFUSED)), 0)


def _start(path: Path, place: Path) -> tuple[str, str] | None:
    parts = path.relative_to(place).parts
    at = parts.index(STARTS) if STARTS in parts[:-2] else -1
    return ("/".join(parts[:at]), parts[at + 1]) if at >= 0 else None


def read(paths: Sequence[Path], world: int = 0) -> Evidence:
    """From these files. world: ranks of the run, where something else said it."""
    places = _sure(_last_attempts([_place(path) for path in paths]))
    errors = [(place, one) for place in places if place.path.name == "error.json" and (one := _error(place))]
    readings = [
        (place, texts.read(text, place.rank, place.local))
        for place in places
        if (text := _text(place, len(paths) == 1))
    ]
    found = Evidence(world=max([world, *(one.world for _, one in readings)]), files=len(errors) + len(readings))
    found.stalls = [one for path in paths if path.name == "start.json" for one in standing.stalls(_json(path))]
    found.stacks = standing.stacks(paths)
    found.late = inspector.read(paths)
    found.files += len(found.late.hosts) + len(found.stalls)
    found.lags = [one for _, reading in readings for one in reading.lags]
    found.waiting = [one for _, reading in readings for one in reading.waiting]
    said = [pair for _, one in readings if one.world == found.world for pair in one.ranks.items()]
    ranks = dict(said) if len({rank for _, rank in said}) == len(said) else {}
    pieces = [*errors, *((place, one) for place, reading in readings for one in _named(reading, ranks))]
    found.seen = _once(_ranked(pieces, places, found, any(one.tasks for _, one in readings)))
    found.hosts = {rank: node for (node, _), rank in ranks.items()}
    found.hosts.update({one.rank: one.node for one in found.seen if one.rank is not None and one.node})
    return found


def _place(path: Path) -> _Place:
    match, named = PLACE.fullmatch(path.as_posix()), RANK_FILE.search(path.name)
    rank = int(named[1]) if named else None
    if match:
        return _Place(path, match["launcher"], int(match["attempt"]), int(match["local"]), rank)
    return _Place(path, "", 0, None, rank)


def _last_attempts(places: Sequence[_Place]) -> list[_Place]:
    last: dict[str, int] = {}
    for place in places:
        last[place.launcher] = max(place.attempt, last.get(place.launcher, 0))
    return [place for place in places if not place.launcher or place.attempt == last[place.launcher]]


def _sure(places: Sequence[_Place]) -> list[_Place]:
    """Without the ranks in names of files that are there twice: each node counts its own."""
    named = Counter(place.path.name for place in places if place.rank is not None)
    return [replace(place, rank=None, local=place.rank) if named[place.path.name] > 1 else place for place in places]


def _error(place: _Place) -> Seen | None:
    """The error.json that torchrun left of a rank."""
    message = _json(place.path).get("message")
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    try:
        text, at = str(message["message"]), float(extra["timestamp"])  # type: ignore[index]
    except (ValueError, KeyError, TypeError):
        return None
    return Seen(word_of(text), text, place.rank, place.local, at=at)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(place: _Place, asked: bool) -> str:
    """The end of a log; '' for what is none. asked: by its own name."""
    path = place.path
    if standing.NAME.fullmatch(path.name):
        return ""
    if path.suffix not in LOGS and not (asked and path.suffix != ".json" and not NAME.fullmatch(path.name)):
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_BYTES))
        raw = file.read()
    if b"\0" in raw[:1024] or (inspector.NAME.fullmatch(path.name) and inspector.KEY in raw[:4096]):
        return ""
    return raw.decode("utf-8", "replace").replace("\r", "\n")


def _named(reading: texts.Reading, ranks: Mapping[tuple[str, int], int]) -> list[Seen]:
    """Pieces of one text, with what it says of their ranks: by process, local rank or as the only one that ended."""
    ended = [one for one in reading.seen if one.rank is not None and one.pid and one.word != texts.ORDERED]
    pids = {one.pid: one for one in ended}
    locals_ = {one.local: one for one in ended} if len({one.node for one in ended}) == 1 else {}
    prefixed = {one.rank for one in reading.seen if one.rank is not None and one.local is not None and not one.pid}

    def named(one: Seen) -> Seen:
        said = PID.search(one.text)
        same = pids.get(one.pid) or (pids.get(int(said[1])) if said else None)
        if same is None and one.local is not None:
            same = locals_.get(one.local)
        elif same is None and not one.node and one.task is None and len(ended) == 1:
            same = ended[0]
        if (one.node, one.pid) in ranks:
            return one._replace(rank=ranks[one.node, one.pid])
        if same is not None and one.word not in (texts.NODE, texts.ORDERED):
            return one._replace(rank=same.rank, node=one.node or same.node)
        return one._replace(rank=next(iter(prefixed))) if one.local is not None and len(prefixed) == 1 else one

    return [one if one.rank is not None else named(one) for one in reading.seen]


def _ranked(
    pieces: Sequence[tuple[_Place, Seen]], places: Sequence[_Place], found: Evidence, tasks: bool
) -> list[Seen]:
    """With the ranks that only all files together tell: of torchrun's folders and of Slurm's tasks."""
    known = _known(places, found)
    result = []
    for place, one in pieces:
        if one.rank is None and one.local is not None and place.launcher in known:
            rank, node = known[place.launcher].get(one.local, (None, ""))
            one = one._replace(rank=rank, node=one.node or node)
        elif one.rank is None and one.task is not None and tasks:
            one = one._replace(rank=one.task)
        result.append(one)
    return result


def _known(places: Sequence[_Place], found: Evidence) -> dict[str, dict[int, tuple[int | None, str]]]:
    """Ranks and nodes by local rank, of the folders of torchrun for which they are certain."""
    folders: dict[str, set[int]] = {}
    for place in places:
        if place.launcher and place.local is not None:
            folders.setdefault(place.launcher, set()).add(place.local)
    known: dict[str, dict[int, tuple[int | None, str]]] = {}
    for launcher, numbers in folders.items():
        about = _json(Path(launcher).parent / "start.json")
        ranks = about.get("ranks")
        if isinstance(ranks, dict):
            host = str(about.get("host") or "")
            known[launcher] = {int(local): (int(rank), host) for local, rank in ranks.items()}
        elif STANDALONE.match(Path(launcher).name) or (len(folders) == 1 and found.world == len(numbers)):
            known[launcher] = {number: (number, "") for number in numbers}
    return known


def _once(seen: Sequence[Seen]) -> list[Seen]:
    """Without what a log that has all ranks' lines repeats of theirs."""
    named = {(one.word, one.text) for one in seen if one.rank is not None}
    return [one for one in seen if one.rank is not None or (one.word, one.text) not in named]
