"""What other tools look for on a node (peers.yml), and what the judgement says of each line of theirs, alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from flightline_node.judge.checks import CHECKS, reasons_of
from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.model import BLOCKING, Status, Verdict
from flightline_node.settings import build as site
from tests.harness import NOW, InMemory

PEERS = yaml.safe_load((Path(__file__).parent / "peers.yml").read_text(encoding="utf-8"))
_OPENING = "[    1.000001] Linux version 6.8.0-1015-aws (buildd@x) #16-Ubuntu SMP\n"
_expected = cache(resolve)
_site = cache(lambda: site(level="deep"))


def _rows(peer: str) -> list[dict[str, Any]]:
    """A peer's rows, its counters one by one."""
    counters = [row["counters"] for row in PEERS["rules"][peer] if "counters" in row]
    named = [{"rule": rule, "ours": ours.replace(".", " ", 1)} for one in counters for rule, ours in one.items()]
    return [row for row in PEERS["rules"][peer] if "rule" in row] + named


@dataclass(frozen=True)
class Rule:
    """One rule of a peer, of a table one code of it. line: "" where it asks for a counter or a state."""

    peer: str
    name: str
    line: str
    ours: tuple[str, ...]
    why: str
    file: str
    type: str


def rules() -> Iterator[Rule]:
    """Every rule."""
    for peer in PEERS["rules"]:
        for row in _rows(peer):
            for code in row.get("codes", [""]):
                line, ours = (row.get(part, "").replace("{code}", str(code)) for part in ("line", "ours"))
                yield Rule(
                    peer,
                    f"{row['rule']} {code}".strip(),
                    line,
                    tuple(ours.split()),
                    row.get("why", ""),
                    row.get("file", "kernel.log"),
                    row.get("type", "p5.48xlarge"),
                )


def _log(rule: Rule) -> bytes:
    if rule.file != "kernel.log":
        return f"{rule.line}\n".encode()
    return (_OPENING + "".join(f"[    2.000001] {line}\n" for line in rule.line.split("\n"))).encode()


def wrong(rule: Rule) -> str:
    """Why a rule is not answered as it says, or nothing."""
    if not rule.line:
        known = rule.ours and rule.ours[0] in CHECKS and rule.ours[1] in {one.id for one in reasons_of(rule.ours[0])}
        return "" if known or (not rule.ours and rule.why) else f"{rule}: wanted a check and a reason of it, or why not"
    judged = judge(InMemory({rule.file: _log(rule)}), _expected(rule.type), _site(), NOW, required=False)
    said = [(one.check, one.reason, str(one.status)) for one in judged.findings]
    wanted_go = rule.ours in (("go",), ()) or (len(rule.ours) > 2 and Status(rule.ours[2]) not in BLOCKING)
    found = len(rule.ours) < 2 or any(one[: len(rule.ours)] == rule.ours for one in said)
    right = found and bool(rule.ours) and (judged.verdict is Verdict.GO) is wanted_go
    return "" if right else f"{rule}: {judged.verdict}, {[one for one in said if one[1]]}"


def _key(peer: str, row: dict[str, Any]) -> tuple[str, str, str]:
    """In which row of the page a rule stands: our answer, whose, and why where it does not block."""
    words = row.get("ours", "not answered").replace("event.", "").replace("{code}", "n").split()
    if "ours" in row and "line" not in row:
        return "a counter or a state", peer, ""
    if len(words) > 2:
        words[:2] = [words[1] if words[1].startswith(f"{words[0]}.") else f"{words[0]}.{words[1]}"]
    return " ".join(words), "", row.get("why", "") if len(words) < 2 or "ours" not in row else ""


def table() -> list[str]:
    """For docs/corpus.md: whose rules each of our answers meets, and why what is not answered or does not block."""
    theirs: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    whys: dict[tuple[str, str, str], list[str]] = {}
    for peer in PEERS["rules"]:
        for row in _rows(peer):
            key, name, why = _key(peer, row), row["rule"], row.get("why", "")
            if key[1]:
                name += f" ({row['ours'].replace(' ', '.')})"
            elif "codes" in row:
                name += f" ({len(row['codes'])} codes)"
            theirs.setdefault(key, {}).setdefault(peer, []).append(name)
            whys.setdefault(key, []).extend([why] if why and why not in whys.get(key, []) else [])
    rows = [
        f"| {key[0]} | "
        + "; ".join(f"**{peer}** {', '.join(names)}" for peer, names in peers.items())
        + f" | {'; '.join(whys[key])} |"
        for key, peers in sorted(theirs.items())
    ]
    return [
        *(f"- {peer}: {source}" for peer, source in PEERS["read"].items()),
        "",
        "| ours | theirs | why |",
        "|---|---|---|",
        *rows,
    ]
