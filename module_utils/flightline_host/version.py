"""Version numbers as vendors print them."""

from __future__ import annotations

import re
from typing import Optional, Tuple

_NUMBER = re.compile(r"\d+(?:\.\d+)*")


def numbers(text: Optional[str]) -> Tuple[int, ...]:
    """'2.3.1amzn1.0' -> (2, 3, 1); the vendor's suffix does not count; () when there is no number."""
    found = _NUMBER.match((text or "").strip().lstrip("v"))
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def reaches(text: Optional[str], minimum: str) -> bool:
    """Is a version the minimum or later? A version that is not known is not."""
    have, want = numbers(text), numbers(minimum)
    length = max(len(have), len(want))
    return bool(have) and have + (0,) * (length - len(have)) >= want + (0,) * (length - len(want))


def within(text: Optional[str], pin: str) -> bool:
    """Does a version lie within a pin? '580' takes 580.95.05, '580.95.05' takes only itself."""
    have, want = numbers(text), numbers(pin)
    return bool(want) and have[: len(want)] == want


def upstream(package_version: str) -> str:
    """'1:580.95.05-0ubuntu1' -> '580.95.05': neither epoch nor packaging revision."""
    return (
        package_version.partition(":")[2].partition("-")[0]
        if ":" in package_version
        else package_version.partition("-")[0]
    )
