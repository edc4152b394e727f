"""An answer as short lines, for a launcher that cuts long ones: srun --label ends a line after 1024 bytes.

Measured with Slurm 22.05: a labelled line of 100,000 bytes comes as 98 lines, between those of other nodes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import Iterable, List, Sequence, Set

MARK = "flightline-answer"
CHUNK_CHARS = 800


class FrameError(ValueError):
    """Lines that are no whole answer; the text says what was seen."""


def frames(text: str) -> List[str]:
    """The lines of an answer, without line ends: mark, number, how many there are, digest, content."""
    packed = base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii")
    chunks = [packed[start : start + CHUNK_CHARS] for start in range(0, len(packed), CHUNK_CHARS)]
    head = f"{len(chunks)} {_digest(text)}"
    return [f"{MARK} {number} {head} {chunk}" for number, chunk in enumerate(chunks, 1)]


def digests(lines: Iterable[str]) -> Set[str]:
    """Of the answers of which these are lines, also of cut ones."""
    found = (line.split() for line in lines)
    return {words[3] for words in found if len(words) == 5 and words[0] == MARK}


def join(lines: Sequence[str], most_bytes: int) -> str:
    """The answer of all its lines, in any order. Raises FrameError: one is missing or damaged, or it is too long."""
    parts = {}
    heads = set()
    for line in lines:
        words = line.split()
        if len(words) != 5 or words[0] != MARK or not (words[1].isdigit() and words[2].isdigit()):
            raise FrameError(f"a damaged line: {line[:80]!a}")
        heads.add((int(words[2]), words[3]))
        parts[int(words[1])] = words[4]
    if len(heads) != 1:
        raise FrameError(f"parts of {len(heads)} answers")
    wanted, digest = heads.pop()
    if sorted(parts) != list(range(1, wanted + 1)):
        raise FrameError(f"{len(parts)} of {wanted} parts")
    text = _unpacked("".join(parts[number] for number in range(1, wanted + 1)), most_bytes)
    if _digest(text) != digest:
        raise FrameError("its content is not what was sent")
    return text


def _unpacked(packed: str, most_bytes: int) -> str:
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(base64.b64decode(packed, validate=True), most_bytes).decode("utf-8")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise FrameError(f"its content cannot be read: {error}") from None
    if not reader.eof:
        raise FrameError(f"its content is cut off, or longer than {most_bytes} bytes")
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
