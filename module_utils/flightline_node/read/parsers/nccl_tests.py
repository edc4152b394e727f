"""nccl-tests output: the *_perf programs, one log per collective.

Columns differ by version (root and redop come and go, `error` became `#wrong`), so a row is
read by the header above it. NCCL's lines come into the middle of a row, because a row is printed in
pieces, and into the middle of a number, because a launcher passes on whatever it has read; what
stands before NCCL's line and what follows it are put together again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from statistics import median
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import nccl_files, nccl_summary
from .lazy import Lazy
from .nccl_files import BY_FILE, COLLECTIVES
from .ranks import MAX_LINE, lines

FILES = nccl_files.FILES
LATER = True

MAX_DIGITS = 18
MAX_PIECES, MAX_COLUMNS = 16, 64
MOST_WITHOUT_HEADER = 13
MAX_SIZES = 64
"""The largest; a test by doubling has 30."""
SMALL_BYTES, LEAST_SMALL = 1 << 10, 3
"""Up to this size a published table is flat: the start-up alone is measured; so many sizes have a middle one."""
_REDOP = 3
_REDUCING, _COPYING = {"all_reduce", "reduce_scatter", "reduce"}, {"all_gather", "broadcast", "alltoall"}
"""The first print an operation in their redop column, the second `none`; what the others print has changed."""
_GROUPS = ("out-of-place", "in-place")
"""Each with its time, algbw, busbw and #wrong; a header without both is torn."""

_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z][a-z0-9_]*(?:\s|$)")
_BEGUN = re.compile(r"\s*\d+(?:\s+\d+(?:\s+[a-z][a-z0-9_]*(?:\s+[\w.+\-/]+)*)?)?\s*")
_TORN = re.compile(r"\s+\d{4,18}(?:\s+\d{1,18})?\s*")
"""A row cut within its first numbers: NCCL begins a warning with an empty line."""
_FIRST = re.compile(r"\s*\d+")
_NUMBERS = re.compile(r"\s*(?:[-.]?\d[\d.e+\-]*|N/A|-?nan|-?inf)(?:\s|$)")
_ORIGIN = re.compile(r":\d+:\d+ \[\d+\]")
_PLAIN_ROW = re.compile(r"\s*(\d[\d_]*)\s+(\d+(?:\.\d+)?)\s+\d+(?:\.\d+)?\s+(\d+(?:\.\d+)?)\s*")
"""A row of the all_reduce benchmarks in PyTorch that copy the table, without checks: size, time, algbw, busbw."""
_STAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s*$")
_GLUED = re.compile(r"(-1(?=\S)|\d+(?:\.\d*)?(?=[A-Za-z])|N/A(?=\S))")
_NTHREAD = re.compile(r"(?:# *)?nThreads? +(\d+) +nGpus +(\d+) +min[Bb]ytes +(\d+) +max[Bb]ytes +(\d+)")
_VALIDATION = re.compile(r"(?:validation|check): *(\d+)")
_STARTING = re.compile(r"# *Collective test starting: *(\S+)")
_COMMAND = re.compile(r"(?:^|[/\s])([a-z_]{2,20})_perf(?:_mpi)? ")
_RANK = re.compile(r"# +Rank +(\d+) (?: *Group +(\d+) )?.*? on +(\S+) +device")
_BOUNDS = re.compile(r"#? *Out of bounds values *: *(\d+)")
_AVERAGE = re.compile(r"#? *Avg bus bandwidth *: *(\S+) *(FAILED)?")
_VERSION = re.compile(r"# *nccl-tests version +(\S+)")
_BITWISE = re.compile(r"#? *Bitwise mismatches *: *(\d+)")
_NRANKS = re.compile(r" nranks (\d+) ")
_UNMARKED = ("nThread", "Rank ", "size ", "Out of bounds values", "Avg bus bandwidth", "nccl-tests version")
"""Comment lines without their #: as printed until 2019, or as a web page shows them."""
_FAILURES = (
    "NCCL failure", "CUDA failure", "Cuda failure", "Test failure", "Test timeout", "Invalid number of GPUs",
    "Incompatible NCCL versions", "is not supported by this test", "requires enabling symmetric memory", "invalid size",
    "Segmentation fault", "Bus error", "terminate called", "noticed that process", "srun: error:",
    "error while loading shared libraries", "exited on signal", "non-zero exit code",
)  # fmt: skip
"""How a test, or what started it, says that it ended badly. A row that was torn does not say so."""


_OWN = Lazy(
    r"invalid (?:usage|argument|size)|Invalid number of GPUs|not supported by this test|requires enabling symmetric"
)
"""The test was asked for what it does not do."""


