"""Active tests of our own: programs that load a node, run as readers in a process of their own.

A simulated node (its root is not "/") must never load the machine it lives on: it has a stored answer.
"""

from __future__ import annotations

import os
from typing import Optional

from ..files import contents

SIMULATED = "run/flightline"
MAX_STORED_BYTES = 4 << 20


def stored(root: str, file: str) -> Optional[str]:
    """What a simulated node answers; None on a real one, or when nothing is stored."""
    if not root.rstrip("/"):
        return None
    return contents(os.path.join(root, SIMULATED, file), MAX_STORED_BYTES)
