"""dcgmi diag: the JSON of DCGM 2, 3 and 4 and the plain-text table.

Shapes after NVIDIA/DCGM, dcgmi/Diag.cpp of 2.x to 4.6. What they share is a list of categories
of tests of results; nearly every other key has changed its name or its type at least once.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from ...know.catalog import dcgm as catalog
from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from .log_shape import Unread

FILES = ("dcgm-diag.json", "dcgm-diag.txt")
LATER = True

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
NOT_RUN = "Not Run"
_WORST_FIRST = ("Fail", "Warn", NOT_RUN, "Skip", "Pass")
"""A test's status over its GPUs. One GPU skipped is not a pass of all."""
_WORDS = {
    "pass": "Pass", "passed": "Pass", "fail": "Fail", "failed": "Fail", "warn": "Warn", "warning": "Warn",
    "skip": "Skip", "skipped": "Skip", "not run": NOT_RUN, "notrun": NOT_RUN, "not_run": NOT_RUN, "": NOT_RUN,
}  # fmt: skip

MAX_BYTES = 8 << 20
"""The results of eight GPUs are under a megabyte, iterations of them included."""
_BLANK = re.compile(r"\n\s+")
_TABLE = re.compile(
    r"^[ \t]*(?:\| Diagnostic|\+---|\|[^|\n]{1,40}\| (?:Pass|Fail|Warn|Skip)(?: - |\s{2,}))", re.MULTILINE
)
_MAX_GPU, _DIGITS = 9999, 8


def _status(value: Any) -> str:
    word = " ".join(str(value or "").split())
    return _WORDS.get(word.lower(), word[:80])


_NOWHERE: Tuple[Optional[int], str] = (None, "")


def _place_of(note: Facts) -> Tuple[Optional[int], str]:
    return note.get("gpu"), note.get("entity", "")


def _rank(status: str) -> int:
    return _WORST_FIRST.index(status) if status in _WORST_FIRST else 0


class _Diag:
    """Gathers results test by test, then sorts messages into failures and warnings."""

    def __init__(self) -> None:
        self.tests: Dict[str, str] = {}
        self.bad: Dict[str, Dict[Tuple[Optional[int], str], str]] = {}
        self.notes: List[Tuple[str, str, Facts]] = []
        self.seen: Dict[Tuple[str, str, str], Set[Tuple[Optional[int], str]]] = {}
        self.version: Optional[str] = None
        self.driver: Optional[str] = None
        self.errors: List[str] = []
        self.serials: Dict[str, str] = {}
        self.gpus: Set[int] = set()
        self.skipped: Dict[str, Set[int]] = {}
        self.worked: Set[str] = set()
        self.listed = 0
        self.raw_severity = False
        self.cut = False
        self.unread = Unread()

    def result(self, test: str, status: str, gpu: Optional[int] = None, entity: str = "") -> None:
        """One status of a test, of one GPU, another entity, or (neither) the whole node."""
        if test not in self.tests or _rank(status) < _rank(self.tests[test]):
            self.tests[test] = status
        if gpu is not None and status == "Skip":
            self.skipped.setdefault(test, set()).add(gpu)
        elif gpu is not None and status != NOT_RUN:
            self.worked.add(test)
        if status in ("Fail", "Warn"):
            places = self.bad.setdefault(test, {})
            places[gpu, entity] = "Fail" if places.get((gpu, entity)) == "Fail" else status

    def note(self, test: str, status: str, note: Facts) -> None:
        """A message of a test. The 4.x summary repeats those of the GPUs: each is kept once."""
        place = _place_of(note)
        seen = self.seen.setdefault((test, str(note.get("message")), str(note.get("error_id"))), set())
        if place not in seen and not (seen and place == _NOWHERE):
            seen.add(place)
            self.notes.append((test, status, note))

    def facts(self) -> Facts:
        facts: Facts = {"tests": self.tests, "failures": [], "warnings": []}
        scheme = self._scheme()
        told: Dict[Tuple[str, str], Set[Tuple[Optional[int], str]]] = {}
        for test, status, note in self.notes:
            note = self._placed(test, note)
            failed = status == "Fail" or (status == "" and self._failed(test, _place_of(note)))
            facts["failures" if failed else "warnings"].append({"test": test, **_named(note, scheme)})
            told.setdefault((test, "Fail" if failed else "Warn"), set()).add(_place_of(note))
        for test, places in self.bad.items():
            for place, status in places.items():
                # The status of the test as a whole says nothing that its parts did not say.
                shared = place == _NOWHERE and ((test, status) in told or self._has_part(test, status))
                if shared or place in told.get((test, status), ()):
                    continue
                gpu, entity = place
                where: Facts = {"gpu": gpu} if gpu is not None else {"entity": entity} if entity else {}
                facts["failures" if status == "Fail" else "warnings"].append({"test": test, **where})
        facts.update(self._about())
        return facts

    def _about(self) -> Facts:
        printed = {
            "dcgm_version": self.version,
            "driver_version": self.driver,
            "runtime_error": "; ".join(dict.fromkeys(self.errors)),
            "serials": self.serials,
            "gpus": max(len(self.gpus), self.listed),
            "skipped_on": {test: sorted(gpus) for test, gpus in self.skipped.items() if test in self.worked},
            "severity_scheme": (self._scheme() or "unknown") if self.raw_severity else None,
            "cut": self.cut,
        }
        return {name: value for name, value in printed.items() if value}

    def _has_part(self, test: str, status: str) -> bool:
        """Has a GPU or another entity of the test this status?"""
        return any(known == status and place != _NOWHERE for place, known in self.bad.get(test, {}).items())

    def _placed(self, test: str, note: Facts) -> Facts:
        """A message that names no GPU belongs to the one GPU of the test that is not well, if it is one."""
        places = self.bad.get(test, {})
        if _place_of(note) != _NOWHERE or len(places) - (_NOWHERE in places) != 1:
            return note
        gpu = next(gpu for gpu, entity in places if (gpu, entity) != _NOWHERE)
        return note if gpu is None else {"gpu": gpu, **note}

    def _failed(self, test: str, place: Tuple[Optional[int], str]) -> bool:
        """Did the test fail at this place? In the table only the statuses say so."""
        places = self.bad.get(test, {})
        if place == _NOWHERE or place not in places:
            return self.tests.get(test) == "Fail" and (place == _NOWHERE or _NOWHERE in places)
        return places[place] == "Fail"

    def _scheme(self) -> Optional[str]:
        numbers = tuple(int(part[:6]) for part in re.findall(r"\d+", self.version or "")[:3])
        return catalog.scheme_of(numbers) if numbers else None