def collective_of(file: str) -> str:
    """The collective a log is of, by its file name; '' when the name says nothing."""
    return BY_FILE.get(file, "")


class _TestRun:
    """One test in the making."""

    def __init__(self, collective: str) -> None:
        self.facts: Facts = {"collective": collective}
        self.columns: Tuple[str, ...] = ()
        self.rows: List[Dict[str, Any]] = []
        self.ranks: Set[int] = set()
        self.hosts: Set[str] = set()
        self.groups: Dict[int, Dict[int, str]] = {}
        self.redops: Set[str] = set()
        self.named = False
        self.started = False
        self.damaged = 0
        self.bench = False
        self.width = 0
        self.threads_gpus: Optional[int] = None
        self.nranks: Optional[int] = None
        self.errors: List[str] = []

    def refused(self, word: Optional[str], what: str) -> None:
        """The test's own word on its result."""
        if word:
            self.facts.setdefault("refused", []).append(what)

    def _only_ends_missing(self, rows: List[Dict[str, Any]]) -> bool:
        """Is it a whole table without its closing lines, as people quote it?

        One that a heading announced must reach the size asked for: else the test hangs at the next.
        """
        facts, counts = self.facts, [value for row in rows for value in row["wrong"]]
        if self.bench and rows:
            return True
        asked = facts.get("requested_max_bytes")
        reached = not self.started if asked is None else bool(rows) and 2 * rows[-1]["bytes"] > asked
        bad = self.damaged or self.errors or not counts or any(counts) or facts.get("out_of_bounds")
        return bool(rows) and reached and not bad

    @property
    def touched(self) -> bool:
        return self.started or self.bench or bool(self.rows or self.columns or self.damaged)

    def finish(self) -> Facts:
        facts, rows = self.facts, self.rows
        others = _REDUCING if "none" in self.redops else _COPYING if self.redops else ()
        if facts["collective"] in others and not self.named:
            facts["collective"] = ""
        # They are numbered from 0: a log in which some of their lines are missing still shows the last one.
        ranks = max(self.ranks) + 1 if self.ranks else self.nranks or self.threads_gpus
        if ranks:
            facts["ranks"] = ranks
        if self.hosts:
            facts["hosts"] = len(self.hosts)
        if len(self.groups) > 1:
            largest = max(self.groups.values(), key=len)
            facts.update(groups=len(self.groups), group_ranks=len(largest), group_hosts=len(set(largest.values())))
        facts["rows"] = len(rows)
        if rows:
            best = max(rows, key=lambda row: (row["bytes"], row["busbw"]))
            facts["min_bytes"] = min(row["bytes"] for row in rows)
            facts["max_bytes"] = best["bytes"]
            facts["peak_busbw_gb_s"] = max(row["busbw"] for row in rows)
            facts["largest"] = {"bytes": best["bytes"], "busbw_gb_s": best["busbw"], "time_us": best["time"]}
            facts["sizes"] = _sizes(rows)
            facts.update(_wrong(rows))
            facts.update(_latency(rows))
        if self.damaged:
            facts["damaged_rows"] = self.damaged
        if self.errors:
            facts["errors"] = self.errors[:20]
            facts["cause"] = _cause(self.errors)
        stalls = _stalls(rows)
        if stalls:
            facts["stalled_sizes"] = stalls
        closed = "avg_busbw_gb_s" in facts and "out_of_bounds" in facts and not self.damaged
        if not closed and self._only_ends_missing(rows):
            facts["excerpt"] = True
        facts["complete"] = closed or "excerpt" in facts
        return facts


def _cause(errors: List[str]) -> str:
    """The line that says why: CUDA's or NCCL's words are in quotes, what follows it only says where."""
    return next((line for line in errors if "'" in line), errors[0])


def _wrong(rows: List[Dict[str, Any]]) -> Facts:
    """{wrong} of the #wrong columns, or {wrong: None, max_error} of the older error columns.

    An `error` is the largest deviation seen, a rounding error of 1e-06 among them: it is no count.
    """
    counts = [value for row in rows for value in row["wrong"]]
    errors = [value for row in rows for value in row["error"]]
    found: Facts = {"wrong": sum(counts) if counts else None}
    if errors:
        found["max_error"] = max(errors)
    return found


