"""A node's bundle in an archive, and as one text for the way back to the control node. Only for a node that failed."""

from __future__ import annotations

import base64
import io
import os
import tarfile
from pathlib import Path

from ..bounds import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILE_BYTES
from ..read.bundle import MANIFEST

MAX_FILE_BYTES, MAX_PACKED_BYTES = MAX_BUNDLE_FILE_BYTES, MAX_BUNDLE_BYTES


def packed(directory: Path) -> str:
    """The directory as base64 of a tar.gz; files that do not fit are named in LEFT_OUT.txt."""
    files = [path for path in directory.iterdir() if path.is_file()]
    files.sort(key=lambda path: (path.name != MANIFEST, path.stat().st_size))
    buffer, left_out = io.BytesIO(), []
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        for path in files:
            # What is in the compressor's hands is not counted: the limit is for orders of magnitude.
            if buffer.tell() > MAX_PACKED_BYTES:
                left_out.append(path.name)
            else:
                add(archive, path.name, end_of(path, MAX_FILE_BYTES))
        if left_out:
            add(archive, "LEFT_OUT.txt", "\n".join(left_out).encode())
    return base64.b64encode(buffer.getvalue()).decode()


def end_of(path: Path, most: int) -> bytes:
    """The last bytes of a file, at most so many. Raises OSError."""
    with open(path, "rb") as handle:
        handle.seek(max(os.fstat(handle.fileno()).st_size - most, 0))
        return handle.read(most)


def add(archive: tarfile.TarFile, name: str, content: bytes, mtime: float = 0) -> None:
    """One more file in an archive."""
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(content), int(mtime)
    archive.addfile(member, io.BytesIO(content))