def _named(note: Facts, scheme: Optional[str]) -> Facts:
    """The note with its severity as a name."""
    severity = note.get("severity")
    if not isinstance(severity, int):
        return note
    return {**note, "severity": catalog.severity_name(severity, scheme, note.get("error_id"))}


def parse(files: Mapping[str, Data]) -> Facts:
    """{dcgm_version, driver_version, tests{name: status}, failures[], warnings[], ...}.

    tests: names as DCGM prints them; the worst status over the GPUs, of Pass, Skip, Not Run, Warn,
    Fail (another word is kept). failures, warnings: {test, gpu, entity, error_id, severity, category,
    message}, each key only when printed; severity is the NAME, whichever numbering the version
    uses (severity_scheme). Messages of tests that did not fail are warnings. runtime_error: why
    nothing was run, or what DCGM found before the tests. serials{gpu: serial}. gpus: how many of them the
    output names, absent when it names none. skipped_on{test: gpus}: skipped on these only. cut: the table's end is
    missing, but a failed test stands in what is left. Raises ParseError for anything else.
    """
    diag = _Diag()
    for data in files.values():
        if len(data) > MAX_BYTES:
            raise ParseError(f"{len(data)} bytes, dcgmi diag prints no more than {MAX_BYTES}")
        text = _BLANK.sub("\n", t.decode(data))
        if _TABLE.search(text) and '"test' not in text:
            _table(text, diag)
        else:
            _document(text, diag)
    return {**diag.facts(), **diag.unread.facts()}


# JSON


