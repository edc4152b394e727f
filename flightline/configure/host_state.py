"""What configure decided about each host, kept on the control side: signed, so that nobody changes it unseen.

The same text lies on the host. The key never leaves the control side (`key` beside the kept files).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ON_THE_HOST = "/etc/flightline/host_state.json"
KEY = "key"


class NotSigned(Exception):
    """A kept state that this side did not sign: saw, wanted, do."""


def signed(state: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The state with its signature: HMAC-SHA-256 over its JSON with sorted keys."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return {"state": dict(state), "signature": hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()}


def kept(directory: Path, host: str) -> dict[str, Any]:
    """What is kept of a host; {} where nothing is. Raises NotSigned."""
    path = directory / f"{host}.json"
    if not path.is_file():
        return {}
    key = (directory / KEY).read_text(encoding="utf-8").strip() if (directory / KEY).is_file() else ""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        state: dict[str, Any] = found["state"]
        right = bool(key) and hmac.compare_digest(signed(state, key)["signature"], str(found["signature"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        right = False
    if not right:
        do = f"put it back from a copy; or remove it, look at {host} yourself, and configure it again"
        raise NotSigned(
            f"saw: {path} is not as this side signed it; wanted: its signature by {directory / KEY}; do: {do}"
        )
    return state
