"""Kinds of JSON values: one declaration checks a value, describes itself as JSON Schema and drives the tests.

`take` returns the value with its text made printable, or raises MalformedError. Nothing but the standard library: the
storage function runs it too. A general validator (jsonschema) takes eight times as long, and is a package more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flightline_node.bounds import MAX_DEPTH, MAX_NUMBER, MAX_WORD_CHARS

from .printable import printable

SHOWN_CHARS = 60


class MalformedError(ValueError):
    """A value is not what was declared. Its text: where, what was seen, what was wanted."""

    def __init__(self, path: str, saw: str, wanted: str) -> None:
        super().__init__(f"{path or 'the answer'}: saw {saw}, wanted {wanted}")


class Kind(Protocol):
    """What a value has to be."""

    def take(self, value: Any, path: str) -> Any:
        """The value, printable. Raises MalformedError."""

    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""


def seen(value: Any) -> str:
    """A value in a few words, escaped."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, str):
        more = f"... ({len(value)} characters)" if len(value) > SHOWN_CHARS else ""
        return f"{value[:SHOWN_CHARS]!a}{more}"
    names: dict[type, str] = {list: "a list", dict: "an object"}
    return f"{names.get(type(value), type(value).__name__)} of {len(value)}" if hasattr(value, "__len__") else "?"


def _number(value: float) -> str:
    try:
        return repr(value)[:SHOWN_CHARS]
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "a huge number"


@dataclass(frozen=True)
class Text:
    """Text. pattern: of the whole text."""

    most: int
    least: int = 0
    pattern: str = ""
    choices: tuple[str, ...] = ()

    def take(self, value: Any, path: str) -> str:
        """The text, printable."""
        if type(value) is not str or not self.least <= len(value) <= self.most:
            raise MalformedError(path, seen(value), self._wanted())
        if self.choices and value not in self.choices:
            raise MalformedError(path, seen(value), self._wanted())
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise MalformedError(path, seen(value), self._wanted())
        return printable(value)

    def _wanted(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices[:8])}{'' if len(self.choices) <= 8 else ', ...'}"
        like = f" like {self.pattern}" if self.pattern else ""
        return f"text of {self.least} to {self.most} characters{like}"

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        if self.choices:
            return {"enum": list(self.choices)}
        base: dict[str, Any] = {"type": "string", "maxLength": self.most}
        return base | ({"minLength": self.least} if self.least else {}) | self._pattern()

    def _pattern(self) -> dict[str, str]:
        return {"pattern": f"^(?:{self.pattern})$"} if self.pattern else {}


@dataclass(frozen=True)
class Number:
    """A finite number."""

    least: float = -MAX_NUMBER
    most: float = MAX_NUMBER

    def take(self, value: Any, path: str) -> float:
        """The number."""
        if type(value) not in (int, float) or not self.least <= value <= self.most:  # NaN is within nothing
            raise MalformedError(path, seen(value), f"a number from {self.least:g} to {self.most:g}")
        number: float = value
        return number

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def take(self, value: Any, path: str) -> bool:
        """The flag."""
        if type(value) is not bool:
            raise MalformedError(path, seen(value), "true or false")
        return value

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class OrNull:
    """A value, or null."""

    kind: Kind

    def take(self, value: Any, path: str) -> Any:
        """The value."""
        return None if value is None else self.kind.take(value, path)

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True)
class Scalar:
    """Null, a flag, a number or text of at most so many characters."""

    most: int
    flags: bool = True

    def take(self, value: Any, path: str) -> Any:
        """The value."""
        if value is None or (self.flags and type(value) is bool):
            return value
        return (Text(self.most) if isinstance(value, str) else Number()).take(value, path)

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        flag = [Flag().schema()] if self.flags else []
        return {"anyOf": [Text(self.most).schema(), Number().schema(), *flag, {"type": "null"}]}


@dataclass(frozen=True)
class Small:
    """Any JSON value of at most so many characters, without deep nesting; its length as JSON is not in the schema."""

    most: int

    def take(self, value: Any, path: str) -> Any:
        """The value."""
        if value is None or type(value) is bool:
            return value
        taken = self._part(value, path, 0)
        if isinstance(taken, (dict, list)) and len(json.dumps(taken)) > self.most:
            raise MalformedError(path, seen(value), f"a value of at most {self.most} characters as JSON")
        return taken

    def _part(self, value: Any, path: str, depth: int) -> Any:
        if depth > MAX_DEPTH or (isinstance(value, (list, dict)) and len(value) > self.most):
            raise MalformedError(
                path, seen(value), f"a value of at most {self.most} characters, {MAX_DEPTH} levels deep"
            )
        if isinstance(value, list):
            return [self._part(item, path, depth + 1) for item in value]
        if isinstance(value, dict):
            name = Text(MAX_WORD_CHARS * 4)
            return {name.take(key, path): self._part(item, path, depth + 1) for key, item in value.items()}
        return Scalar(self.most).take(value, path)

    def schema(self) -> dict[str, Any]:
        """JSON Schema: what it is is left open."""
        kinds = ["null", "boolean", "number", "string", "array", "object"]
        return Number().schema() | {"type": kinds, "maxLength": self.most}


@dataclass(frozen=True)
class Listed:
    """A list of at most so many items of one kind."""

    kind: Kind
    most: int

    def take(self, value: Any, path: str) -> list[Any]:
        """The list."""
        if type(value) is not list or len(value) > self.most:
            raise MalformedError(path, seen(value), f"a list of at most {self.most}")
        take = self.kind.take
        return [take(item, f"{path}[{place}]") for place, item in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        return {"type": "array", "items": self.kind.schema(), "maxItems": self.most}


@dataclass(frozen=True)
class Mapped:
    """An object whose keys are data."""

    kind: Kind
    most: int
    key: Text = Text(MAX_WORD_CHARS * 4)

    def take(self, value: Any, path: str) -> dict[str, Any]:
        """The object."""
        if type(value) is not dict or len(value) > self.most:
            raise MalformedError(path, seen(value), f"an object of at most {self.most} keys")
        take, key_of = self.kind.take, self.key.take
        return {key_of(key, path): take(item, f"{path}.{seen(key)}") for key, item in value.items()}

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        base = {"type": "object", "additionalProperties": self.kind.schema(), "maxProperties": self.most}
        return base | {"propertyNames": self.key.schema()}


@dataclass(frozen=True)
class Object:
    """An object with named fields and no others."""

    fields: Mapping[str, Kind]
    required: frozenset[str] = field(default_factory=frozenset)

    def take(self, value: Any, path: str) -> dict[str, Any]:
        """The object."""
        if type(value) is not dict:
            raise MalformedError(
                path, seen(value), f"an object with {', '.join(sorted(self.required)) or 'known keys'}"
            )
        dot, taken = f"{path}." if path else "", {}
        for key, item in value.items():
            kind = self.fields.get(key)
            if kind is None:
                raise MalformedError(path, f"the key {seen(key)}", f"none but {', '.join(self.fields)}")
            taken[key] = kind.take(item, dot + key)
        missing = self.required - taken.keys()
        if missing:
            raise MalformedError(path, f"no {', '.join(sorted(missing))}", "each of them")
        return taken

    def schema(self) -> dict[str, Any]:
        """JSON Schema."""
        properties = {name: kind.schema() for name, kind in self.fields.items()}
        base: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        return base | ({"required": sorted(self.required)} if self.required else {})
