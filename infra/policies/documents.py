"""Reading IAM documents as they stand in properties: JSON text, a dict, or not known yet."""

import fnmatch
import json
from typing import Any, Dict, Iterator, List

from .model import UNKNOWN


def statements(document: Any) -> Iterator[Any]:
    """The statements of a document; UNKNOWN stands for those that cannot be read yet."""
    if document is None:
        return
    if document is UNKNOWN:
        yield UNKNOWN
        return
    parsed = json.loads(document) if isinstance(document, str) else document
    yield from as_list(parsed.get("Statement"))


def as_list(value: Any) -> List[Any]:
    """IAM writes a list of one as the thing itself."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def allows(statement: Dict[str, Any], action: str) -> bool:
    """Whether the statement's actions include this one; IAM ignores case and knows `*` and `?`."""
    if statement.get("Effect") != "Allow":
        return False
    if "NotAction" in statement:
        return not _matches(statement["NotAction"], action)
    return _matches(statement.get("Action"), action)


def _matches(patterns: Any, action: str) -> bool:
    return any(fnmatch.fnmatchcase(action.lower(), str(pattern).lower()) for pattern in as_list(patterns))


_NARROWING = frozenset(
    {
        "aws:principalaccount",
        "aws:principalarn",
        "aws:principalorgid",
        "aws:sourceaccount",
        "aws:sourcearn",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "s3:dataaccesspointaccount",
    }
)
"""Condition keys that say who, in small letters; IAM ignores their case."""


def grants_everybody(statement: Dict[str, Any]) -> bool:
    """An Allow for any principal without a condition that says who: one that asks for TLS lets everybody in."""
    if statement.get("Effect") != "Allow" or _says_who(statement.get("Condition") or {}):
        return False
    if "NotPrincipal" in statement:
        return True
    principal = statement.get("Principal")
    return principal == "*" or (isinstance(principal, dict) and "*" in as_list(principal.get("AWS")))


def _says_who(condition: Dict[str, Any]) -> bool:
    for operator, keys in condition.items():
        if operator.lower().endswith("ifexists") or "not" in operator.lower():
            continue
        for key, values in keys.items():
            if key.lower() in _NARROWING and "*" not in as_list(values):
                return True
    return False
