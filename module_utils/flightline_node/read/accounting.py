"""Every file of a bundle that is judged offline: read, unreadable, under no known name, or named as not read.

On a node the probes make the bundle, and nothing else is in it. What a person brings holds what they had: a log of
which nobody has read a line must not stand behind a go.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Container, Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

from ..bounds import MAX_JUDGED_FILE_BYTES, MAX_UNPACKED_BYTES, MAX_UNPACKED_FILE_BYTES
from ..model import BLOCKING, Finding, Reason, Remedy, Status
from ..suggest import meant
from . import kinds, packed
from .bundle import MANIFEST, Bundle, load
from .facts import trouble_of
from .listing import Entry, listing, printable
from .parsers import PARSERS

ACCOUNTING = "bundle_files"
"""Among the checks: was every file of the bundle read? Control side only; on a node nothing else is in a bundle."""
UNREAD_FILE = Reason("unread_file", "a file of the bundle was not read", Remedy.FIX_CONFIG)
READ, UNREADABLE, MISNAMED, NOT_READ = "read", "unreadable", "misnamed", "not read"
STDERR = ".stderr"
MOST_FINDINGS = 50

KNOWN: Mapping[str, str] = {
    name.lower(): name for name in (MANIFEST, *(file for parser in PARSERS.values() for file in parser.files))
}
"""Every name that a bundle's file can have, by its small letters."""

_OUTPUT = re.compile(
    r"\.(?:log|txt|jsonl?|xml|out|err|csv|tsv|dmesg|journal|syslog)(?:[.-]?\d+|\.old|\.bak|\.orig|~)*$", re.IGNORECASE
)
_NO_OUTPUT = re.compile(
    r"(?:readme|license|core|vmcore|\.ds_store|thumbs\.db|left_out\.txt|\._.*|core\.\d+|.*nvidia-bug-report.*"
    r"|.*\.(?:md|rst|html?|pdf|png|jpe?g|gif|svg|py|pyc|sh|so|o|c|h|cu|sqlite|db|pcap|nsys-rep|ncu-rep|pt|safetensors))",
    re.IGNORECASE,
)
"""Names of what is no tool's output, whatever lines are quoted in it."""


@dataclass(frozen=True)
class BundleFile:
    """One file and what became of it. wanted: the bundle's name for it, "" where it has none; blocks: no go with it."""

    file: str
    state: str
    wanted: str
    why: str
    blocks: bool = False

    def to_dict(self) -> Dict[str, str]:
        """As `judge --json` has it."""
        return {"file": self.file, "state": self.state, "as": self.wanted, "why": self.why}