def _document(text: str, diag: _Diag) -> None:
    document = _load(text)
    said = [line.strip() for line in text.splitlines() if re.match(r"\s*Error|.*[Uu]nable to ", line[:200])]
    said = said or [line.strip() for line in text.splitlines() if _SENTENCE.search(line)]
    if document is None and not said and _dotted(text, diag):
        return
    if document is None:
        if not said or "{" in text:
            shown = text.strip()[:120]
            raise ParseError(f"no whole JSON document of dcgmi diag in it: {shown!r}")
        diag.errors.append(" ".join(said[:4])[:1000])
        return
    iterations = document.get("iterations")
    parts = [part for part in iterations if isinstance(part, dict)] if isinstance(iterations, list) else [document]
    known = [_one(part, diag) for part in parts]
    for line in f"{text[: text.find('{')]}\n{text[text.rfind('}') + 1 :]}".splitlines():
        diag.unread.note(line, known_form=True)
    if not any(known):
        also = f"; it says: {said[0][:200]}" if said else ""
        raise ParseError(f"JSON, but neither test results nor a runtime error of dcgmi diag{also}")


_SENTENCE = re.compile(
    r"(?i)\b(?:fail(?:ed|ure) to|could ?n[o']t|cannot|incompatible|not supported|timed out|not installed|refused)\b"
)
_DOTTED = re.compile(
    r"\s*([A-Za-z][\w /()-]{2,40}?)\s*(?:\.{3,}|:)\s*\[?(pass|fail|warn|skip)(?:ed|ped|ing)?\]?\s*$", re.IGNORECASE
)


def _dotted(text: str, diag: _Diag) -> bool:
    """`Memory .......... PASS`, as nvvs and scripts around it print results."""
    for row in filter(None, map(_DOTTED.match, text.splitlines())):
        diag.result(row.group(1), row.group(2).capitalize())
    return bool(diag.tests)


_KEYS = frozenset({*ROOTS, "iterations", "test_categories", "tests"})
"""One of these is in the object that holds results; before it, on the same line, others may stand (metadata)."""


def _load(text: str) -> Optional[Dict[str, Any]]:
    """The object in the text, whatever was printed before or after it; None when there is no whole one."""
    decoder = json.JSONDecoder()
    keys = [text.find(f'"{key}"') for key in sorted(_KEYS)]
    first_key = min((at for at in keys if at >= 0), default=-1)
    line = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    starts = [text.rfind("{", 0, first_key) if first_key >= 0 else -1, line.end() - 1 if line else -1, text.find("{")]
    for start in dict.fromkeys(starts):
        if start < 0:
            continue
        try:
            loaded, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(loaded, dict) and (_KEYS & set(loaded) or start == starts[-1]):
            return loaded
    return None


def _one(document: Dict[str, Any], diag: _Diag) -> bool:
    """Read one run. False when it holds neither results nor an error."""
    root = next((document[name] for name in ROOTS if isinstance(document.get(name), dict)), document)
    metadata = document.get("metadata")
    places = [place for place in (metadata, document, root) if isinstance(place, dict)]
    diag.version = diag.version or _first(places, "version", "DCGM Version", "dcgm_version")
    diag.driver = diag.driver or _first(
        places, "Driver Version Detected", "driver_version_detected", "driver_version", "Driver Version"
    )
    _serials(document, diag)
    error = next((place.get("runtime_error") for place in places if place.get("runtime_error")), None)
    if error:
        diag.errors.append(" ".join(str(error).split())[:1000])
    seen = False
    for category, test in _tests(root):
        seen = True
        _test(category, test, diag)
    return seen or bool(error)


def _first(places: List[Dict[str, Any]], *names: str) -> Optional[str]:
    found = (place.get(name) for name in names for place in places)
    return next((value.strip() for value in found if isinstance(value, str) and value.strip()), None)


