"""Holds what reached the engine against the provider's SDK: names of properties, at every depth, and their types."""

import collections.abc
import enum
import importlib
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi import Asset, _types, output

from infra.sdk import resource_class
from tests.infra.engine import Request

PLAIN = (str, int, float, bool)


def mistakes(request: Request) -> Iterator[str]:
    """Every property of an AWS resource that the SDK does not know, or that has another type."""
    found = resource_class(request.type_)
    if found is None:
        yield f"{request.name}: the SDK has no type {request.type_}"
        return
    module = importlib.import_module(found.__module__)
    # Where a nested type has the name already, the resource's own arguments are called InitArgs.
    args = getattr(module, f"{found.__name__}InitArgs", None) or getattr(module, f"{found.__name__}Args")
    for text in _object(request.props, args):
        yield f"{request.name} ({request.type_}): {text}"


def _object(value: Any, args: type) -> Iterator[str]:
    types = _types.input_type_types(args)
    if not isinstance(value, Mapping):
        yield f"a {type(value).__name__} where {args.__name__} is wanted"
        return
    for key, inner in value.items():
        if key not in types:
            yield f"{key} is no property of {args.__name__}"
        else:
            yield from (f"{key}: {text}" for text in _value(inner, types[key]))


def _value(value: Any, wanted: Any) -> Iterator[str]:
    if isinstance(value, (output.Unknown, Asset)) or value is None:
        return
    wanted = _settled(wanted)
    origin = typing.get_origin(wanted)
    if origin in (list, collections.abc.Sequence):
        if not isinstance(value, list):
            yield f"a {type(value).__name__} where a list is wanted"
            return
        for inner in value:
            yield from _value(inner, typing.get_args(wanted)[0])
    elif origin in (dict, collections.abc.Mapping):
        if not isinstance(value, Mapping):
            yield f"a {type(value).__name__} where a mapping is wanted"
            return
        for inner in value.values():
            yield from _value(inner, typing.get_args(wanted)[1])
    elif _types.is_input_type(wanted):
        yield from _object(value, wanted)
    elif not _fits(value, wanted):
        yield f"{value!r} is a {type(value).__name__}, not {wanted}"


def _settled(wanted: Any) -> Any:
    """The type without Optional, Awaitable and Output around it."""
    if typing.get_origin(wanted) is typing.Union:
        kept = [
            part
            for part in typing.get_args(wanted)
            if part is not type(None) and typing.get_origin(part) not in (collections.abc.Awaitable, output.Output)
        ]
        enums = [part for part in kept if isinstance(part, type) and issubclass(part, enum.Enum)]
        return _settled((enums or kept)[0])
    return wanted


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return value in [member.value for member in wanted]
    if wanted is bool or isinstance(value, bool):
        return wanted is bool and isinstance(value, bool)
    if wanted in (int, float):
        return isinstance(value, int) or (wanted is float and isinstance(value, float))
    return wanted not in PLAIN or isinstance(value, wanted)
