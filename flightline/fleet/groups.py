"""The same trouble of many hosts, once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from sys import intern

from flightline_node.model import RANK, Remedy, Status, device_label

from .causes import EXPLAINED, READ_CHARS, Trouble, annotate
from .checks import title_of
from .remedies import advice
from .result import FindingDict, NodeRow, TroubleGroup

_WORD = re.compile(r"[\w.:/-]+")
_DIGIT = re.compile(r"\d")


def group(rows: Iterable[NodeRow]) -> list[TroubleGroup]:
    """The same trouble of several hosts as one: same check, status, remedy, expectation and cause; worst first.

    What another finding of its node explains is told apart from the same thing standing alone.
    """
    found: dict[tuple[object, ...], TroubleGroup] = {}
    for row in rows:
        annotate(row.troubles)
        roots = {id(trouble.root): trouble for trouble in row.troubles}
        for finding in row.findings:
            if finding["status"] != "SKIP":
                _add(found, row.host, finding, roots.get(id(finding)))
    return sorted(found.values(), key=lambda item: (-RANK[item.status], -len(item.hosts), item.check))


def _add(found: dict[tuple[object, ...], TroubleGroup], host: str, finding: FindingDict, root: Trouble | None) -> None:
    label = intern(device_label(finding.get("device") or {}))
    explained = str((finding.get(EXPLAINED) or {}).get("cause", ""))
    check, status, remedy = finding["check"], Status(finding["status"]), Remedy(finding["remedy"])
    text = advice(check, remedy, status, root.cause if root else "").text
    unit, expected = finding.get("unit") or "", finding.get("expected")
    said = message_shape(str(finding["message"])[:READ_CHARS], host, label)
    key = (check, status, remedy, repr(expected), unit, said, explained, text)
    if key not in found:
        message = str(finding["message"])
        found[key] = TroubleGroup(
            check, title_of(check), status, remedy, text, message, expected, unit, [], {}, explained
        )
    found[key].where.append((host, label, finding.get("measured")))
    if root:
        found[key].explains.update(dict.fromkeys(one["check"] for one in root.explained))


@lru_cache(maxsize=4096)
def message_shape(message: str, host: str = "", device: str = "") -> str:
    """A message without what differs from host to host: names, addresses, ids and numbers."""
    for name in filter(None, (host, device)):
        message = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "", message)
    return _WORD.sub(lambda match: "" if _DIGIT.search(match.group()) else match.group(), message)
