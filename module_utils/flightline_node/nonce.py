"""One id for each node of a run, all made of one key: who has an id learns no other node's of it."""

from __future__ import annotations

import hmac

CHARACTERS = 16


def call_id(key: str, host: str) -> str:
    """The id of the call to a host. key: of the run."""
    return hmac.new(key.encode(), host.encode(), "sha256").hexdigest()[:CHARACTERS]
