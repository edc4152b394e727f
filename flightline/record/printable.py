"""Text of unknown origin made safe to show, and short. Standard library only: the Lambda functions ship it."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Text that no terminal takes for a command: blanks for blanks, a replacement for what cannot be printed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else REPLACEMENT for char in text)


def clip_bytes(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, for a part of a key: DynamoDB counts bytes. What is no character is replaced."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: max(limit - 3, 0)].rstrip() + "..."
