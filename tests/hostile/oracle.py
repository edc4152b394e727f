"""What an answer should come to, by other means than the gate's own: JSON Schema, and rules written down again here."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

import jsonschema

from flightline.record.schema import published

_SCHEMA = jsonschema.Draft202012Validator(published())


def should_be_go(answer: Any, checks: Collection[str], **identity: str) -> bool:
    """Is this a complete valid record of just this call, in which nothing blocks and something was seen?"""
    if not isinstance(answer, dict) or any(answer.get(name) != value for name, value in identity.items()):
        return False
    findings = answer.get("findings")
    if not isinstance(findings, list) or not all(isinstance(one, dict) for one in findings):
        return False
    statuses = [one.get("status") for one in findings]
    if not any(status in ("PASS", "INFO", "WARN") for status in statuses if isinstance(status, str)):
        return False
    if any(status not in ("PASS", "INFO", "WARN", "SKIP") for status in statuses):
        return False
    if {str(one.get("check")) for one in findings} != set(checks):
        return False
    said = [json.dumps([one.get(key) for key in ("check", "device", "message")], default=str) for one in findings]
    return len(said) == len(set(said)) and _finite(answer, 0) and _SCHEMA.is_valid(answer)


def of_text(text: str, checks: Collection[str], **identity: str) -> bool:
    """The same of JSON text, in which no key may be given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    try:
        answer = json.loads(text, object_pairs_hook=once)
    except (ValueError, AssertionError, RecursionError):
        return False
    return should_be_go(answer, checks, **identity)


def _finite(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return all(_finite(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return all(_finite(item, depth + 1) for item in value)
    # Measured values may nest four deep within finding, list and record; numbers stay below 1e30.
    return depth <= 8 and (not isinstance(value, float) or math.isfinite(value))
