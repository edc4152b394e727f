"""The way out of service on Kubernetes, by the rule: the taint of an unclean node. Pods that run there stay."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any, Callable, List, Mapping, Tuple

from ..watch import rule
from ..watch.kmsg import boot_id
from ..watch.marker import stamp
from ..watch.options import Options
from ..watch.report import LEVEL
from ..watch.rule import HELD, OUT, TOLD, Row
from ..watch.slurm import DRAIN, DRAINED, PENDING, SUSPECT, DrainResult
from . import api, names
from .own_node import OwnNode
from .standing import NO_GO, Standing, read, reason_of, serves


def row_of(meta: Mapping[str, Any]) -> Row:
    """A Node's mark for the reason that its label names; NONE for one that is not out and has none."""
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    name, mark = str(meta["name"]), str(labels.get(names.MARK_LABEL) or "")
    out = labels.get(names.VERDICT_LABEL) == NO_GO or names.CORDON in notes
    if mark or not out:
        return Row(name, mark)
    stands = read({"metadata": meta})
    try:
        at = datetime.fromisoformat(stands.at.replace("Z", "+00:00")) if stands else None
        return Row(name, OUT, (datetime.now(timezone.utc) - at).total_seconds() if at else 0.0)
    except (ValueError, TypeError):
        return Row(name, OUT)


class KubeMarks:
    """The marks of the Nodes of this one's type: labels, which the API server selects by."""

    def __init__(self, own: OwnNode, word: Standing) -> None:
        self.me, self._own, self._word, self._reason = own.name, own, word, reason_of(word)

    def rows(self) -> Tuple[List[Row], int]:
        """Who has a claim for the same."""
        found, size = self._own.alike(self._reason)
        return [row for row in map(row_of, found) if row.mark], size

    def mark(self, mark: str) -> None:
        """Set this node's."""
        self._own.mark(self._reason if mark else None, mark or None)

    def drain(self) -> None:
        """Tell the Node."""
        self._own.tell(self._word)


def leave(
    own: OwnNode, word: Standing, wanted: Options, again: bool, sleep: Callable[[float], object] = time.sleep
) -> DrainResult:
    """Take a Node that serves out of service by the rule. Raises ApiError; then nothing is decided."""
    marks = KubeMarks(own, word)
    try:
        found, rows, size = rule.follow(marks, wanted.policy, sleep)
    except rule.MarkLostError as error:
        return DrainResult(PENDING, str(error))
    if found.do == rule.DRAIN:
        return DrainResult(DRAINED, word.why)
    if wanted.suspects == DRAIN:
        own.tell(word)
        marks.mark(HELD)
        return DrainResult(DRAINED, word.why)
    says = ""
    if again and rule.tells(own.name, rows):
        marks.mark(TOLD)
        says = f"{reason_of(word)} on {len(rows)} of {size} nodes: {found.why}"
    return DrainResult(SUSPECT, found.why, says)


def taint(reason: str, run: str, env: Mapping[str, str], wanted: Options, again: bool = False) -> DrainResult:
    """Tell the Node that it is unclean. PENDING says why it could not be done now; it is worth another try.

    reason: a claim, for people too.
    """
    word = Standing(NO_GO, LEVEL, run, stamp(), boot_id(wanted.root), reason)
    try:
        own = own_node(env)
        if serves(read(own.read())):
            return leave(own, word, wanted, again)
        own.tell(word)
    except api.ApiError as error:
        return DrainResult(PENDING, str(error))
    return DrainResult(DRAINED, reason)


def own_node(env: Mapping[str, str]) -> OwnNode:
    """The Node of this machine. Raises ApiError."""
    return OwnNode(api.access(env), api.own_name(env), lambda: stamp()[:19] + "Z")


def lift(env: Mapping[str, str]) -> str:
    """Take away this node's mark; why that could not be, or ''."""
    try:
        own = own_node(env)
        if row_of(own.read()["metadata"]).mark in (HELD, TOLD):
            own.mark(None, None)
    except api.ApiError as error:
        return str(error)
    return ""
