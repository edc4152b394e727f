"""Read small files, as /proc and /sys have thousands of them: a stream of Python's would double what each costs."""

from __future__ import annotations

import os
from typing import List, Optional

MAX_BYTES, MAX_VALUE_BYTES = 1 << 20, 200


def read_bytes(path: str, most: int = MAX_BYTES) -> bytes:
    """Its first bytes. Raises OSError."""
    handle, found = os.open(path, os.O_RDONLY | os.O_CLOEXEC), b""
    try:
        # Not one read: what /proc makes line by line comes in pieces of a page.
        while len(found) < most:
            piece = os.read(handle, most - len(found))
            if not piece:
                break
            found += piece
    finally:
        os.close(handle)
    return found


def read_text(path: str, most: int = MAX_BYTES) -> str:
    """The same as text, without the white space around it. Raises OSError."""
    return read_bytes(path, most).decode("utf-8", "replace").strip()


def contents(path: str, most: int = MAX_BYTES) -> Optional[str]:
    """What a file says, or None where it cannot be read."""
    try:
        return read_text(path, most)
    except OSError:
        return None


def value_of(path: str, most: int = MAX_VALUE_BYTES) -> Optional[str]:
    """What a file says, None when there is no such file; a read that fails is told as 'error: ...'."""
    try:
        return read_text(path, most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"error: {error.strerror or type(error).__name__}"


def entries(folder: str) -> List[str]:
    """The paths of what a folder holds, in order; none where there is no such folder."""
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []
