"""What stands of a node, and what that makes of its Node: taints, labels, annotation, condition. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Dict, List, Mapping, Optional

from ..bounds import MAX_MESSAGE_CHARS
from ..model import LEVELS
from ..watch import claim
from . import names

GO, NO_GO, UNPROVEN = "go", "no-go", "unproven"
REASONS: Mapping[str, str] = {GO: "NodeProven", NO_GO: "NodeUnclean", UNPROVEN: "NodeUnproven"}
"""Of the condition and of Events, as Kubernetes writes reasons."""
STATUS: Mapping[str, str] = {GO: "True", NO_GO: "False", UNPROVEN: "Unknown"}
MESSAGE_CHARS = 300


@dataclass(frozen=True)
class Standing:
    """The last word. verdict: GO, NO_GO or UNPROVEN. at: when it was looked, RFC 3339. why: for a person."""

    verdict: str
    level: str
    run: str
    at: str
    boot: str
    why: str = ""


def read(node: Mapping[str, Any]) -> Optional[Standing]:
    """What a Node says of itself; None where nobody has spoken, or what is there is no standing."""
    text = (node.get("metadata", {}).get("annotations") or {}).get(names.STANDING, "")
    try:
        found = json.loads(text)
        one = Standing(**{key: str(found[key]) for key in ("verdict", "level", "run", "at", "boot", "why")})
    except (ValueError, KeyError, TypeError):
        return None
    return one if one.verdict in STATUS and one.level in LEVELS else None


def reason_of(stands: Standing) -> str:
    """The id of the reason for which a node is no-go."""
    there = claim.read(stands.why)
    return there.reason[:63] if there else claim.NO_GO


def serves(stands: Optional[Standing]) -> bool:
    """Was the node in service until now? Also while level standard runs behind the startup taint."""
    return stands is not None and (stands.verdict == GO or stands.run.endswith("-standard"))


def settled(before: Optional[Standing], now: Standing) -> Standing:
    """What stands after a new word.

    A no-go is lifted by a go of the level that found the fault, or a deeper one, that began to look after it. A node
    that has not been proven since its boot stays unclean where it was: a reboot heals nothing by itself.
    """
    if before is None or before.verdict != NO_GO:
        return now
    if now.verdict == NO_GO:
        return replace(now, level=max(before.level, now.level, key=LEVELS.index))
    if now.verdict == GO and LEVELS.index(now.level) >= LEVELS.index(before.level) and later(now.at, before.at):
        return now
    return replace(before, boot=now.boot)


def later(moment: str, other: str) -> bool:
    """Is a moment after another? One that cannot be read is not."""
    try:
        return _moment(moment) > _moment(other)
    except ValueError:
        return False


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if found.tzinfo is None:
        raise ValueError(text)
    return found


def taints(node: Mapping[str, Any], stands: Standing) -> List[Dict[str, Any]]:
    """The Node's taints with ours as the standing wants them; what others set stays, in its place."""
    there: List[Dict[str, Any]] = list(node.get("spec", {}).get("taints") or [])
    ours = {STANDING_TAINTS[stands.verdict]} if stands.verdict in STANDING_TAINTS else set()
    # Only a go takes a taint of ours away: an unclean node that was never proven has both.
    kept = [one for one in there if stands.verdict != GO or not _is_ours(one)]
    known = {one.get("key") for one in kept if _is_ours(one)}
    return [*kept, *({"key": key, "effect": names.EFFECT} for key in sorted(ours - known))]


STANDING_TAINTS: Mapping[str, str] = {NO_GO: names.FAULT_TAINT, UNPROVEN: names.STARTUP_TAINT}


def _is_ours(taint: Mapping[str, Any]) -> bool:
    return taint.get("key") in (names.STARTUP_TAINT, names.FAULT_TAINT) and taint.get("effect") == names.EFFECT


def patch(node: Mapping[str, Any], stands: Standing) -> Dict[str, Any]:
    """The merge patch of the Node. It is refused (409) when the Node has changed, or is another of the same name."""
    held = {"uid": node["metadata"]["uid"], "resourceVersion": node["metadata"]["resourceVersion"]}
    labels: Dict[str, Optional[str]] = {names.VERDICT_LABEL: stands.verdict, names.LEVEL_LABEL: stands.level}
    before = read(node)
    if stands.verdict == NO_GO or (stands.verdict == GO and before and before.verdict == NO_GO):
        labels.update(
            {names.CLAIM_LABEL: reason_of(stands) if stands.verdict == NO_GO else None, names.MARK_LABEL: None}
        )
    told = json.dumps({**asdict(stands), "why": stands.why[:MESSAGE_CHARS]}, sort_keys=True)
    metadata = {**held, "labels": labels, "annotations": {names.STANDING: told}}
    return {"metadata": metadata, "spec": {"taints": taints(node, stands) or None}}


def condition(node: Mapping[str, Any], stands: Standing, now: str) -> Dict[str, Any]:
    """The strategic merge patch of the Node's status. now: RFC 3339 in whole seconds, as Kubernetes keeps times."""
    status = STATUS[stands.verdict]
    there = (node.get("status") or {}).get("conditions") or []
    before: Mapping[str, Any] = next((one for one in there if one.get("type") == names.CONDITION), {})
    one = {
        "type": names.CONDITION,
        "status": status,
        "reason": REASONS[stands.verdict],
        "message": f"{stands.why or stands.verdict}; level {stands.level}, run {stands.run}"[:MAX_MESSAGE_CHARS],
        "lastHeartbeatTime": now,
        "lastTransitionTime": now if before.get("status") != status else before.get("lastTransitionTime") or now,
    }
    return {"status": {"conditions": [one]}}


def event(node: Mapping[str, Any], stands: Standing, now: str, suffix: str) -> Dict[str, Any]:
    """An Event of the Node: a warning for what is no go."""
    name = str(node["metadata"]["name"])
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{suffix}", "namespace": names.EVENTS_NAMESPACE},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]},
        "type": "Normal" if stands.verdict == GO else "Warning",
        "reason": REASONS[stands.verdict],
        "message": f"{stands.why or stands.verdict}; level {stands.level}, run {stands.run}"[:MAX_MESSAGE_CHARS],
        "source": {"component": names.COMPONENT, "host": name},
        "reportingComponent": names.COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