class Account:
    """The files of a directory, and the bundle of those that can be read."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        """scratch: an empty directory for what is packed. Raises SettingsError for what is no bundle."""
        self.files: List[BundleFile] = []
        self._places: Dict[str, Path] = {}
        self._scratch = scratch
        self._left = MAX_UNPACKED_BYTES
        self._same: Set[Tuple[int, int]] = set()
        self._take([entry for entry in listing(directory) if not _plain_folder(entry)])
        self.bundle = load(directory, self._places)

    def settled(
        self, unreadable: Mapping[str, str], needed: Container[str], findings: Iterable[Finding]
    ) -> List[BundleFile]:
        """The files as they stand after the judgement, with those that the manifest lists and the bundle lacks.

        unreadable: parsers that could not read theirs, with the reason; needed: parsers without which a check that gave
        one of the findings cannot do. Such a check has said UNKNOWN, or that it is not for this type.
        """
        said = [finding.message for finding in findings if finding.status in BLOCKING]
        untold = {
            name: reason
            for name, reason in unreadable.items()
            if name not in needed and not any(reason in message for message in said)
        }
        after = [_after(one, self.bundle, unreadable, untold) for one in self.files]
        listed = {one.wanted for one in after}
        missing = [one for one in _missing(self.bundle) if one.wanted not in listed]
        return sorted([*after, *missing], key=_place_in_list)

    def _take(self, entries: Sequence[Entry]) -> None:
        named = [entry for entry in entries if known_as(entry.name) and len(entry.folders) < 2]
        hosts = sorted({entry.folders[0] for entry in named if entry.folders})
        if len(hosts) > 1:
            why = f"outputs stand in several folders ({_some(hosts)}); do: judge each alone"
            self.files += [_misnamed(entry, known_as(entry.name), why) for entry in named if entry.folders]
        chosen = [entry for entry in named if len(hosts) < 2 or not entry.folders]
        for name in dict.fromkeys(known_as(entry.name) for entry in chosen):
            self._choose(name, [entry for entry in chosen if known_as(entry.name) == name])
        seen = set(named)
        self.files += [self._other(entry) for entry in entries if entry not in seen]

    def _choose(self, name: str, entries: Sequence[Entry]) -> None:
        """One file for one name, the plainest; any other that is not the same file is told."""
        first, *rest = sorted(entries, key=lambda entry: (len(entry.folders), entry.name != name, entry.name))
        self.files.append(self._place(name, first))
        for entry in rest:
            if entry.same in self._same and not entry.trouble:
                self.files.append(BundleFile(entry.shown, READ, name, f"the same file as {first.shown}"))
            else:
                self.files.append(_misnamed(entry, name, f"{first.shown} is there too; do: judge it alone"))

    def _place(self, name: str, entry: Entry) -> BundleFile:
        trouble = entry.trouble or ("a folder, wanted a file" if entry.folder else "")
        if not trouble:
            try:
                self._places[name] = self._readable(name, entry.path)
            except OSError as error:
                trouble = error.strerror or str(error)
        if trouble:
            return BundleFile(entry.shown, UNREADABLE, name, trouble, True)
        self._same.add(entry.same)
        return BundleFile(entry.shown, READ, name, "")

    def _readable(self, name: str, path: Path) -> Path:
        """Where a known file can be read from. Raises OSError when it cannot be."""
        with open(path, "rb") as handle:
            head, size = handle.read(8), os.fstat(handle.fileno()).st_size
        if size > MAX_JUDGED_FILE_BYTES:
            raise OSError(f"too large: {size >> 20} MiB, at most {MAX_JUDGED_FILE_BYTES >> 20} MiB are read")
        if not packed.packing_of(head):
            if path.suffix.lower() in packed.SUFFIXES and size:
                raise OSError(f"it cannot be unpacked (no {path.suffix[1:].lower()} file by its first bytes)")
            return path
        target = self._scratch / name
        self._left -= packed.unpack(path, target, min(MAX_UNPACKED_FILE_BYTES, self._left))
        return target

    def _other(self, entry: Entry) -> BundleFile:
        """A file whose name says nothing, or that stands too deep."""
        if entry.same in self._same and not entry.trouble:
            return BundleFile(entry.shown, READ, "", "another name of a file that is read")
        if entry.name.endswith(STDERR) and known_as(entry.name[: -len(STDERR)]):
            return BundleFile(entry.shown, NOT_READ, "", "what a probe said beside its output")
        if _NO_OUTPUT.fullmatch(entry.name) or (entry.special and not _OUTPUT.search(bare(entry.name))):
            return BundleFile(entry.shown, NOT_READ, "", entry.trouble or "no tool's output by its name")
        if entry.trouble:
            return BundleFile(entry.shown, UNREADABLE, "", entry.trouble, True)
        try:
            return _by_content(entry, look(entry.path))
        except OSError as error:
            return BundleFile(entry.shown, UNREADABLE, "", error.strerror or str(error), True)


def known_as(name: str) -> str:
    """The bundle's name for a file, whatever its case and packing; '' for none."""
    return KNOWN.get(bare(name).lower(), "")


def name_by_content(path: Path) -> str:
    """A single file's name in a bundle: its own where that is one or nothing is read, else its kind's by content."""
    try:
        content = b"" if known_as(path.name) else look(path)
    except OSError:
        return path.name
    kind = kinds.kind_of(content)
    if kind is None:
        return path.name
    # nccl-tests before 2.13 do not print which collective they ran; then only a name tells, and nobody guesses it.
    perf = re.search(rb"\b(\w+)_perf\b", content)
    wanted = kind.file.replace("<collective>", perf.group(1).decode() if perf else "")
    return wanted + path.name[len(bare(path.name)) :] if known_as(wanted) else path.name


