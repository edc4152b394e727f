"""Unpack a bundle that came back from a node: nothing in it is trusted, not its names, kinds or sizes."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, cast

from flightline_node.model import SettingsError

MAX_FILE_BYTES = 64 << 20
MAX_TOTAL_BYTES = 128 << 20
MAX_MEMBERS = 2000
"""A bundle has some dozen files of a few MiB; a node keeps at most 4 MiB of each when it sends one."""

MAX_DEPTH = 2
"""A file, or a file in the one directory that was packed by hand."""

BLOCK_BYTES = 1 << 20
HEADER_BYTES = 1536
"""Of one member in a tar archive: its header, and what fills its last block."""

GZIP = b"\x1f\x8b"


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A directory with the files of a tar archive (compressed or not), gone at the end.

    Raises SettingsError, before or while unpacking, for what is no archive, is cut off, is larger than a bundle can
    be, or has anything but plain files under plain names in it.
    """
    with TemporaryDirectory(prefix="flightline-bundle-") as name:
        try:
            # As a stream: no member is looked at before those in front of it were accepted.
            with _opened(path) as raw, tarfile.open(fileobj=_Limited(raw, path), mode="r|") as archive:
                _extract(archive, Path(name), path)
        except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError) as error:
            raise SettingsError(
                f"{path}: saw that it cannot be unpacked ({error}), wanted a tar archive of a bundle, as .tar.gz"
            ) from error
        yield Path(name)


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as handle:
        packed = handle.read(len(GZIP)) == GZIP
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


class _Limited(io.RawIOBase):
    """Ends the reading of what unpacks to more than a bundle, also within tar's own headers."""

    def __init__(self, raw: IO[bytes], path: Path) -> None:
        self.raw, self.path = raw, path
        self.left = MAX_TOTAL_BYTES + MAX_MEMBERS * HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise SettingsError(
                f"{self.path}: saw that it unpacks to more than {MAX_TOTAL_BYTES >> 20} MiB, wanted a bundle"
            )
        return data


def _extract(archive: tarfile.TarFile, directory: Path, path: Path) -> None:
    total = 0
    for number, member in enumerate(archive, 1):
        if number > MAX_MEMBERS:
            raise SettingsError(f"{path}: saw more than {MAX_MEMBERS} members, wanted a bundle: some dozen files")
        if member.isdir():
            continue
        target = directory / _name(member, path)
        total += member.size
        if member.size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
            most = f"{MAX_FILE_BYTES >> 20} MiB a file and {MAX_TOTAL_BYTES >> 20} MiB in all"
            raise SettingsError(f"{path}: saw that {_shown(member.name)} is too large, wanted at most {most}")
        source = archive.extractfile(member)
        if source is None or target.exists():
            raise SettingsError(
                f"{path}: saw that {_shown(member.name)} is in it twice or is no plain file, wanted plain files"
            )
        with target.open("xb") as out:
            _copy(source, out)


def _name(member: tarfile.TarInfo, path: Path) -> str:
    """The file's name without the packed directory's. Raises SettingsError for what could lead anywhere else."""
    if not member.isreg():
        raise SettingsError(f"{path}: saw {_shown(member.name)}, which is a link or a device, wanted plain files only")
    parts = [part for part in PurePosixPath(member.name).parts if part != "."]
    plain = parts and len(parts) <= MAX_DEPTH and not member.name.startswith("/") and ".." not in parts
    if not plain or "\0" in member.name or not parts[-1].isprintable():
        raise SettingsError(f"{path}: saw {_shown(member.name)}, which leads out of the bundle, wanted plain names")
    return parts[-1]


def _copy(source: IO[bytes], out: IO[bytes]) -> None:
    for block in iter(lambda: source.read(BLOCK_BYTES), b""):
        out.write(block)


def _shown(name: str) -> str:
    return ascii(name[:100])