def _sizes(rows: List[Dict[str, Any]]) -> List[Facts]:
    """The best of each message size, by size; a test over several types or operations prints a size more than once.

    In place is None where the collective has none (N/A), or the row is 0 bytes.
    """
    found: Dict[int, Facts] = {}
    for row in rows:
        one = found.setdefault(row["bytes"], {"bytes": row["bytes"], "busbw_gb_s": 0.0, "in_place_gb_s": None})
        one["busbw_gb_s"] = max(one["busbw_gb_s"], row["busbw"])
        if row["in_place"] is not None:
            one["in_place_gb_s"] = max(one["in_place_gb_s"] or 0.0, row["in_place"])
    return [found[size] for size in sorted(found)[-MAX_SIZES:]]


def _stalls(rows: List[Dict[str, Any]]) -> List[int]:
    """Sizes, two in a row at least, whose faster column takes twice as long as that of one four times as large."""
    times = [(row["bytes"], row["best_us"]) for row in rows if row["bytes"] and row["best_us"]]
    found = [
        size
        for at, (size, took) in enumerate(times)
        if any(other >= 4 * size and 2 * less < took for other, less in times[at + 1 :])
    ]
    beside = [size for size, _ in times]
    places = [beside.index(size) for size in found]
    return [size for size, at in zip(found, places) if {at - 1, at + 1} & {*places}][:MAX_SIZES]


def _latency(rows: List[Dict[str, Any]]) -> Facts:
    """{latency_us}: the median over small sizes of the faster column; single rows of good tables are far off."""
    times = [row["best_us"] for row in rows if 0 < row["bytes"] <= SMALL_BYTES and row["best_us"]]
    return {"latency_us": median(times)} if len(times) >= LEAST_SMALL else {}


def _float(word: str) -> Optional[float]:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if -1e300 < value < 1e300 else None


@lru_cache(maxsize=8)
def _layout(names: Tuple[str, ...]) -> Tuple[Tuple[int, ...], Tuple[int, ...], Tuple[int, ...], str]:
    """Where a row has both its times, both its busbw and its checks; 'wrong' or 'error' for what these are."""
    elapsed = tuple(at for at, name in enumerate(names) if name in ("time", "cputime"))
    speeds = tuple(at for at, name in enumerate(names) if name == "busbw")
    checks = tuple(at for at, name in enumerate(names) if name in ("#wrong", "error"))
    return elapsed, speeds, checks, "error" if "error" in names else "wrong"


def _row(columns: Tuple[str, ...], words: List[str]) -> Optional[Dict[str, Any]]:
    """A data row by its header; without a header, the last eight words are the two groups.

    With more words than any header of old had (per-iteration columns, a time stamp) they are not, and no guess is made.
    """
    if not columns and len(words) > MOST_WITHOUT_HEADER:
        return None
    names = columns or ("size", "count", "type", *["?"] * (len(words) - 11), *["time", "algbw", "busbw", "#wrong"] * 2)
    elapsed, speeds, checks, kind = _layout(names)
    speed, *in_place = (_float(words[at]) for at in speeds or (0,)) if speeds else (None,)
    found, times = [_float(words[at]) for at in checks if words[at] != "N/A"], [_float(words[at]) for at in elapsed]
    if speed is None or None in found or len(words[0]) > MAX_DIGITS:
        return None
    row: Dict[str, Any] = {
        "bytes": int(words[0]),
        "busbw": speed,
        "in_place": in_place[0] if in_place else None,
        "time": times[0] if times else None,
        "best_us": min((one for one in times if one), default=None),
        "wrong": (),
        "error": (),
    }
    row[kind] = [value if kind == "error" else int(value or 0) for value in found]
    return row


