"""Is a tool's output JSON, or its text form?"""

from __future__ import annotations

import re

from ..bundle import Data
from . import text as t

_HEAD = re.compile(r"(?m)^[ \t]{0,64}(?:\{\s{0,200}[\"}]|\[\s{0,200}[\[{\"\]])")


def holds_json(data: Data) -> bool:
    """Does a line near the top begin as JSON does? A prompt or sudo's warning may stand above it."""
    return bool(_HEAD.search(t.decode(data, 4096)))
