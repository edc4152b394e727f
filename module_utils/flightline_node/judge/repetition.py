"""What repetition makes of a class that warns when it stands alone: one rule for every check of the kernel log.

A class is declared with the threshold from which on its number blocks, and with what it is counted per. The window is
the check's `window_hours` where it has one, else the time since the last boot. docs/checks.md shows the declarations.
"""

from __future__ import annotations

from ..model import Repeated, Status
from .context import Context


def judged(context: Context, repeated: Repeated, count: int) -> Status:
    """The status of a class of which so many were seen on one device."""
    if repeated.alone is Status.FAIL or not repeated.threshold:
        return repeated.alone
    return Status.FAIL if count >= context.threshold(repeated.threshold) else repeated.alone
