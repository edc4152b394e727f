"""Whether IAM allows a call, after its documented evaluation logic for one account. Not the service itself.

Sources: IAM user guide, "Policy evaluation logic" (a deny anywhere, else an allow of the identity's or the resource's
policy), "Variables and tags" (a variable without a value matches nothing), "IAM JSON policy elements: Condition
operators" (set operators, ...IfExists, a missing key), "Resource" (wildcards stay within a segment of an ARN).
What is not written here raises: an operator that nobody judges must not read as allowed or as refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Context = Mapping[str, str | Sequence[str]]
Document = Mapping[str, Any]


class UnknownElementError(ValueError):
    """A policy uses what this evaluator does not judge."""


@dataclass(frozen=True)
class Request:
    """One call. context: condition keys, of the principal and of the request; principal: its role's ARN."""

    action: str
    resource: str = "*"
    context: Context = field(default_factory=dict)
    principal: str = ""

    def values(self, key: str) -> list[str] | None:
        """What the request has under a condition key, whose case does not matter; None when it has none."""
        for name, value in self.context.items():
            if name.lower() == key.lower():
                return [value] if isinstance(value, str) else list(value)
        return None


def allowed(identity: Iterable[Document], request: Request, of_resource: Iterable[Document] = ()) -> bool:
    """Whether the call is allowed. of_resource: policies of the resource, which name principals."""
    effects = [s["Effect"] for policy in identity for s in _statements(policy) if _applies(s, request)]
    effects += [
        s["Effect"]
        for policy in of_resource
        for s in _statements(policy)
        if _names(s.get("Principal"), request) and _applies(s, request)
    ]
    return "Allow" in effects and "Deny" not in effects


def _statements(policy: Document) -> list[Document]:
    if policy.get("Version") != "2012-10-17":
        raise UnknownElementError("variables are text before version 2012-10-17")
    found = policy["Statement"]
    return [found] if isinstance(found, Mapping) else list(found)


def _applies(statement: Document, request: Request) -> bool:
    known = {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal"}
    if unknown := set(statement) - known:
        raise UnknownElementError(f"elements {sorted(unknown)}")
    return (
        _one_of(statement, "Action", lambda pattern: _like(pattern.lower(), request.action.lower()))
        and _one_of(statement, "Resource", lambda pattern: _arn_like(filled(pattern, request), request.resource))
        and all(_holds(operator, keys, request) for operator, keys in statement.get("Condition", {}).items())
    )


def _one_of(statement: Document, name: str, matches: Callable[[str], bool]) -> bool:
    if f"Not{name}" in statement:
        return not any(map(matches, _listed(statement[f"Not{name}"])))
    return any(map(matches, _listed(statement[name])))


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, bool)) else list(value)


def _names(principal: Any, request: Request) -> bool:
    """Whether an element Principal means the caller; services are not this caller."""
    if principal == "*":
        return True
    if not isinstance(principal, Mapping):
        raise UnknownElementError(f"principal {principal!r}")
    account = f"arn:aws:iam::{request.principal.split(':')[4]}:root" if request.principal else ""
    return any(one in ("*", request.principal, account) for one in _listed(principal.get("AWS", [])))


_VARIABLE = re.compile(r"\$\{([^},]+)(?:,\s*'([^']*)')?\}")
_LITERAL = {"*": "\x01", "?": "\x02", "$": "$"}
"""Of ${*} and ${?}, and of what a variable brings: characters, not wildcards."""


def filled(pattern: str, request: Request) -> str | None:
    """A pattern with the request's values for its variables; None when one has no value, or several."""
    missing = False

    def value(found: re.Match[str]) -> str:
        nonlocal missing
        if found[1] in _LITERAL:
            return _LITERAL[found[1]]
        values = request.values(found[1]) or ([found[2]] if found[2] is not None else [])
        missing = missing or len(values) != 1
        return values[0].replace("*", "\x01").replace("?", "\x02") if values else ""

    made = _VARIABLE.sub(value, pattern)
    return None if missing else made


def _like(pattern: str | None, text: str) -> bool:
    if pattern is None:
        return False
    parts = (re.escape(one) for one in re.split(r"([*?])", pattern))
    regex = "".join({r"\*": ".*", r"\?": "."}.get(part, part) for part in parts)
    return re.fullmatch(regex.replace("\x01", r"\*").replace("\x02", r"\?"), text, re.DOTALL) is not None


def _arn_like(pattern: str | None, text: str) -> bool:
    """Segment by segment; the last of six has all the rest, colons too. What is no ARN is matched as a whole."""
    if pattern is None or pattern == "*" or not pattern.startswith("arn:"):
        return _like(pattern, text)
    wanted, given = pattern.split(":", 5), text.split(":", 5)
    return len(wanted) == len(given) and all(map(_like, wanted, given))


def _equal(pattern: str | None, text: str) -> bool:
    return pattern is not None and pattern.replace("\x01", "*").replace("\x02", "?") == text


_OPERATORS: Mapping[str, Callable[[str | None, str], bool]] = {
    "StringEquals": _equal,
    "StringLike": _like,
    "StringEqualsIgnoreCase": lambda pattern, text: _equal(pattern and pattern.lower(), text.lower()),
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": lambda pattern, text: pattern is not None and pattern.lower() == text.lower(),
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotLike": "StringLike",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
}


def _holds(operator: str, keys: Mapping[str, Any], request: Request) -> bool:
    """Whether one operator's block holds: each of its keys does."""
    quantifier, _, plain = operator.rpartition(":")
    optional, plain = plain.endswith("IfExists"), plain.removesuffix("IfExists")
    if plain == "Null":
        return all((request.values(key) is None) == (str(want).lower() == "true") for key, want in keys.items())
    if quantifier not in ("", "ForAnyValue", "ForAllValues") or (plain not in _OPERATORS and plain not in _NEGATED):
        raise UnknownElementError(f"operator {operator}")
    return all(_key_holds(quantifier, optional, plain, request, key, wanted) for key, wanted in keys.items())


def _key_holds(quantifier: str, optional: bool, plain: str, request: Request, key: str, wanted: Any) -> bool:
    negated = plain in _NEGATED
    compare = _OPERATORS[_NEGATED.get(plain, plain)]
    values = request.values(key)
    if values is None:
        return optional or negated or quantifier == "ForAllValues"
    if len(values) > 1 and not quantifier:
        raise UnknownElementError(f"{key} has several values and no set operator")
    patterns = [filled(str(one), request) for one in _listed(wanted)]
    each = [any(compare(pattern, value) for pattern in patterns) != negated for value in values]
    return any(each) if quantifier == "ForAnyValue" else all(each)
