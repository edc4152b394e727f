"""From bundle files to facts: which parser reads which file, run at most once per node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..ask.probes import BY_ID
from ..ask.runner import NOT_RUN, SILENT
from ..know.catalog import nvml
from ..model import Facts, ParseError
from .bundle import Bundle, Data
from .parsers import PARSERS, Parser, text

MISSING = "missing"
UNREADABLE = "unreadable"
READ = "read"
LISTS, ELIDED = frozenset({"fi_info", "lspci", "nvidia_smi", "neuron_ls", "nvlink"}), "elided"
"""Outputs of which a person brings a part, with dots for the rest. No probe prints such."""
MOST_SAID = 160
"""Characters of a tool's last words that a reason quotes; the finding's evidence has them all."""


class Trouble(NamedTuple):
    """What went wrong with an output. id: a family of judge/reasons.py; part: the probe, the file, or who refused."""

    id: str = ""
    part: str = ""


NONE = Trouble()


@dataclass(frozen=True)
class Parsed:
    """What became of one parser on one bundle.

    state: READ (facts are there), MISSING (no file) or UNREADABLE (reason says why).
    doubt: set when the facts were read but the tool did not end well: a PASS resting on
    them is not evidence. why: what reason or doubt is about, for programs.
    """

    state: str
    facts: Optional[Facts] = None
    reason: str = ""
    caveat: str = ""
    evidence: Tuple[str, ...] = ()
    why: Trouble = NONE


class FactBook:
    """Lazily parsed facts of one bundle."""

    def __init__(self, bundle: Bundle, parsers: Optional[Dict[str, Parser]] = None) -> None:
        self._bundle = bundle
        self._parsers = PARSERS if parsers is None else parsers
        self._done: Dict[str, Parsed] = {}

    def get(self, name: str) -> Parsed:
        """The facts of a parser, parsed on first use."""
        if name not in self._done:
            self._done[name] = self._parse(self._parsers[name])
        return self._done[name]

    def lookup(self, name: str) -> Optional[Facts]:
        """The facts alone, or None."""
        return self.get(name).facts

    def broken(self, name: str) -> Optional[Parsed]:
        """A parser's output that is there and could not be read; None where it could, or is not there."""
        parsed = self.get(name)
        return parsed if parsed.state == UNREADABLE else None

    def read_all(self) -> Dict[str, Facts]:
        """Every parser whose file is there and readable."""
        found = {name: self.get(name).facts for name in self._parsers}
        return {name: facts for name, facts in found.items() if facts is not None}

    def unreadable(self) -> Dict[str, str]:
        """Parsers whose file is there but could not be read, with the reason."""
        return {n: p.reason for n, p in ((n, self.get(n)) for n in self._parsers) if p.state == UNREADABLE}

    def _parse(self, parser: Parser) -> Parsed:
        files = [file for file in parser.files if self._bundle.has(file)]
        entries = [entry for entry in map(self._bundle.entry, parser.files) if entry]
        bad = next((entry for entry in entries if trouble_of(entry)), None)
        trouble, why = ("", Trouble()) if bad is None else (trouble_of(bad), _why(bad))
        stderr = [line for entry in entries for line in str(entry.get("stderr") or "").splitlines()]
        timed_out = any(entry.get("timed_out") for entry in entries)
        if not files or timed_out:
            if entries and trouble:
                return Parsed(UNREADABLE, None, trouble, "", tuple(stderr), why)
            return Parsed(MISSING, None, "not collected")
        try:
            asked = _AskedFiles(self._bundle, files)
            facts = parser.parse(asked)
        except (ParseError, OSError) as error:
            reason = f"{', '.join(files)}: {error}" + (f" ({trouble})" if trouble else "")
            return Parsed(UNREADABLE, None, reason, "", tuple(stderr + self._head(files)), self._unread(files, stderr))
        except Exception as error:  # a parser's own bug must never look like a healthy node
            reason = f"{', '.join(files)}: parser {parser.name} broke: {type(error).__name__}: {error}"
            return Parsed(UNREADABLE, None, reason, "", tuple(self._head(files)), self._unread(files, []))
        if not entries and parser.name in LISTS and any(map(text.elided, asked.taken.values())):
            facts = {**facts, ELIDED: True}
        return Parsed(READ, facts, "", trouble, tuple(stderr), why)

    def _unread(self, files: List[str], stderr: List[str]) -> Trouble:
        said = "\n".join(stderr + self._head(files))
        return Trouble("no_driver" if nvml.no_driver(said) else "unreadable", "_".join(files))

    def _head(self, files: List[str]) -> List[str]:
        lines: List[str] = []
        for file in files:
            try:
                text = bytes(self._bundle.read(file)[:2000]).decode("utf-8", "replace")
            except OSError:
                continue
            lines += [line for line in text.splitlines() if line.strip()][:3]
        return lines


class _AskedFiles(Mapping[str, Data]):
    """A parser's files, each read when the parser asks for it: of two that say the same it may take only one."""

    def __init__(self, bundle: Bundle, names: List[str]) -> None:
        self._bundle = bundle
        self._names = names
        self.taken: Dict[str, Data] = {}

    def __getitem__(self, file: str) -> Data:
        if file not in self._names:
            raise KeyError(file)
        if file not in self.taken:
            self.taken[file] = self._bundle.read(file)
        return self.taken[file]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class KnownFacts(FactBook):
    """Facts that are there already: a watcher has no bundle. What is not among them was not collected."""

    def __init__(self, facts: Dict[str, Facts]) -> None:
        self._facts = facts

    def get(self, name: str) -> Parsed:
        """The facts of a parser, as they were given."""
        found = self._facts.get(name)
        return Parsed(MISSING, None, "not collected") if found is None else Parsed(READ, found)


def _refused(entry: Dict[str, object]) -> bool:
    return bool(entry["refused"] if "refused" in entry else str(entry.get("note")).startswith(NOT_RUN))


def _why(entry: Dict[str, object]) -> Trouble:
    """The same for programs. Bundles of older versions say neither `refused` nor `why`."""
    if _refused(entry):
        return Trouble("not_run", str(entry.get("refused") or ""))
    silent = entry.get("timed_out") and entry.get("why", SILENT) == SILENT
    if not silent and nvml.no_driver(str(entry.get("stderr") or "")):
        return Trouble("no_driver", str(entry.get("id")))
    return Trouble("silent" if silent else "ended_badly", str(entry.get("id")))


def trouble_of(entry: Dict[str, object]) -> str:
    """Why a probe's output is not to be trusted, or ''. The manifest decides, not the check."""
    if _refused(entry):
        return str(entry["note"])
    argv = entry.get("argv")
    words = argv if isinstance(argv, list) else []
    # A probe that is a script is better known by its name than by its text.
    tool = " ".join(map(str, words)) if words[:2] != ["sh", "-c"] else str(entry.get("id"))
    if entry.get("timed_out"):
        return f"{tool}: {entry.get('note') or 'timed out'}"
    probe = BY_ID.get(str(entry.get("id")))
    rc = entry.get("rc")
    if rc in (probe.ok_rcs if probe else (0,)):
        return ""
    if entry.get("note"):
        return f"{tool}: {entry['note']}"
    said = str(entry.get("stderr") or "").strip().rpartition("\n")[2].strip()[:MOST_SAID]
    ended = f"exit status {rc}" if isinstance(rc, int) and rc >= 0 else f"ended by signal {rc}"
    return f"{tool}: {ended}" + (f" ({said})" if said else "")
