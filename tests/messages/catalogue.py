"""From a message of data/*.yml to a log behind each head, and to the judgement's answer."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from flightline_node.judge import judgement as judging
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import resolve
from flightline_node.model import BLOCKING, RANK, Check, Finding, SettingsError, Status
from flightline_node.read.facts import FactBook
from flightline_node.read.parsers import PARSERS
from flightline_node.settings import build as site
from tests.harness import NOW, InMemory

from .heads import HEADS, OPENING, UNCLEAR

DATA = Path(__file__).parent / "data"
KERNEL_LOG = "kernel.log"
CLASSES = ("condemns", "degrades", "job", "nothing")
LEDGER = "unread_lines"
STANDING = "stands."
"""What no preflight starts a job on and no running node leaves service for: it degrades."""
FIELDS = {
    "pci": "0000:53:00.0",
    "gpu": "0000:53:00",
    "eth": "ens5",
    "dev": "rdmap79s0",
    "disk": "nvme1n1",
    "n": "7",
    "hex": "0x1f",
    "nccl": "ip-10-1-0-11:71:90 [0] NCCL WARN",
    "nccl_info": "ip-10-1-0-11:71:90 [0] NCCL INFO",
    "ofi": "ip-10-1-0-11:71:90 [0] NCCL WARN NET/OFI",
}
"""What a word in braces stands for."""

CONVERSIONS = {"d": "7", "u": "7", "i": "7", "x": "1f", "X": "1F", "s": "some", "p": "00000000deadbeef", "c": "a"}
"""What a conversion of printf stands for, by its letter; %% is a percent sign."""

_CONVERSION = re.compile(r"%(?:%|[#0-9.+-]*(?:ll|l|z|h)*(?P<letter>[duixXspc])(?:I[S46][cp]*)?)")

_ALTERNATIVES = re.compile(r"\{((?:[^{}]|\{\w*\})*\|(?:[^{}]|\{\w*\})*)\}")
"""Texts in braces, {reset HSHUB | reset links}; they may hold fields, {pci}."""

SETTINGS = site(level="deep")
_expected = cache(resolve)
_KEYS = frozenset({"sample", "check", "times", "before", "status", "codes"})


@dataclass(frozen=True)
class Message:
    """One message of one tool, and what it means."""

    tool: str
    file: str
    instance_type: str
    sample: str
    cls: str
    check: str
    reason: str
    times: int = 1
    before: tuple[str, ...] = ()
    status: str = ""

    def log(self, head: str, opening: str = "") -> str:
        """The file that holds it, each of its lines behind the head; the file's first line behind `opening`, if given."""
        return log([self], head, opening)


def log(messages: Sequence[Message], head: str, opening: str = "") -> str:
    """One file that holds all the messages."""
    file = messages[0].file
    lines = [line for one in messages for line in (*one.before, *[one.sample] * one.times)]
    first = [_behind(opening or head, OPENING[file], 0)] if file in OPENING else []
    return "\n".join([*first, *[_behind(head, _fill(line), number) for number, line in enumerate(lines, 1)]]) + "\n"