class _Log:
    """Reads one file: cuts it into runs and puts torn rows together."""

    def __init__(self, file: str) -> None:
        self.collective = collective_of(file)
        self.run = _TestRun(self.collective)
        self.runs: List[Facts] = []
        self.version = ""
        self.hosts: Set[str] = set()
        self.pieces: List[str] = []
        self.comment = ""
        self.bars: nccl_summary.Columns = ()

    def feed(self, line: str) -> None:
        if "NCCL " in line and self._nccl(line):
            return
        if line.lstrip()[:1] == "|" and self._bar(nccl_summary.cells(line)):
            return
        plain = _PLAIN_ROW.fullmatch(line) if self.run.bench else None
        if plain:
            size, took, busbw = plain.groups()
            self.run.rows.append(
                nccl_summary.made(int(size.replace("_", "")[:MAX_DIGITS]), float(busbw), None, float(took))
            )
            return
        if self.comment:
            line, self.comment = self.comment + line, ""
        bare = line.lstrip()
        if bare.startswith(("#", *_UNMARKED)):
            self._comment(bare if bare.startswith("#") else "# " + bare)
        elif _ROW.match(line) or (self._goes_on(line) if self.pieces else _TORN.fullmatch(line)):
            self._piece(line)
        elif any(words in line for words in _FAILURES):
            self.run.errors.append(line.strip())
        elif "_perf " in line:
            self._command(line)

    def _bar(self, cells: List[str]) -> bool:
        """Take a line of a table of bars, where it is one of results."""
        heading = nccl_summary.columns(cells)
        if heading:
            self._next()
            self.bars, self.run.bench = heading, True
        found = None if heading else nccl_summary.row(cells, self.bars)
        self.run.rows += [found] if found else []
        return bool(heading or found)

    def _command(self, line: str) -> None:
        """A shell's echo of the command, options and all: a list of programs names no test."""
        command = _COMMAND.search(line)
        options = line[command.end() :] if command else ""
        if command and command.group(1) in COLLECTIVES and (options.startswith(("-", "\\")) or " -" in options):
            self.collective = command.group(1)

    def close(self) -> List[Facts]:
        run, words = self.run, len(" ".join(self.pieces).split())
        if run.rows and not run.started and words < (len(run.columns) or run.width):
            # Of an excerpt that nobody announced, the end of the last row is where it was cut.
            self.pieces = []
        self._next()
        return self.runs

    def _next(self) -> None:
        self._drop_pending()
        if self.run.touched:
            self.runs.append(self.run.finish())
        errors = [] if self.run.touched else self.run.errors
        self.run = _TestRun(self.collective)
        self.run.errors = errors

    def _drop_pending(self) -> None:
        """No more comes: pieces whose spaces were taken away make a row with them, anything else is damage."""
        if self.pieces and not self._finish(" ".join(self.pieces)):
            self.run.damaged += 1
        self.pieces = []

    def _goes_on(self, line: str) -> bool:
        return bool(_NUMBERS.match(line)) or bool(_BEGUN.fullmatch("".join([*self.pieces, line])))

    def _nccl(self, line: str) -> bool:
        """Take NCCL's own line; keep what was printed before it."""
        origin = _ORIGIN.search(line)
        if not origin or "NCCL" not in line[origin.end() :]:
            return False
        ranks = _NRANKS.search(line)
        if ranks:
            self.run.nranks = int(ranks.group(1)[:9])
        before = self._before(line[: origin.start()])
        if before.startswith("#"):
            self.comment = before
        elif before.strip() and (self._goes_on(before) if self.pieces else _BEGUN.fullmatch(before)):
            self._piece(before)
        return True

    def _before(self, head: str) -> str:
        """What stands before the host name, and the time stamp, of NCCL's line."""
        host = head.split()[-1] if head.split() else ""
        before, known = head[: len(head) - len(host)], self.hosts | self.run.hosts
        if host in known:
            return _STAMP.sub("", before)
        for name in sorted(known, key=len, reverse=True):
            if host.endswith(name):
                return _STAMP.sub("", before + host[: -len(name)])
        glued = _GLUED.match(host) if self.pieces or before.strip() else None
        if not glued:
            self.hosts.add(host)
        return _STAMP.sub("", before) + (glued.group(0) if glued else "")

    def _comment(self, line: str) -> None:
        self._drop_pending()
        words = line[1:].split()
        if words == ["size", "time", "algbw", "busbw"]:
            self._next()
            self.run.bench = True
        if words[:2] == ["size", "count"]:
            # A time stamp is two words under one name: it and what follows is not needed.
            words = words[: words.index("timestamp")] if "timestamp" in words else words
            self.run.columns = tuple(words) if words.count("busbw") == len(_GROUPS) else ()
            return
        if words[:1] == ["Rank"]:
            self._rank(line)
            return
        run = self.run
        starting, thread = _STARTING.match(line), _NTHREAD.match(line)
        bounds, average, version = _BOUNDS.match(line), _AVERAGE.match(line), _VERSION.match(line)
        bitwise = _BITWISE.match(line)
        if starting or thread or version:
            self._header(starting, thread, version, line)
        elif bounds:
            run.facts["out_of_bounds"] = int(bounds.group(1)[:18])
        elif bitwise:
            run.facts["bitwise_mismatches"] = int(bitwise.group(1)[:18])
        elif average:
            value = _float(average.group(1))
            run.facts["avg_busbw_gb_s"] = average.group(1) if value is None else value
            run.refused(average.group(2), "Avg bus bandwidth FAILED: below what NCCL_TESTS_MIN_BW asks for")

    def _rank(self, line: str) -> None:
        rank = _RANK.match(line)
        if rank:
            number, group = (int(word[:9]) for word in (rank.group(1), rank.group(2) or "0"))
            self.run.ranks.add(number)
            self.run.hosts.add(rank.group(3))
            self.run.groups.setdefault(group, {})[number] = rank.group(3)

    def _header(
        self,
        starting: Optional[re.Match[str]],
        thread: Optional[re.Match[str]],
        version: Optional[re.Match[str]],
        line: str,
    ) -> None:
        # The nThread line ends a header, so a header line after it (or after rows) is another test's.
        if self.run.rows or self.run.threads_gpus is not None:
            self._next()
        run = self.run
        if not run.started:
            run.facts["collective"] = self.collective
        run.started = True
        if starting:
            run.facts["collective"] = re.sub(r"_perf\S*$", "", starting.group(1).rsplit("/", 1)[-1])
            run.named = True
        if version:
            run.facts["version"] = version.group(1)
        if thread:
            threads, gpus, least, most = (int(word[:18]) for word in thread.groups())
            run.threads_gpus = threads * gpus
            run.facts.update(requested_min_bytes=least, requested_max_bytes=most)
            validation = _VALIDATION.search(line)
            if validation:
                run.facts["validation"] = int(validation.group(1)[:9])

    def _piece(self, line: str) -> None:
        if self.pieces and _ROW.match(line) and not (line[0].isdecimal() and _FIRST.fullmatch("".join(self.pieces))):
            self._drop_pending()
        self.pieces.append(line[:MAX_LINE])
        if self._finish("".join(self.pieces)):
            self.pieces = []
        elif len(self.pieces) > MAX_PIECES:
            self._drop_pending()

    def _finish(self, line: str) -> bool:
        """Take a row that has all its columns; False when some are missing."""
        words = line.split(None, MAX_COLUMNS)
        columns = self.run.columns
        if len(words) > _REDOP and columns[_REDOP : _REDOP + 1] == ("redop",) and not words[_REDOP][0].isalpha():
            # Until 2.13 the redop of all_gather and others is printed as nothing, under its heading.
            columns = columns[:_REDOP] + columns[_REDOP + 1 :]
        if len(words) < (len(columns) or 11):
            return False
        width, self.run.width = self.run.width, self.run.width or len(words)
        if not self.run.touched or columns:
            width = 0
        row = _row(columns, words) if width in (0, len(words)) else None
        if row:
            self.run.rows.append(row)
            if columns[_REDOP : _REDOP + 1] == ("redop",):
                self.run.redops.add(words[_REDOP])
        else:
            self.run.damaged += 1
        return True


