"""The training data: files as one row of bytes, cut into samples. Standard library only."""

from __future__ import annotations

import hashlib
import mmap
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

EDGE_BYTES = 1 << 20


class DataError(ValueError):
    """The data is missing, or not what the manifest or the checkpoint says."""


class Tokens:
    """length: tokens of one sample. A sample never spans two files."""

    def __init__(self, paths: Sequence[Path], length: int) -> None:
        self._length, self._maps, self._starts, self.samples = length, [], [], 0
        for path in paths:
            count = max(0, (_size(path) - 1) // length)
            if count:
                with path.open("rb") as file:
                    self._maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                self._starts.append(self.samples)
                self.samples += count
        if not self.samples:
            raise DataError(f"saw no file with more than {length} bytes, wanted training data; do: check --data")

    def sample(self, index: int) -> bytes:
        """Bytes, one more than length: inputs and, shifted by one, targets."""
        at = bisect_right(self._starts, index) - 1
        begin = (index - self._starts[at]) * self._length
        return self._maps[at][begin : begin + self._length + 1]


def fingerprint(paths: Sequence[Path]) -> str:
    """Changes with name, size, first or last MiB of any file: whole terabytes are not read for it."""
    digest = hashlib.sha256()
    for path in paths:
        size = _size(path)
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(EDGE_BYTES))
            file.seek(max(0, size - EDGE_BYTES))
            digest.update(file.read(EDGE_BYTES))
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; wanted a file of the data set; is it mounted?") from None
