"""Packed files: gz, bz2, xz and zst, told by their first bytes, and never unpacked beyond a bound."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shlex
import shutil
import subprocess
import zlib
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Iterator, Mapping, Optional, cast

MAGIC: Mapping[bytes, str] = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
ZSTD_MODULE = "compression.zstd"
"""Of Python 3.14; before it the program does the same."""
BLOCK_BYTES = 1 << 20
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError)
"""What reading a packed file can raise."""


def packing_of(head: bytes) -> str:
    """'gz', 'bz2', 'xz' or 'zst' by the first bytes of a file; '' for any other."""
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked when it is packed. Raises one of DAMAGED, also while it is read."""
    with open(path, "rb") as raw:
        kind = packing_of(raw.read(8))
        raw.seek(0)
        if kind == "gz":
            with gzip.GzipFile(fileobj=raw) as source:
                yield cast("IO[bytes]", source)
        elif kind == "bz2":
            with bz2.BZ2File(raw) as source:
                yield cast("IO[bytes]", source)
        elif kind == "xz":
            with lzma.LZMAFile(raw) as source:
                yield cast("IO[bytes]", source)
        elif kind == "zst":
            with _zstd(raw, path.name) as source:
                yield source
        else:
            yield raw


def head_of(path: Path, most: int) -> bytes:
    """The first bytes of a file, unpacked. Raises OSError."""
    try:
        with opened(path) as source:
            return source.read(most)
    except DAMAGED as error:
        raise OSError(damage(error)) from error


def unpack(path: Path, target: Path, most: int) -> int:
    """Unpack a file into another; returns its size. Raises OSError, and leaves no more than `most` bytes behind."""
    size = 0
    try:
        with opened(path) as source, open(target, "wb") as out:
            for block in iter(lambda: source.read(BLOCK_BYTES), b""):
                size += len(block)
                if size > most:
                    raise OSError(f"too large: it unpacks to more than {most >> 20} MiB")
                out.write(block)
    except DAMAGED as error:
        raise OSError(damage(error)) from error
    return size


def damage(error: BaseException) -> str:
    """Why a packed file could not be read, in words."""
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return error.strerror or str(error)
    return f"it cannot be unpacked ({error or type(error).__name__})"


def zstd_tool() -> Optional[str]:
    """A program of this machine that unpacks zst."""
    return shutil.which("zstd") or shutil.which("unzstd")


@contextmanager
def _zstd(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    try:
        module: Any = import_module(ZSTD_MODULE)
    except ImportError:
        module = None
    if module is not None:
        try:
            yield module.ZstdFile(raw)
        except module.ZstdError as error:
            raise OSError(f"it cannot be unpacked ({error})") from error
        return
    tool = zstd_tool()
    if tool is None:
        raise OSError(
            f"packed with zstd, of which this machine has nothing; do: zstd -d {shlex.quote(name)}, where zstd is"
        )
    os.lseek(raw.fileno(), 0, os.SEEK_SET)  # the program reads from where the file stands, not where its buffer does
    process = subprocess.Popen(
        (tool, "-dcq"), stdin=raw, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield cast("IO[bytes]", _FromProgram(process))
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


class _FromProgram(io.RawIOBase):
    """What a program prints; it must end well when there is no more."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, size: int = -1) -> bytes:
        data = self._process.stdout.read(size) if self._process.stdout else b""
        if not data and size and self._process.wait() != 0:
            raise OSError("it cannot be unpacked (zstd says that it is damaged)")
        return data
