"""The Node of this machine: read it, and tell it what stands. Every write names the version that was read."""

from __future__ import annotations

import secrets
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import api, names
from .standing import UNPROVEN, Standing, condition, event, patch, read, settled

CONFLICTS = 8
"""Writes that lose against somebody else's before it is given up for now: kubelet writes every few seconds at most."""


class NodeUpdate(NamedTuple):
    """What was told. node: as the server has it now. stands: what stands after the word. trouble: with the Event."""

    node: Dict[str, Any]
    stands: Standing
    changed: bool
    trouble: str = ""


class OwnNode:
    """One Node. Every method raises ApiError."""

    def __init__(self, to: api.ApiAccess, name: str, stamp: Callable[[], str]) -> None:
        self._to, self.name, self._stamp = to, name, stamp

    def read(self) -> Dict[str, Any]:
        """The Node now."""
        found: Dict[str, Any] = api.ask(self._to, "GET", api.node_path(self.name))
        return found

    def tell(self, word: Standing) -> NodeUpdate:
        """Taints, labels and annotation in one write, then the condition, then an Event where it is news."""
        before, node, stands = self._write(word)
        now = self._stamp()
        path = api.node_path(self.name, "/status")
        node = api.ask(self._to, "PATCH", path, condition(node, stands, now), api.STRATEGIC)
        changed = before is None or (before.verdict, before.why) != (stands.verdict, stands.why)
        trouble = self._say(event(node, stands, now, secrets.token_hex(8))) if changed else ""
        return NodeUpdate(node, stands, changed, trouble)

    def set_unknown(self, why: str) -> None:
        """The condition alone is Unknown: nothing was judged, so nothing that stands is taken back or added."""
        node = self.read()
        doubted = Standing(UNPROVEN, "quick", "none", self._stamp(), "", why)
        path = api.node_path(self.name, "/status")
        api.ask(self._to, "PATCH", path, condition(node, doubted, self._stamp()), api.STRATEGIC)

    def alike(self, reason: str) -> Tuple[List[Dict[str, Any]], int]:
        """The metadata of the Nodes of this one's type that have a claim for a reason, and how many of the type are."""
        kind = (self.read()["metadata"].get("labels") or {}).get(names.TYPE_LABEL)
        of_kind = {names.TYPE_LABEL: kind} if kind else {}
        path = api.nodes_path({**of_kind, names.CLAIM_LABEL: reason})
        # The API server writes null for no item and no row.
        found = api.ask(self._to, "GET", path, accept=api.PARTIAL)["items"] or []
        rows = api.ask(self._to, "GET", api.nodes_path(of_kind, "&includeObject=None"), accept=api.TABLE)["rows"] or []
        return [one["metadata"] for one in found], len(rows)

    def mark(self, reason: Optional[str], mark: Optional[str]) -> None:
        """Set the claim and its mark; None takes both away."""
        labels = {names.CLAIM_LABEL: reason, names.MARK_LABEL: mark}
        api.ask(self._to, "PATCH", api.node_path(self.name), {"metadata": {"labels": labels}}, api.MERGE)

    def drop(self, annotation: str) -> None:
        """Take an annotation of ours away."""
        gone = {"metadata": {"annotations": {annotation: None}}}
        api.ask(self._to, "PATCH", api.node_path(self.name), gone, api.MERGE)

    def _write(self, word: Standing) -> tuple[Optional[Standing], Dict[str, Any], Standing]:
        for left in reversed(range(CONFLICTS)):
            node = self.read()
            before = read(node)
            stands = settled(before, word)
            try:
                done = api.ask(self._to, "PATCH", api.node_path(self.name), patch(node, stands), api.MERGE)
                return before, done, stands
            except api.ApiError as error:
                if error.status != api.CONFLICT or not left:
                    raise
        raise AssertionError("the loop returns or raises")

    def _say(self, update: Dict[str, Any]) -> str:
        """Events are news, not state: one that is lost does not hold up the taint."""
        try:
            api.ask(self._to, "POST", f"/api/v1/namespaces/{names.EVENTS_NAMESPACE}/events", update)
        except api.ApiError as error:
            return str(error)
        return ""