def _dicts(value: Any) -> List[Dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _tests(root: Dict[str, Any]) -> Iterator[Tuple[str, Dict[str, Any]]]:
    for category in _dicts(root.get("test_categories")):
        for test in _dicts(category.get("tests")):
            yield str(category.get("category", "")), test
    for test in _dicts(root.get("tests")):
        yield "", test


def _serials(document: Dict[str, Any], diag: _Diag) -> None:
    ids = document.get("GPU Device IDs")
    diag.listed = max(diag.listed, len(ids) if isinstance(ids, list) else 0)
    printed = document.get("GPU Device Serials")
    pairs = list(printed.items()) if isinstance(printed, dict) else []
    for group in _dicts(document.get("entity_groups")):
        if group.get("entity_group") == "GPU":
            entities = _dicts(group.get("entities"))
            diag.listed = max(diag.listed, len(entities))
            pairs += [(e.get("entity_id"), e.get("serial_num")) for e in entities]
    for gpu, serial in pairs:
        if isinstance(serial, str) and serial.isalnum():
            diag.serials[str(gpu)[:8]] = serial[:64]


def _test(category: str, test: Dict[str, Any], diag: _Diag) -> None:
    name = str(test.get("name") or category or "unnamed")[:120]
    results = _dicts(test.get("results"))
    for result in results:
        _result(name, result, diag)
    summary = test.get("test_summary")
    if isinstance(summary, dict):
        _result(name, summary, diag)
    elif not results:
        diag.result(name, _status(test.get("status")))


def _result(name: str, result: Dict[str, Any], diag: _Diag) -> None:
    status = _status(result.get("status"))
    gpu, entity = _place(result)
    diag.result(name, status, gpu, entity)
    diag.gpus.update(_all_of(result) if gpu is None else {gpu})
    warnings = result.get("warnings")
    for item in warnings if isinstance(warnings, list) else [warnings]:
        note = _note(item, diag)
        if not note:
            continue
        where = {"gpu": gpu} if gpu is not None else {"entity": entity} if entity else {}
        named = catalog.gpu_in(note.get("message", ""))
        if not where and named is not None:
            where = {"gpu": named}
        diag.note(name, status, {**where, **note})


def _place(result: Dict[str, Any]) -> Tuple[Optional[int], str]:
    """(GPU index, '') or (None, 'Switch 2') or, for the whole node, (None, '')."""
    group, entity = result.get("entity_group"), result.get("entity_id")
    if isinstance(group, str) and group != "GPU":
        return None, f"{group} {entity}"[:40]
    for value in (entity, result.get("gpu_id"), result.get("gpu_ids")):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        word = str(value).strip() if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
        if word.isascii() and word.isdigit() and len(word) < 5 and int(word) <= _MAX_GPU:
            return int(word), ""
    return None, ""


def _all_of(result: Dict[str, Any]) -> Set[int]:
    """The GPUs of a result that is for all of them: '0,1,2' (2.x, 3.x)."""
    listed = next((result[key] for key in ("gpu_ids", "gpu_id") if isinstance(result.get(key), str)), "")
    return {int(word) for word in listed[:400].split(",") if word.strip().isdecimal() and len(word) < _DIGITS}


def _note(item: Any, diag: _Diag) -> Facts:
    """A warning: a text (2.x) or an object (3.x, 4.x; level-one tests of 3.x misname `warning`)."""
    if isinstance(item, str):
        return {"message": " ".join(item.split())} if item.strip() else {}
    if not isinstance(item, dict):
        return {}
    note: Facts = {}
    for key, name in (("error_id", "error_id"), ("error_severity", "severity"), ("error_category", "category")):
        value = item.get(key)
        if isinstance(value, str) and re.fullmatch(r"\d{1,6}", value):
            value = int(value)
        if (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, str):
            note[name] = value.upper() if isinstance(value, str) else value
    diag.raw_severity = diag.raw_severity or isinstance(note.get("severity"), int)
    message = item.get("warning") or item.get("warnings") or item.get("message")
    if isinstance(message, str):
        note["message"] = " ".join(message.split())
    return note


# The plain-text table

_ROW = re.compile(r"\|([^|]{0,60})\|(.*)\|?\s*$")
_STATUS = re.compile(r"(Pass|Fail|Warn|Skip|Not Run)(?: - (All|GPUs?: *[\d, ]+))?")
_LOOSE = re.compile(r"(?i)(pass|fail|warn|skip|error)(?:ed|ing|ped|ure)?\b(.*)")
_LISTED = re.compile(r"(?i)\bGPUs?:? *(\d[\d, ]*)")
_HEADING = re.compile(r"[|+]-+ ")
_ENTITY = re.compile(r"([A-Za-z]+)(\d{1,4}): ?(Pass|Fail|Warn|Skip|Not Run|)")
_NOTE = re.compile(r"(Warning|Error|Info)(?:: ([A-Za-z]+)(\d{1,4}))?")
_END = re.compile(r"\+-+\+-+\+\s*$")
_CELL = 45
"""dcgmi cuts a message into pieces of this many characters, one to a row."""


def _table(text: str, diag: _Diag) -> None:
    rows = [line.strip() for line in text.splitlines() if line.lstrip()[:1] in ("|", "+")]
    for line in (line for line in text.splitlines() if line.lstrip()[:1] not in ("|", "+")):
        diag.unread.note(line, known_form=True)
    diag.cut = not rows or not _END.match(rows[-1])
    if diag.cut and rows and not rows[-1].endswith("|"):
        rows.pop()
    _rows(rows, diag)
    # Rows without the table's head are what somebody quotes of it.
    quoted = diag.cut and bool(rows) and not rows[0].startswith("+") and "| Diagnostic" not in text
    if quoted and diag.tests:
        diag.cut = False
    if diag.cut and "Fail" not in diag.tests.values():
        raise ParseError("the table is cut short: its closing line is missing")
    if not diag.tests and not diag.errors:
        raise ParseError("a table without a test in it")


def _rows(rows: List[str], diag: _Diag) -> None:
    test, note = "", None  # type: str, Optional[Tuple[str, List[str]]]
    for row in rows:
        match = _ROW.match(row)
        if _HEADING.match(row):
            _end_note(test, note, diag)
            test, note = "", None
        if not match or row.startswith("|--"):
            continue
        name, value = match.group(1).strip(), match.group(2).rstrip("| \t")
        if note and (name or _is_result(value.strip())):
            _end_note(test, note, diag)
            note = None
        if note:
            note[1].append(value[1:].ljust(_CELL))
        elif _NOTE.fullmatch(name):
            note = (name, [value[1:].ljust(_CELL)])
        elif name:
            test = _named_row(name, value.strip(), test, diag)
        else:
            _statuses(test, value.strip(), diag)
    _end_note(test, note, diag)


def _is_result(value: str) -> bool:
    return bool(_STATUS.fullmatch(value) or _ENTITY.fullmatch(value))


def _named_row(name: str, value: str, test: str, diag: _Diag) -> str:
    """A row with a name: metadata, or a test with its status. Returns the test now being read."""
    if name == "DCGM Version":
        diag.version = value
    elif name == "Driver Version Detected":
        diag.driver = value
    elif name == "GPU Device IDs Detected":
        diag.listed = len([word for word in value.split(",") if word.strip()])
    elif _STATUS.fullmatch(value):
        _statuses(name, value, diag)
        return name
    elif _LOOSE.fullmatch(value):
        _loose(name, value, diag)
        return name
    return test


def _loose(test: str, value: str, diag: _Diag) -> None:
    """A status as scripts print it again: in capitals, or with its reason behind it."""
    match = _LOOSE.fullmatch(value)
    word, reason = match.groups() if match else ("", "")
    status = {"error": "Fail"}.get(word.lower(), word.capitalize())
    listed = _LISTED.search(reason)
    gpus: List[Optional[int]] = [int(number) for number in re.findall(r"\d{1,4}", listed.group(1) if listed else "")]
    reason = reason.strip(" -:()")
    for gpu in gpus or [None]:
        diag.result(test, status, gpu)
        if reason and status in ("Fail", "Warn") and not _LISTED.fullmatch(reason):
            diag.note(test, status, {**({"gpu": gpu} if gpu is not None else {}), "message": reason[:1000]})


def _statuses(test: str, value: str, diag: _Diag) -> None:
    status, entity = _STATUS.fullmatch(value), _ENTITY.fullmatch(value)
    if not test:
        return
    if entity:
        kind, number, word = entity.groups()
        place = (int(number), "") if kind == "GPU" else (None, f"{kind} {number}")
        diag.result(test, _status(word), *place)
    elif status:
        listed: List[Optional[int]] = [int(word) for word in re.findall(r"\d{1,4}", status.group(2) or "")]
        for gpu in listed or [None]:
            diag.result(test, status.group(1), gpu)


def _end_note(test: str, note: Optional[Tuple[str, List[str]]], diag: _Diag) -> None:
    """Keep a message that has been read. Under a heading, before any test, it is what JSON calls runtime_error."""
    kind, pieces = note or ("", [])
    match = _NOTE.fullmatch(kind)
    message = " ".join("".join(pieces).split())
    if not match or match.group(1) == "Info" or not message:
        return
    if not test:
        diag.errors.append(message[:1000])
        return
    place: Facts = {}
    if match.group(2):
        number = int(match.group(3))
        place = {"gpu": number} if match.group(2) == "GPU" else {"entity": f"{match.group(2)} {number}"}
    named = catalog.gpu_in(message)
    if not place and named is not None:
        place = {"gpu": named}
    diag.note(test, "", {**place, "message": message})
