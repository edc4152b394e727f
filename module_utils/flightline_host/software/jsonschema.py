"""JSON Schema, as much of draft 4 as the CloudWatch agent's schema uses.

A node has no validator of its own. A keyword that this one does not know is an error: ignoring it could call a wrong
configuration right.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterator, List, Mapping

_TYPES: Dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
_SILENT = {
    "$schema",
    "id",
    "$id",
    "title",
    "description",
    "descriptions",
    "default",
    "definitions",
    "format",
    "examples",
    "$comment",
}


class SchemaError(Exception):
    """The schema itself cannot be used."""


def errors(value: Any, schema: Any, root: Any = None, where: str = "$") -> List[str]:
    """What is wrong with a value, each with its place; none when it is valid."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return [] if schema else [f"{where}: nothing is allowed here"]
    if "$ref" in schema:
        return errors(value, _resolve(str(schema["$ref"]), root), root, where)
    unknown = [key for key in schema if key not in _KEYWORDS and key not in _SILENT]
    if unknown:
        raise SchemaError(f"keyword {unknown[0]} at {where} is not known to this validator")
    found: List[str] = []
    for key, argument in schema.items():
        rule = _KEYWORDS.get(key)
        if rule:
            found.extend(rule(value, argument, schema, root, where))
    return found


def _resolve(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        raise SchemaError(f"reference {reference} leads out of the schema")
    place = root
    for part in reference.lstrip("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if name and (not isinstance(place, dict) or name not in place):
            raise SchemaError(f"reference {reference} leads nowhere")
        place = place[name] if name else place
    return place


def _type(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    names = [argument] if isinstance(argument, str) else argument
    if not any(_TYPES[name](value) for name in names):
        yield f"{where}: {value!r} is not of type {' or '.join(names)}"


def _properties(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in argument.items():
            if name in value:
                yield from errors(value[name], part, root, f"{where}.{name}")


def _patterns(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for pattern, part in argument.items():
            for name in value:
                if re.search(pattern, name):
                    yield from errors(value[name], part, root, f"{where}.{name}")


def _additional(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in value:
        if name in known or any(re.search(pattern, name) for pattern in patterns):
            continue
        if argument is False:
            yield f"{where}: {name} is not allowed; allowed are {', '.join(sorted(known)) or 'none'}"
        elif isinstance(argument, dict):
            yield from errors(value[name], argument, root, f"{where}.{name}")


def _required(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{where}: {name} is missing" for name in argument if name not in value)


def _items(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if isinstance(value, list):
        parts = argument if isinstance(argument, list) else [argument] * len(value)
        for index, (entry, part) in enumerate(zip(value, parts)):
            yield from errors(entry, part, root, f"{where}[{index}]")


def _enum(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    # JSON tells true from 1, Python does not.
    if not any(value == entry and isinstance(value, bool) == isinstance(entry, bool) for entry in argument):
        yield f"{where}: {value!r} is not one of {', '.join(map(repr, argument))}"


def _pattern(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(argument, value):
        yield f"{where}: {value!r} does not match {argument}"


def _unique(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if argument and isinstance(value, list) and any(value.count(entry) > 1 for entry in value):
        yield f"{where}: an entry stands there twice"


def _bound(measure: Callable[[Any], Any], ok: Callable[[Any, Any], bool], words: str) -> Callable[..., Iterator[str]]:
    def rule(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
        size = measure(value)
        if size is not None and not ok(size, argument):
            yield f"{where}: {size}{words} {argument}"

    return rule


def _length(kind: Any) -> Callable[[Any], Any]:
    return lambda value: len(value) if isinstance(value, kind) else None


def _number(value: Any) -> Any:
    return value if _TYPES["number"](value) else None


def _combined(key: str) -> Callable[..., Iterator[str]]:
    def rule(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
        tried = [errors(value, part, root, where) for part in argument]
        fits = sum(not found for found in tried)
        if key == "allOf":
            yield from (text for found in tried for text in found)
        elif fits == 0:
            nearest = min(tried, key=len, default=[])
            yield nearest[0] if nearest else f"{where}: fits none of {len(tried)} forms"
        elif key == "oneOf" and fits > 1:
            yield f"{where}: fits {fits} of the forms that exclude each other"

    return rule


def _not(value: Any, argument: Any, schema: Any, root: Any, where: str) -> Iterator[str]:
    if not errors(value, argument, root, where):
        yield f"{where}: {value!r} has a form that is not allowed"


_KEYWORDS: Mapping[str, Callable[..., Iterator[str]]] = {
    "type": _type, "properties": _properties, "patternProperties": _patterns, "additionalProperties": _additional,
    "required": _required, "items": _items, "enum": _enum, "pattern": _pattern, "uniqueItems": _unique, "not": _not,
    "minimum": _bound(_number, lambda a, b: a >= b, ", wanted at least"),
    "maximum": _bound(_number, lambda a, b: a <= b, ", wanted at most"),
    "minLength": _bound(_length(str), lambda a, b: a >= b, " characters, wanted at least"),
    "maxLength": _bound(_length(str), lambda a, b: a <= b, " characters, wanted at most"),
    "minItems": _bound(_length(list), lambda a, b: a >= b, " entries, wanted at least"),
    "maxItems": _bound(_length(list), lambda a, b: a <= b, " entries, wanted at most"),
    "minProperties": _bound(_length(dict), lambda a, b: a >= b, " keys, wanted at least"),
    "maxProperties": _bound(_length(dict), lambda a, b: a <= b, " keys, wanted at most"),
    "anyOf": _combined("anyOf"), "oneOf": _combined("oneOf"), "allOf": _combined("allOf"),
}  # fmt: skip