def _behind(head: str, line: str, number: int) -> str:
    return head.format(line=line, json=json.dumps(line), m=number // 60 % 60, s=number % 60, up=1.0 + number)


def _fill(sample: str) -> str:
    for name, value in FIELDS.items():
        sample = sample.replace("{" + name + "}", value)
    return _CONVERSION.sub(lambda match: CONVERSIONS.get(match.group("letter") or "", "%"), sample)


def _message(document: dict[str, Any], given: dict[str, Any]) -> Message:
    cls = next((name for name in CLASSES if name in given), "")
    check = given.get("check", document["check"])
    if set(given) - _KEYS - {cls} or check not in CHECKS or not given.get(cls):
        raise SettingsError(f"{document['tool']}: {given}: wanted {sorted(_KEYS)}, one of {CLASSES}, a known check")
    return Message(
        document["tool"],
        document["file"],
        document.get("instance_type", "p5.48xlarge"),
        given["sample"],
        cls,
        check,
        given[cls],
        given.get("times", 1),
        tuple(given.get("before", ())),
        given.get("status", document.get("status", {}).get(cls, "")),
    )


@cache
def load(path: Path) -> list[Message]:
    """The messages of one file. Raises SettingsError for one that cannot be understood, or stands there twice."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    messages = [_message(document, one) for given in document["messages"] for one in _each(given)]
    twice = [one for one, number in Counter((m.sample, m.times, m.before) for m in messages).items() if number > 1]
    if twice or not document["version"] or not document["source"]:
        raise SettingsError(f"{path.name}: twice: {twice}; or without version or source")
    return messages


def _each(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    samples = given["sample"] if isinstance(given["sample"], list) else [given["sample"]]
    codes = given.get("codes", [""])
    for code, text in codes.items() if isinstance(codes, dict) else ((code, "") for code in codes):
        for template in samples:
            for one in _family(template):
                yield {**given, "sample": one.replace("{code}", str(code)).replace("{text}", text)}


def _family(template: str) -> Iterator[str]:
    """The messages of a template: one for each text of each of its alternatives."""
    found = _ALTERNATIVES.search(template)
    if found is None and " | " in template:
        raise SettingsError(
            f"{template!r}: saw ' | ' outside of braces, wanted {{texts | in braces}} without others inside"
        )
    if found is None:
        yield template
        return
    for text in found.group(1).split("|"):
        yield from _family(template[: found.start()] + text.strip() + template[found.end() :])


def files() -> list[Path]:
    """The files of data/."""
    return sorted(DATA.glob("*.yml"))


def judge(messages: Sequence[Message], head: str, opening: str = "") -> list[Finding]:
    """What every check that reads the messages' file says of them together."""
    one = messages[0]
    book = FactBook(InMemory({one.file: log(messages, head, opening).encode()}))
    expected = _expected(one.instance_type)
    found: list[Finding] = []
    for check in _readers(one.file):
        found += judging._judge_check(check, book, expected, SETTINGS, NOW, {}, False)
    return found


@cache
def _readers(file: str) -> list[Check]:
    """The checks that read it."""
    parsers = {parser.name for parser in PARSERS.values() if file in parser.files}
    return [check for check in CHECKS.values() if parsers & {*check.needs, *check.needs_any}]


_ALONE = (None, Status.SKIP, Status.INFO, Status.UNKNOWN, Status.FAIL)
"""What a message of a job's own log may come to alone: whoever's fault it is. SKIP: it tells nothing of a single node."""


def _worst(findings: list[Finding]) -> Status | None:
    return max((finding.status for finding in findings), key=lambda one: RANK[one], default=None)


def wrong(message: Message, findings: list[Finding], unclear: bool = False) -> str:
    """Why the judgement is not what the class wants, or nothing."""
    if message.cls == "nothing":
        findings = [finding for finding in findings if finding.check != LEDGER]
    mine = _worst([finding for finding in findings if finding.check == message.check])
    standing = [finding for finding in findings if finding.reason.startswith(STANDING)]
    blocks = any(finding.status in BLOCKING for finding in findings if finding not in standing)
    loud = blocks or any(finding.status is Status.WARN for finding in findings)
    right = {
        "condemns": mine is (Status.UNKNOWN if unclear or message.status == "UNKNOWN" else Status.FAIL),
        "degrades": unclear
        or (not blocks and (mine is Status.WARN or message.check in {one.check for one in standing})),
        "job": mine in _ALONE if message.file != KERNEL_LOG else mine is not Status.FAIL and not blocks,
        "nothing": not loud and not standing,
    }[message.cls]
    own_log = message.cls == "job" and message.file != KERNEL_LOG
    exact = unclear or own_log or not message.status or mine == message.status
    if right and exact:
        return ""
    said = "; ".join(f"{f.check} {f.status}: {f.message}" for f in findings if f.status is not Status.SKIP)
    return f"{message.tool}: {message.sample!r} is {message.cls} of {message.check}: {said or 'nothing said'}"


def _weighs_heads(message: Message) -> bool:
    """Does its check read the kernel log by the parser that judges what stands before a message?"""
    check = CHECKS[message.check]
    return "kernel" in (*check.needs, *check.needs_any)


def trouble(path: Path) -> Iterator[str]:
    """Every message of a file behind every head whose answer is not what its class wants.

    A kernel log's messages that mean nothing stand in one log, so that a list of hundreds is judged in seconds; one by
    one where that is not quiet.
    """
    messages = load(path)
    file = messages[0].file
    quiet = [message for message in messages if message.cls == "nothing" and file == KERNEL_LOG]
    rest = [message for message in messages if message.cls != "nothing" or file != KERNEL_LOG]
    heads = [(head, "") for head in HEADS[file]] + [(head, HEADS[file][0]) for head in UNCLEAR.get(file, ())]
    for head, opening in heads:
        loud = [message for message in rest if not opening or _weighs_heads(message)]
        if quiet and wrong(quiet[0], judge(quiet, head, opening)):
            loud += quiet
        for message in loud:
            said = wrong(message, judge([message], head, opening), unclear=bool(opening))
            if said:
                yield f"behind {head!r}: {said}"


def unread(messages: Sequence[Message]) -> list[Message]:
    """Those that mean nothing beside what follows them, and that the ledger of lines asks to read where they stand alone."""
    quiet = [one for one in messages if one.cls == "nothing" and one.file == KERNEL_LOG]
    return [
        one
        for one in quiet
        if any(f.check == LEDGER and f.status in BLOCKING for f in judge([one], HEADS[one.file][0]))
    ]


def table() -> list[str]:
    """For docs/corpus.md: messages per tool and class."""
    rows = ["| tool | version | " + " | ".join(CLASSES) + " | of nothing, unread | heads | from |"]
    rows.append("|---|---|" + "--:|" * (len(CLASSES) + 2) + "---|")
    for path in files():
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        counts = Counter(message.cls for message in load(path))
        heads = len(HEADS[document["file"]]) + len(UNCLEAR.get(document["file"], ()))
        numbers = " | ".join(str(counts[cls]) for cls in CLASSES)
        alone = len(unread(load(path)))
        rows.append(
            f"| {document['tool']} | {document['version']} | {numbers} | {alone} | {heads} | {document['source']} |"
        )
    return rows


def readings() -> list[dict[str, str]]:
    """Where a second reading differed from the class that stood."""
    rows: list[dict[str, str]] = yaml.safe_load((DATA.parent / "readings.yml").read_text(encoding="utf-8"))
    return rows


def readings_table() -> list[str]:
    """For docs/corpus.md."""
    parts = ("tool", "part", "first", "second", "decided", "why")
    rows = ["| " + " | ".join(parts).replace("part", "message", 1) + " |", "|---|---|---|---|---|---|"]
    return rows + ["| " + " | ".join(row[part] for part in parts) + " |" for row in readings()]