def parse(files: Mapping[str, Data]) -> Facts:
    """{runs[], version, refused[]}: one entry per test in the logs, in the logs' order; refused: wrong options.

    A run: collective (as printed, else by the command before it, else by the file's name; '' when that contradicts the
    redop column), ranks, hosts (number of host names), groups, group_ranks, group_hosts (when NCCL_TESTS_SPLIT made
    several communicators of the ranks: how many, and the size of the largest), rows (data rows), min_bytes,
    max_bytes (of the rows), avg_busbw_gb_s (as printed), peak_busbw_gb_s (largest out-of-place
    busbw), largest{bytes busbw_gb_s time_us} (the row of the largest message, out-of-place),
    sizes[]{bytes busbw_gb_s in_place_gb_s} (the best of each size, by size),
    wrong (sum of both #wrong columns; None when all are N/A or the log has an error column
    instead, then max_error), out_of_bounds (number of values), bitwise_mismatches (of repeated runs, from 2.19 on and
    only when asked for), complete (both closing lines
    were printed and no row is torn), excerpt (all rows are there, the closing lines are not),
    stalled_sizes[] (they take longer than far larger ones), damaged_rows, errors[], cause (the error that says why),
    refused[] (what the test itself calls FAILED), requested_min_bytes, requested_max_bytes, validation.
    Raises ParseError when a file holds no test.
    """
    runs: List[Facts] = []
    refused: List[str] = []
    version = ""
    for file, data in files.items():
        log = _Log(file)
        for line in lines(data):
            log.feed(line)
        found = log.close()
        own = [] if found else [line for line in log.run.errors if _OWN.search(line)]
        if own and len(own) == len(log.run.errors):
            refused += own
        elif not found:
            said = _cause(log.run.errors) if log.run.errors else "no nccl-tests header or row in it"
            raise ParseError(f"{file}: {said}")
        runs += found
        version = next((str(run["version"]) for run in found if "version" in run), version)
    facts: Facts = {"runs": runs, **({"refused": refused} if refused else {})}
    if version:
        facts["version"] = version
    return facts
