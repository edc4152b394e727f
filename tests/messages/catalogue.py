"""From a message of data/*.yml to a log behind each head, and to the judgement's answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flightline_node import judge as judging
from flightline_node.bundle import Bundle
from flightline_node.checks import CHECKS
from flightline_node.expected import resolve
from flightline_node.facts import FactBook
from flightline_node.model import BLOCKING, RANK, Finding, SettingsError, Status
from flightline_node.parsers import PARSERS
from flightline_node.settings import build as site
from tests.harness import NOW

from .heads import HEADS, OPENING, UNCLEAR

DATA = Path(__file__).parent / "data"
CLASSES = ("condemns", "degrades", "job", "nothing")
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

_KEYS = frozenset({"sample", "class", "check", "reason", "times", "before", "status"})


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

    def log(self, head: str) -> str:
        """The file that holds it, each of its lines behind the head."""
        lines = [OPENING.get(self.file, ""), *self.before, *[self.sample] * self.times]
        made = (head.format(line=_fill(line), s=n % 60, up=1.0 + 7 * n) for n, line in enumerate(lines) if line)
        return "\n".join(made) + "\n"


def _fill(sample: str) -> str:
    for name, value in FIELDS.items():
        sample = sample.replace("{" + name + "}", value)
    return sample


def _message(document: dict[str, Any], given: dict[str, Any]) -> Message:
    if set(given) - _KEYS or given["class"] not in CLASSES or given["check"] not in CHECKS or not given["reason"]:
        raise SettingsError(f"{document['tool']}: {given}: wanted {sorted(_KEYS)}, class {CLASSES}, a known check")
    return Message(
        document["tool"],
        document["file"],
        document.get("instance_type", "p5.48xlarge"),
        given["sample"],
        given["class"],
        given["check"],
        given["reason"],
        given.get("times", 1),
        tuple(given.get("before", ())),
        given.get("status", ""),
    )


def load(path: Path) -> list[Message]:
    """The messages of one file. Raises SettingsError for one that cannot be understood, or stands there twice."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    messages = [_message(document, given) for given in document["messages"]]
    twice = [one for one, number in Counter((m.sample, m.times, m.before) for m in messages).items() if number > 1]
    if twice or not document["version"] or not document["source"]:
        raise SettingsError(f"{path.name}: twice: {twice}; or without version or source")
    return messages


def files() -> list[Path]:
    """The files of data/."""
    return sorted(DATA.glob("*.yml"))


class _OneFile(Bundle):
    """A bundle of one file, in memory."""

    def __init__(self, name: str, content: bytes) -> None:
        super().__init__(Path(), {})
        self._name, self._content = name, content

    def has(self, file: str) -> bool:
        return file == self._name

    def read(self, file: str) -> bytes:
        return self._content


def judge(message: Message, head: str) -> list[Finding]:
    """What every check that reads the message's file says of it."""
    book = FactBook(_OneFile(message.file, message.log(head).encode()))
    parsers = {parser.name for parser in PARSERS.values() if message.file in parser.files}
    settings, expected = site(level="deep"), resolve(message.instance_type, {})
    found: list[Finding] = []
    for check in CHECKS.values():
        if parsers & {*check.needs, *check.needs_any}:
            found += judging._judge_check(check, book, expected, settings, NOW, {}, False)
    return found


def _worst(findings: list[Finding]) -> Status | None:
    return max((finding.status for finding in findings), key=lambda one: RANK[one], default=None)


def wrong(message: Message, findings: list[Finding], unclear: bool = False) -> str:
    """Why the judgement is not what the class wants, or nothing."""
    mine = _worst([finding for finding in findings if finding.check == message.check])
    blocks = any(finding.status in BLOCKING for finding in findings)
    loud = blocks or any(finding.status is Status.WARN for finding in findings)
    right = {
        "condemns": mine is (Status.UNKNOWN if unclear else Status.FAIL),
        "degrades": unclear or (mine is Status.WARN and not blocks),
        "job": mine is not Status.FAIL and not (blocks and message.file == "kernel.log"),
        "nothing": not loud,
    }[message.cls]
    exact = unclear or not message.status or mine == message.status
    if right and exact:
        return ""
    said = "; ".join(f"{f.check} {f.status}: {f.message}" for f in findings if f.status is not Status.SKIP)
    return f"{message.tool}: {message.sample!r} is {message.cls} of {message.check}: {said or 'nothing said'}"


def trouble(path: Path) -> Iterator[str]:
    """Every message of a file behind every head whose answer is not what its class wants."""
    for message in load(path):
        for head in HEADS[message.file]:
            said = wrong(message, judge(message, head))
            if said:
                yield f"behind {head!r}: {said}"
                break
        for head in UNCLEAR.get(message.file, ()):
            said = wrong(message, judge(message, head), unclear=True)
            if said:
                yield f"behind {head!r}: {said}"
                break


def table() -> list[str]:
    """For docs/corpus.md: messages per tool and class."""
    rows = ["| tool | version | " + " | ".join(CLASSES) + " | heads | from |"]
    rows.append("|---|---|" + "--:|" * (len(CLASSES) + 1) + "---|")
    for path in files():
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        counts = Counter(message.cls for message in load(path))
        heads = len(HEADS[document["file"]]) + len(UNCLEAR.get(document["file"], ()))
        numbers = " | ".join(str(counts[cls]) for cls in CLASSES)
        rows.append(f"| {document['tool']} | {document['version']} | {numbers} | {heads} | {document['source']} |")
    return rows
