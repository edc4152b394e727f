"""EC2 instance metadata: metadata paths with their text, or the instance identity document.

The shape: one JSON object. Keys are metadata paths ('meta-data/instance-type', with or without
'latest/' and 'meta-data/'), values the text served, null where the service says that there
is none (404). Beside them `available`, `reason`, `errors`, and `http_tokens` ('required' or
'optional', from the EC2 API: it cannot be read on the node without a call without a token).
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("imds.json",)

_TEXTS = {
    "instance-type": "instance_type",
    "instance-id": "instance_id",
    "placement/availability-zone": "availability_zone",
    "placement/availability-zone-id": "availability_zone_id",
    "placement/group-name": "placement_group",
    "placement/partition-number": "partition",
    "instance-life-cycle": "life_cycle",
    "ami-id": "image_id",
}
_SPELLINGS = {
    "instanceType": "instance_type",
    "instanceId": "instance_id",
    "availabilityZone": "availability_zone",
    "imageId": "image_id",
}
_SPOT, _REBALANCE, _EVENTS = "spot/instance-action", "events/recommendations/rebalance", "events/maintenance/scheduled"
_DOCUMENT = "dynamic/instance-identity/document"


def parse(files: Mapping[str, Data]) -> Facts:
    """What the metadata service said.

    {available, reason, instance_type, instance_id, availability_zone, availability_zone_id, placement_group,
    partition, life_cycle, image_id, spot_action{action time}, rebalance{notice_time},
    maintenance_events[]{code state not_before not_after description event_id}, tokens_required, errors{path: text}}.

    available False: no metadata service, reason says why; asked: the endpoint that gave no answer (absent
    when none was asked, because the machine is not an EC2 instance). A value the
    service does not have is None (no spot action, no placement group); one not asked for is absent.
    """
    document = v.json_object(t.only(files))
    paths = {_short(str(key)): value for key, value in document.items()}
    identity = _decoded(paths.pop(_DOCUMENT, None))
    facts: Facts = {}
    if isinstance(identity, dict):
        facts.update(_texts(identity))
    facts.update(_texts(paths))
    facts.update(_events(paths))
    for name in ("tokens_required", "http_tokens"):
        if name in paths:
            facts["tokens_required"] = paths[name] in (True, "required")
    facts["available"] = paths["available"] is not False if "available" in paths else bool(facts)
    if not facts["available"] and "available" not in paths:
        raise ParseError(f"no metadata in it, keys {sorted(paths)[:8]}")
    facts.update({name: v.word(paths[name]) for name in ("reason", "asked") if v.word(paths.get(name))})
    if isinstance(paths.get("errors"), dict):
        facts["errors"] = {str(path): str(text)[:200] for path, text in list(paths["errors"].items())[: v.MAX_NOTED]}
    return facts


def _short(key: str) -> str:
    for prefix in ("/", "latest/", "meta-data/"):
        if key.startswith(prefix):
            key = key[len(prefix) :]
    return key


def _texts(values: Mapping[str, Any]) -> Facts:
    names = {**_TEXTS, **_SPELLINGS, **{name: name for name in _TEXTS.values()}}
    return {names[key]: v.word(value) for key, value in values.items() if key in names}


def _events(paths: Mapping[str, Any]) -> Facts:
    facts: Facts = {}
    for path, name in ((_SPOT, "spot_action"), (_REBALANCE, "rebalance")):
        for key in (path, name):
            if key in paths:
                facts[name] = _notice(paths[key])
    for key in (_EVENTS, "maintenance_events"):
        if key in paths:
            facts["maintenance_events"] = _scheduled(paths[key])
    return facts


def _decoded(value: object) -> Any:
    """Metadata that is JSON comes as text inside the JSON of the bundle. Raises ParseError when it is cut off."""
    if not isinstance(value, str) or not value.strip():
        return None if isinstance(value, str) else value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ParseError(f"not the JSON that the metadata service serves: {value[:80]!r}") from None


def _notice(value: object) -> Optional[Dict[str, Optional[str]]]:
    """{'action': 'terminate', 'time': ...} or {'noticeTime': ...}, names as the facts spell them."""
    decoded = _decoded(value)
    if decoded is None:
        return None
    if not isinstance(decoded, dict):
        raise ParseError(f"got {str(decoded)[:80]!r}, wanted a notice's object")
    return {_snake(str(key)): v.word(item) for key, item in decoded.items()}


def _scheduled(value: object) -> List[Dict[str, Optional[str]]]:
    decoded = _decoded(value)
    if decoded is None:
        return []
    if not isinstance(decoded, list):
        raise ParseError(f"got {str(decoded)[:80]!r}, wanted a list of events")
    return [{_snake(str(key)): v.word(item) for key, item in event.items()} for event in v.mappings(decoded)]


def _snake(key: str) -> str:
    return "".join(("_" + char.lower()) if char.isupper() and at else char.lower() for at, char in enumerate(key))
