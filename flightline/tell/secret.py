"""Secrets by reference: env:NAME, file:PATH, secretsmanager:NAME. The value never shows in a log or a process list."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

ENV, PATH, MANAGER = KINDS = ("env", "file", "secretsmanager")


class SecretError(RuntimeError):
    """The secret is not where it should be; the text names the place, never the value."""


class Secret:
    """A text that does not print."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


def resolve(reference: str, from_manager: Callable[[str], str]) -> Secret:
    """Fetch a secret. from_manager: name or ARN -> SecretString, of AWS Secrets Manager."""
    kind, _, name = reference.partition(":")
    if kind == ENV:
        value = os.environ.get(name, "")
    elif kind == PATH:
        value = _read(Path(name).expanduser())
    elif kind == MANAGER:
        value = _from_json(from_manager(name))
    else:
        raise SecretError("saw another place of a secret, wanted one that begins with env:, file: or secretsmanager:")
    if not value.strip():
        raise SecretError(f"saw no secret there, wanted one at {kind}:{name}")
    return Secret(value.strip())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f"saw {type(error).__name__}, wanted a readable file; do: look at file:{path}") from None


def _from_json(text: str) -> str:
    """A secret may be the text itself or a JSON object with one value, as the console makes it."""
    try:
        loaded = json.loads(text)
    except ValueError:
        return text
    values = list(loaded.values()) if isinstance(loaded, dict) else []
    return str(values[0]) if len(values) == 1 else text