def bare(name: str) -> str:
    """A name without the suffix of its packing."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix.lower() in packed.SUFFIXES else name


def look(path: Path) -> bytes:
    """The beginning of a file, unpacked, and of a plain one its end. Raises OSError."""
    with open(path, "rb") as handle:
        head = handle.read(kinds.LOOK_BYTES)
        if not packed.packing_of(head):
            handle.seek(max(os.fstat(handle.fileno()).st_size - kinds.LOOK_BYTES, len(head)))
            return head + handle.read(kinds.LOOK_BYTES)
    return packed.head_of(path, 2 * kinds.LOOK_BYTES)


def _by_content(entry: Entry, content: bytes) -> BundleFile:
    name, binary = known_as(entry.name), kinds.is_binary(content)
    if not content:
        return BundleFile(entry.shown, NOT_READ, "", "empty")
    if name:
        return _misnamed(entry, name, f"it lies two folders deep or more; wanted {name} at the top or one folder down")
    kind = None if binary else kinds.kind_of(content)
    if kind:
        do = f"; do: {kind.do.format(file=shlex.quote(printable(entry.name)))}" if kind.do else ""
        return _misnamed(entry, kind.file, f"looks like {kind.what}; wanted {kind.file}{do}")
    if kinds.is_archive(content):
        return _misnamed(entry, "", "an archive within the bundle; do: unpack it, or judge it alone")
    if _OUTPUT.search(bare(entry.name)):
        guess = meant(bare(entry.name).lower(), KNOWN.values())
        return _misnamed(entry, "", f"a tool's output by its name, of no known kind; wanted a known name{guess}")
    return BundleFile(entry.shown, NOT_READ, "", f"{'binary' if binary else 'text'}, no output of a known tool")


def _place_in_list(one: BundleFile) -> Tuple[int, str]:
    return one.file.count("/"), one.file


def _misnamed(entry: Entry, name: str, why: str) -> BundleFile:
    return BundleFile(entry.shown, MISNAMED, name, why, True)


def _plain_folder(entry: Entry) -> bool:
    """A folder of which its files say everything; one that has a file's name does not."""
    return entry.folder and not entry.trouble and not known_as(entry.name)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(printable(name) for name in names[:3]) + more


def _after(one: BundleFile, bundle: Bundle, unreadable: Mapping[str, str], untold: Container[str]) -> BundleFile:
    """A known file after the parsers have had it. untold: those of the unreadable that no check has answered for."""
    if one.state != READ or one.why:
        return one
    if one.wanted == MANIFEST:
        return replace(one, why="the bundle's manifest")
    readers = [name for name, parser in PARSERS.items() if one.wanted in parser.files]
    broken = [name for name in readers if name in unreadable]
    if broken:
        # What a probe of a run printed was judged on the node, where nothing blocked for it that does not here.
        blocks = bundle.entry(one.wanted) is None and any(name in untold for name in broken)
        return replace(one, state=UNREADABLE, why=unreadable[broken[0]], blocks=blocks)
    if one.wanted in bundle.taken:
        return replace(one, why=f"read by {', '.join(readers)}")
    instead = [file for name in readers for file in PARSERS[name].files if file in bundle.taken]
    return replace(one, state=MISNAMED, why=f"{_some(instead)} was read in its place; do: judge it alone", blocks=True)


def _missing(bundle: Bundle) -> Iterator[BundleFile]:
    for file, entry in bundle.entries.items():
        if not bundle.has(file):
            trouble, asked = trouble_of(entry), printable(str(entry.get("id")))
            why = trouble or f"missing: the manifest has it from the probe {asked}, which ended well"
            name = printable(file) if isinstance(entry.get("file"), str) else f"of the probe {asked}"
            yield BundleFile(name, UNREADABLE, name, why, not trouble)


def findings_of(files: Iterable[BundleFile]) -> List[Finding]:
    """UNKNOWN for each file that a go must not stand beside."""
    told = [_unknown(f"{one.file}: {one.why}") for one in files if one.blocks]
    more = len(told) - MOST_FINDINGS
    return [*told[:MOST_FINDINGS], *([_unknown(f"{more} more files were not read")] if more > 0 else [])]


def _unknown(message: str) -> Finding:
    return Finding(ACCOUNTING, Status.UNKNOWN, message, UNREAD_FILE.remedy, reason=UNREAD_FILE.id)
